// What a source tells the stand-in to do: words `@name` or `@name=value` behind the Tile IR header, separated
// by white space; `%XX` in a value is that byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kc::test {

class Directives {
 public:
  explicit Directives(std::string_view source);

  bool has(std::string_view name) const { return find(name).has_value(); }
  /// The last value given.
  std::optional<std::string> find(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  /// Ends the program with a message when the value is no number.
  std::optional<unsigned> number(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> words_;
};

}  // namespace kc::test
