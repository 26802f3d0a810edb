#include "manifest/template.h"

#include <utility>

#include "manifest/names.h"

namespace kc::manifest {

std::optional<Template> Template::parse(const Text& text, std::string_view label, Faults& faults) {
  Template out;
  out.text_ = text;
  std::string_view rest = text.text;
  for (;;) {
    const size_t open = rest.find_first_of("{}");
    out.literals_.emplace_back(rest.substr(0, open));
    if (open == std::string_view::npos) return out;
    const size_t close = rest.find_first_of("{}", open + 1);
    if (rest[open] == '}' || close == std::string_view::npos || rest[close] == '{') {
      faults.error(text.place,
                   util::format("a brace without its partner in {} ({})", label, in_quotes(text.text)),
                   "{key} stands for the value of a configuration key");
      return std::nullopt;
    }
    const std::string_view key = rest.substr(open + 1, close - open - 1);
    if (!is_configuration_key(key)) {
      faults.error(text.place,
                   util::format("{} between braces in {} is not a configuration key", in_quotes(key), label),
                   "{key} stands for the value of a configuration key");
      return std::nullopt;
    }
    out.keys_.emplace_back(key);
    rest.remove_prefix(close + 1);
  }
}

Template Template::literal(Text text) {
  Template out;
  out.literals_.push_back(text.text);
  out.text_ = std::move(text);
  return out;
}

}  // namespace kc::manifest
