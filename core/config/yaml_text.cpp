#include "config/yaml_text.h"

#include <algorithm>

namespace kc::config {
namespace {

// Bytes of the well-formed UTF-8 sequence at `at` (Unicode 15, table 3-7); 0 when there is none.
size_t sequence_size(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(at);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  // The second byte's range is narrower behind four of the first bytes: no overlong forms, no surrogates,
  // nothing above U+10FFFF.
  const uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(at + 1) < least || byte(at + 1) > most) return 0;
  for (size_t i = 2; i < size; ++i) {
    if (byte(at + i) < 0x80 || byte(at + i) > 0xbf) return 0;
  }
  return size;
}

}  // namespace

std::optional<BadByte> find_bad_byte(std::string_view text) {
  YamlPlace place{1, 1};
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const bool control = byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
    const size_t size = sequence_size(text, at);
    if (control || size == 0) return BadByte{place, byte, control};
    if (byte == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      place.column += static_cast<uint32_t>(size);
    }
    at += size;
  }
  return std::nullopt;
}

bool is_quote_closed(std::string_view text, size_t at) {
  constexpr std::string_view kBlank = " \t\r\n";
  while (at < text.size() && (text[at] == '!' || text[at] == '&')) {
    at = text.find_first_not_of(kBlank, std::min(text.find_first_of(kBlank, at), text.size()));
  }
  if (at >= text.size() || (text[at] != '\'' && text[at] != '"')) return true;
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    const bool pair = quote == '"' ? text[at] == '\\' : text.substr(at).starts_with("''");
    if (pair) {
      ++at;
    } else if (text[at] == quote) {
      return true;
    }
  }
  return false;
}

std::optional<YamlPlace> find_flow_excess(std::string_view text, uint64_t most) {
  FlowMeter meter;
  YamlPlace place{1, 1};
  for (const char c : text) {
    meter.feed(c);
    if (meter.nodes() > most) return place;
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
  }
  return std::nullopt;
}

}  // namespace kc::config
