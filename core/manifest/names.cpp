#include "manifest/names.h"

#include <algorithm>
#include <string>

#include "manifest/plan.h"
#include "util/text.h"

namespace kc::manifest {
namespace {

bool is_letter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Bytes that stand for themselves in a canonical value; all others are written %XX.
bool is_canonical(char c) {
  return is_letter(c) || is_digit(c) || c == '.' || c == '+' || c == '-';
}

void append_canonical(std::string& out, std::string_view value) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : value) {
    if (is_canonical(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15U];
    }
  }
}

}  // namespace

bool is_kernel_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && (is_letter(text[0]) || is_digit(text[0])) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-'; });
}

bool is_configuration_key(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '.'; });
}

bool is_specialization_key(std::string_view text) {
  if (!is_configuration_key(text)) return false;
  return !text.starts_with(kOptionPrefix) || is_configuration_key(text.substr(kOptionPrefix.size()));
}

bool is_symbol(std::string_view text) {
  return !text.empty() && text.size() <= kMaxValueBytes && std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte != 0x7f;
  });
}

bool is_named(std::string_view pattern, std::string_view unit, std::string_view kernel) {
  const bool without_target =
      unit.size() > pattern.size() && unit.starts_with(pattern) && unit[pattern.size()] == '@';
  return without_target || util::glob_match(pattern, unit) || util::glob_match(pattern, kernel);
}

std::string canonical_configuration(const Pairs& pairs) {
  std::string out;
  for (const auto& [key, value] : pairs) {
    if (!out.empty()) out += ',';
    out += key;
    out += '=';
    append_canonical(out, value);
  }
  return out;
}

std::string unit_name(const std::string& kernel, const std::string& configuration,
                      const std::string& target) {
  std::string out;
  out.reserve(kernel.size() + configuration.size() + target.size() + 2);
  out += kernel;
  if (!configuration.empty()) {
    out += ':';
    out += configuration;
  }
  out += '@';
  out += target;
  return out;
}

}  // namespace kc::manifest
