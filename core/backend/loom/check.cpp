#include <cstddef>
#include <cstdint>

#include "backend/loom/loom.h"
#include "backend/loom/scan.h"
#include "util/text.h"

namespace kc::backend::loom {
namespace {

constexpr std::string_view kMagic = "LOOM";

// Where a token begins that holds a zero byte or invalid UTF-8, and which byte that is; text.size() when
// there is none. In comments anything goes, as for the compiler.
size_t foreign_byte(std::string_view text) {
  Lexer lexer(text);
  for (Lexer::Token token = lexer.next(); token.kind != Lexer::Kind::kEnd; token = lexer.next()) {
    const size_t begin = static_cast<size_t>(token.text.data() - text.data());
    const size_t end = begin + token.text.size();
    for (size_t at = begin; at < end;) {
      const size_t size = text[at] == 0 ? 0 : util::utf8_size(text, at);
      if (size == 0) return at;
      at += size;
    }
  }
  return text.size();
}

}  // namespace

bool is_bytecode(std::string_view name) {
  return name.ends_with(".loombc");
}

base::Result<void> check_source(std::string_view name, base::ByteView bytes) {
  const auto refuse = [&](std::string message, std::string hint = {}) {
    return base::fail_at(base::ErrorKind::kInput, {std::string(name)}, std::move(message), std::move(hint));
  };
  const std::string_view text = base::as_text(bytes);
  const bool has_magic = text.starts_with(kMagic);
  if (is_bytecode(name)) {
    if (bytes.empty()) return refuse("the file is empty; expected Loom bytecode");
    if (!has_magic) return refuse("not Loom bytecode: it does not begin with LOOM");
    return {};
  }
  if (bytes.empty()) return refuse("the file is empty; expected Loom text");
  if (has_magic) {
    return refuse("looks like Loom bytecode; expected Loom text", "give bytecode the suffix .loombc");
  }
  const size_t at = foreign_byte(text);
  if (at == text.size()) {
    const auto bad = find_bad_export(text);
    if (!bad) return {};
    return base::fail_at(base::ErrorKind::kInput, place_in(name, text, bad->at),
                         util::format("\"{}\" cannot be the name of a kernel", util::escape(bad->name)),
                         "letters, digits, _, . and $ make up an exported name, no digit in front");
  }
  const bool is_zero = text[at] == 0;
  return base::fail_at(base::ErrorKind::kInput, place_in(name, text, at),
                       util::format("not UTF-8 text: byte 0x{:02X}", static_cast<unsigned>(bytes[at])),
                       is_zero ? "is it a binary file, or UTF-16?" : "save it as UTF-8");
}

}  // namespace kc::backend::loom
