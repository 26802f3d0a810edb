#include "config/yaml_text.h"

#include <algorithm>

#include "util/text.h"

namespace kc::config {
namespace {

// A tag or anchor longer than this is nobody's; behind it a quote is not looked for.
constexpr size_t kMaxPropertyBytes = 1024;

// Where the tag or anchor at `at` ends, as yaml-cpp sees it.
size_t property_end(std::string_view text, size_t at) {
  // An anchor may hold quotes; a tag may hold a single one.
  const std::string_view ends = text[at] == '!' ? " \t\r\n,[]{}\"" : " \t\r\n,[]{}";
  return at + std::min(text.substr(at, kMaxPropertyBytes).find_first_of(ends), text.size() - at);
}

}  // namespace

std::optional<BadByte> find_bad_byte(std::string_view text) {
  YamlPlace place{1, 1, 0};
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const bool control = byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
    const size_t size = util::utf8_size(text, at);
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
  while (at < text.size() && (text[at] == '!' || text[at] == '&')) {
    at = text.find_first_not_of(" \t\r\n", property_end(text, at));
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
  YamlPlace place{1, 1, 0};
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
