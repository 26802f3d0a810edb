// What is known of YAML text before it is parsed: that it is text at all, and how much of it a scanner may
// have to hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "config/yaml_document.h"

namespace kc::config {

/// The first byte that is not UTF-8, or that YAML forbids (a C0 control other than tab and line end; one of
/// them, 0x04, ends the input for yaml-cpp in silence).
struct BadByte {
  YamlPlace place;
  uint8_t value = 0;
  bool is_control = false;  // else not UTF-8
};
std::optional<BadByte> find_bad_byte(std::string_view text);

/// Whether the quoted scalar that begins at `at`, perhaps behind a tag or anchor, has its closing quote. True
/// when no quote is found there, or only behind a tag or anchor of more than 1 KiB. (yaml-cpp 0.7 takes a
/// line end before the end of the text for one.)
bool is_quote_closed(std::string_view text, size_t at);

/// Bounds from above what collections in brackets can hold, by looking at bytes alone: a scanner that must
/// know whether `[` begins a key queues every token up to the `]` before it gives the first. Brackets and
/// commas in other text count too (only a scanner could tell a comment from a line of a quoted scalar), which
/// matters beyond a million of them.
class FlowMeter {
 public:
  void feed(char c) {
    if (c == '[' || c == '{' || c == ',') ++nodes_;
    weight_ += weight_of(c);
  }
  /// At least as many as there are nodes in brackets, less one.
  uint64_t nodes() const { return nodes_; }
  /// At least two for every three tokens, as yaml-cpp counts them, that are not block structure.
  uint64_t weight() const { return weight_; }
  void reset_weight() { weight_ = 0; }

 private:
  static uint32_t weight_of(char c) {
    switch (c) {
      case '[':
      case ']':
      case '{':
      case '}':
      case ',':
      case ':':
      case '?':
      case '!':
      case '&':
      case '*':
        return 2;
      case '"':  // these come in pairs
      case '\'':
        return 1;
      default:
        return 0;
    }
  }
  uint64_t nodes_ = 0;
  uint64_t weight_ = 0;
};

/// Where nodes() passes `most`, if it does.
std::optional<YamlPlace> find_flow_excess(std::string_view text, uint64_t most);

}  // namespace kc::config
