// Text with `{key}` in it, as `sources` and `entry` may have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/fields.h"

namespace kc::manifest {

class Template {
 public:
  /// `label` is what a message calls the text: `"entry"`. Unbalanced braces and names that are no
  /// configuration key are reported.
  static std::optional<Template> parse(const Text& text, std::string_view label, Faults& faults);

  /// Text that stands for itself, whatever braces it holds.
  static Template literal(Text text);

  const Text& text() const { return text_; }
  /// The keys between braces, each as often as written.
  const std::vector<std::string>& keys() const { return keys_; }
  bool is_literal() const { return keys_.empty(); }

  /// `value_of(key)` gives a std::string_view.
  template <typename ValueOf>
  std::string replace(ValueOf&& value_of) const {
    std::string out = literals_[0];
    for (size_t i = 0; i < keys_.size(); ++i) {
      out += value_of(keys_[i]);
      out += literals_[i + 1];
    }
    return out;
  }

 private:
  Text text_;
  std::vector<std::string> literals_;  // one more than keys_: before, between and behind them
  std::vector<std::string> keys_;
};

}  // namespace kc::manifest
