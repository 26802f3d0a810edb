// What is wrong with a manifest, collected: all of it is reported at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/yaml_document.h"

namespace kc::manifest {

using config::YamlPlace;

/// Errors and warnings of one file. Not for concurrent use.
class Faults {
 public:
  explicit Faults(std::string file) : file_(std::move(file)) {}

  void error(YamlPlace place, std::string message, std::string hint = {});
  void warning(YamlPlace place, std::string message, std::string hint = {});
  /// Takes errors that have their places already.
  void append(std::vector<base::Error> errors);

  /// How many errors there are: equal before and after a step means that the step found none.
  size_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  /// Whether a suggestion that costs a search is still worth it: who has made more errors than this reads no
  /// hints, and a hostile text could ask for half a million searches.
  bool wants_hints() const { return count_ < 200; }
  base::Place located(YamlPlace place) const { return {file_, place.line, place.column}; }

  /// In order of place, those of the whole file first.
  std::vector<base::Error> take_errors();
  std::vector<base::Error> take_warnings();

 private:
  std::string file_;
  std::vector<base::Error> errors_;
  std::vector<base::Error> warnings_;
  size_t count_ = 0;
};

/// Text of a manifest for a message: in double quotes, escaped, cut when it is long.
std::string in_quotes(std::string_view text);

}  // namespace kc::manifest
