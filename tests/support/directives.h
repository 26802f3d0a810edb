// What a source tells a stand-in compiler to do: words `@name` or `@name=value`, separated by white space;
// `%XX` in a value is that byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kc::test {

class Directives {
 public:
  Directives() = default;
  explicit Directives(std::string_view source);

  bool has(std::string_view name) const { return find(name).has_value(); }
  /// The last value given.
  std::optional<std::string> find(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  /// Ends the program with a message when the value is no number.
  std::optional<unsigned> number(std::string_view name) const;
  /// The same for a number of bytes: `64`, `4KiB`, `3MiB`, `2GiB`.
  std::optional<size_t> size(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> words_;
};

}  // namespace kc::test
