#include "support/directives.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace kc::test {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) << 4 | digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// A number and what stands behind it. Ends the program when there is none: a test is wrong, not a compiler.
std::pair<size_t, std::string_view> leading_number(std::string_view name, std::string_view text) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) {
    std::fprintf(stderr, "stand-in compiler: @%.*s=%.*s is not a number\n", static_cast<int>(name.size()),
                 name.data(), static_cast<int>(text.size()), text.data());
    std::_Exit(99);
  }
  return {value, text.substr(static_cast<size_t>(end - text.data()))};
}

}  // namespace

Directives::Directives(std::string_view source) {
  constexpr std::string_view kSpace = " \t\r\n";
  for (size_t at = source.find_first_not_of(kSpace); at < source.size();) {
    const size_t end = std::min(source.find_first_of(kSpace, at), source.size());
    const std::string_view word = source.substr(at, end - at);
    if (word.starts_with('@')) {
      const size_t equals = std::min(word.find('='), word.size());
      const std::string_view value = equals < word.size() ? word.substr(equals + 1) : std::string_view();
      words_.emplace_back(word.substr(1, equals - 1), decoded(value));
    }
    at = source.find_first_not_of(kSpace, end);
  }
}

std::optional<std::string> Directives::find(std::string_view name) const {
  std::optional<std::string> out;
  for (const auto& [key, value] : words_) {
    if (key == name) out = value;
  }
  return out;
}

std::vector<std::string> Directives::all(std::string_view name) const {
  std::vector<std::string> out;
  for (const auto& [key, value] : words_) {
    if (key == name) out.push_back(value);
  }
  return out;
}

std::optional<unsigned> Directives::number(std::string_view name) const {
  const auto text = find(name);
  if (!text) return std::nullopt;
  return static_cast<unsigned>(leading_number(name, *text).first);
}

std::optional<size_t> Directives::size(std::string_view name) const {
  const auto text = find(name);
  if (!text) return std::nullopt;
  const auto [value, unit] = leading_number(name, *text);
  const unsigned shift = unit == "GiB" ? 30 : unit == "MiB" ? 20 : unit == "KiB" ? 10 : 0;
  return value << shift;
}

}  // namespace kc::test
