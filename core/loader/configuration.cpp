#include "loader/configuration.h"

#include <map>
#include <optional>
#include <utility>

#include "bundle/grammar.h"
#include "loader/text.h"

namespace kc::loader {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool stands_unescaped(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '+' || c == '-';
}

void append_escaped(std::string& out, char c) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  if (stands_unescaped(c)) {
    out += c;
  } else {
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
}

// A value with every byte escaped that must be and no other; nothing when a `%` begins no `%XX`.
std::optional<std::string> canonical_value(std::string_view value) {
  std::string out;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '%') {
      append_escaped(out, value[i]);
      continue;
    }
    if (value.size() - i < 3) return std::nullopt;
    const int high = hex_digit(value[i + 1]);
    const int low = hex_digit(value[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    append_escaped(out, static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

std::unexpected<Failure> bad(std::string_view text, const std::string& why) {
  return fail(KC_ERROR_ARGUMENT, "the configuration " + in_quotes(text) + " " + why +
                                     "; it is written as \"TM=64,TN=128\", pairs in any order");
}

}  // namespace

Result<std::string> canonical_configuration(std::string_view text) {
  if (text.empty()) return std::string();
  // Escaping makes three bytes of one; the rest is checked below.
  if (text.size() > bundle::kMaxSpecialization) return bad(text, "is too long");
  std::map<std::string_view, std::string> pairs;
  for (std::string_view rest = text;;) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) return bad(text, "has no \"=\" in " + in_quotes(part));
    const std::string_view value = part.substr(equals + 1);
    if (value.find('=') != std::string_view::npos) {
      return bad(text, "has a second \"=\" in " + in_quotes(part) + " (in a value it is %3D)");
    }
    std::optional<std::string> escaped = canonical_value(value);
    if (!escaped) return bad(text, "has a \"%\" without two hexadecimal digits in " + in_quotes(part));
    if (!pairs.emplace(part.substr(0, equals), std::move(*escaped)).second) {
      return bad(text, "names " + in_quotes(part.substr(0, equals)) + " twice");
    }
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  std::string out;
  for (const auto& [key, value] : pairs) {
    const std::string pair = std::string(key) + "=" + value;
    if (!bundle::is_specialization(pair))
      return bad(text, "has a malformed key or value: " + in_quotes(pair));
    if (!out.empty()) out += ',';
    out += pair;
  }
  return out;
}

}  // namespace kc::loader
