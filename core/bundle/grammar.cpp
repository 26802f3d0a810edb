#include "bundle/grammar.h"

#include <algorithm>

#include "target/target.h"

namespace kc::bundle {
namespace {

constexpr size_t kMaxKeyLength = 128;
constexpr size_t kMaxValueLength = 1024;  // decoded

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}
bool stands_unescaped(char c) {
  return is_word(c) || c == '.' || c == '+' || c == '-';
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool is_key(std::string_view key) {
  return !key.empty() && key.size() <= kMaxKeyLength && (is_letter(key[0]) || key[0] == '_') &&
         std::all_of(key.begin(), key.end(), [](char c) { return is_word(c) || c == '.'; });
}

bool is_value(std::string_view value) {
  size_t length = 0;
  for (size_t i = 0; i < value.size(); ++i, ++length) {
    if (stands_unescaped(value[i])) continue;
    const std::optional<char> byte = escaped_byte(value.substr(i));
    if (!byte || stands_unescaped(*byte)) return false;
    i += 2;
  }
  return length <= kMaxValueLength;
}

bool is_target(std::string_view text) {
  return text.size() <= kMaxTargetLength && target::parse_target(text).has_value();
}

}  // namespace

std::optional<char> escaped_byte(std::string_view text) {
  if (text.size() < 3 || text[0] != '%') return std::nullopt;
  const int high = hex_digit(text[1]);
  const int low = hex_digit(text[2]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

bool is_kernel_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxKernelLength && is_word(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_word(c) || c == '.' || c == '-'; });
}

bool is_specialization(std::string_view text) {
  if (text.empty()) return true;
  if (text.size() > kMaxSpecialization) return false;
  std::string_view previous;
  for (;;) {
    const std::string_view part = text.substr(0, text.find(','));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = part.substr(0, equals);
    if (!is_key(key) || !is_value(part.substr(equals + 1)) || key <= previous) return false;
    previous = key;
    if (part.size() == text.size()) return true;
    text.remove_prefix(part.size() + 1);
  }
}

bool is_plain_text(std::string_view text, size_t limit) {
  return text.size() <= limit && std::all_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) != 0x7F;
         });
}

bool is_metadata(const Pairs& pairs) {
  std::string_view previous;
  for (const auto& [name, value] : pairs) {
    if (name.empty() || !is_plain_text(name, kMaxPlainText) || name <= previous) return false;
    previous = name;
  }
  return true;
}

std::optional<std::string> fault_of(const Record& record) {
  if (!is_kernel_name(record.kernel)) return "the kernel's name is malformed";
  if (!is_specialization(record.specialization)) return "the specialization is not in canonical form";
  if (!is_target(record.target)) return "the target is not one that kc knows how to read";
  if (!is_target(record.found_target))
    return "the target found in the code is not one that kc knows how to read";
  for (const std::string* text : {&record.backend, &record.entry, &record.symbol, &record.compiler,
                                  &record.compiler_version, &record.toolkit, &record.facts.symbol}) {
    if (!is_plain_text(*text, kMaxPlainText)) {
      return "a text (backend, entry, symbol, compiler or toolkit) is too long or holds control characters";
    }
  }
  if (record.facts.arguments.size() > kMaxArguments) return "it has too many arguments";
  if (!is_metadata(record.metadata)) return "its metadata is not sorted or has malformed names";
  return std::nullopt;
}

}  // namespace kc::bundle
