#include "util/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "base/nearest.h"

namespace kc::util {
namespace {

struct CodePoint {
  uint32_t value = 0;
  size_t size = 0;  // bytes; 0 = not UTF-8
};

uint8_t byte_at(std::string_view text, size_t at) {
  return static_cast<uint8_t>(text[at]);
}

// The code point at `at` by the table of well-formed sequences (Unicode 15, table 3-7): no overlong forms, no
// surrogates, nothing above U+10FFFF. Precondition: at < text.size().
CodePoint decode(std::string_view text, size_t at) {
  const uint8_t first = byte_at(text, at);
  if (first < 0x80) return {first, 1};
  if (first < 0xc2 || first > 0xf4) return {};
  const size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() - at < size) return {};
  uint32_t value = first & (0xffU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    const uint8_t next = byte_at(text, at + i);
    if ((next & 0xc0) != 0x80) return {};
    value = value << 6 | (next & 0x3fU);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[size] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, size};
}

// What can move a cursor, change colours or reorder a line of a terminal: C0, DEL, C1, and the controls of
// the bidirectional algorithm (with which text can be shown in another order than it stands in).
bool is_control(uint32_t value) {
  return value < 0x20 || (value >= 0x7f && value <= 0x9f) || (value >= 0x202a && value <= 0x202e) ||
         (value >= 0x2066 && value <= 0x2069);
}

// What one `[...]` or single character of a pattern, from `at`, says to `c`, and where the pattern goes on.
struct GlobStep {
  bool matches = false;
  size_t next = 0;
};

GlobStep glob_step(std::string_view pattern, size_t at, char c) {
  if (pattern[at] == '?') return {true, at + 1};
  // A `]` right behind the opening stands for itself, so that it can be in a set at all.
  const bool negated = pattern[at] == '[' && pattern.substr(at + 1).starts_with('!');
  const size_t first = at + (negated ? 2 : 1);
  const size_t close = pattern[at] == '[' ? pattern.find(']', first + 1) : std::string_view::npos;
  if (close == std::string_view::npos) return {pattern[at] == c, at + 1};
  bool found = false;
  for (size_t i = first; i < close; ++i) {
    const bool range = i + 2 < close && pattern[i + 1] == '-';
    const uint8_t least = byte_at(pattern, i);
    const uint8_t most = byte_at(pattern, range ? i + 2 : i);
    found = found || (least <= static_cast<uint8_t>(c) && static_cast<uint8_t>(c) <= most);
    if (range) i += 2;
  }
  return {found != negated, close + 1};
}

}  // namespace

std::string escape(std::string_view text, bool multi_line) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    const size_t size = std::max<size_t>(1, point.size);
    const bool kept = multi_line && (text[at] == '\n' || text[at] == '\t');
    if (kept || (point.size != 0 && !is_control(point.value))) {
      out += text.substr(at, size);
    } else {
      for (size_t i = 0; i < size; ++i) out += util::format("\\x{:02x}", byte_at(text, at + i));
    }
    at += size;
  }
  return out;
}

bool is_valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    if (point.size == 0) return false;
    at += point.size;
  }
  return true;
}

size_t utf8_size(std::string_view text, size_t at) {
  return decode(text, at).size;
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  const std::optional<size_t> index = base::nearest_index(name, views);
  if (!index) return std::nullopt;
  return candidates[*index];
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::optional<std::string> meant = nearest(name, candidates);
  return meant ? util::format("did you mean \"{}\"?", escape(*meant)) : std::string();
}

std::string counted(uint64_t count, std::string_view singular, std::string_view plural) {
  if (count == 1) return util::format("1 {}", singular);
  return plural.empty() ? util::format("{} {}s", count, singular) : util::format("{} {}", count, plural);
}

std::string listed(std::span<const std::string> names, size_t most) {
  if (names.size() > most) {
    const std::string rest = util::format("{} more", names.size() - most);
    return most == 0 ? rest : join(names.first(most), ", ") + " and " + rest;
  }
  if (names.size() < 2) return names.empty() ? std::string() : names.front();
  return join(names.first(names.size() - 1), ", ") + " and " + names.back();
}

std::string size_text(uint64_t bytes) {
  if (bytes < 1024) return util::format("{} B", bytes);
  constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be printed as 1024.0 of the smaller unit.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return util::format("{:.1f} {}", value, kUnits[unit]);
}

std::optional<uint64_t> parse_size(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  std::string_view unit = text.substr(digits);
  int shift = 0;
  if (!unit.empty() && unit != "B") {
    constexpr std::string_view kLetters = "KMG";
    const size_t letter = kLetters.find(unit.front());
    if (letter == std::string_view::npos) return std::nullopt;
    unit.remove_prefix(1);
    if (unit.starts_with('i')) unit.remove_prefix(1);
    if (!unit.empty() && unit != "B") return std::nullopt;
    shift = 10 * (static_cast<int>(letter) + 1);
  }
  const std::optional<uint64_t> count =
      parse_number(text.substr(0, digits), 0, std::numeric_limits<uint64_t>::max() >> shift);
  if (!count) return std::nullopt;
  return *count << shift;
}

std::optional<uint64_t> parse_number(std::string_view text, uint64_t least, uint64_t most) {
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  if (value < least || value > most) return std::nullopt;
  return value;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  // Where to go on when a try fails: the last `*` takes one byte more. Earlier ones never need to.
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
      continue;
    }
    const GlobStep step = p < pattern.size() ? glob_step(pattern, p, text[t]) : GlobStep{};
    if (step.matches) {
      p = step.next;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) out += separator;
    out += parts[i];
  }
  return out;
}

}  // namespace kc::util
