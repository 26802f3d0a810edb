// What is wrong with a manifest, collected: all of it is reported at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/yaml_document.h"

namespace kc::manifest {

using config::YamlPlace;

/// Errors and warnings of a manifest and of the files that it names. Not for concurrent use.
class Faults {
 public:
  /// `file` gets the number 0.
  explicit Faults(const std::string& file) { add_file(file); }

  /// The number of a further file, for YamlPlace::file; the same path again gives the same number.
  uint32_t add_file(const std::string& path);

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
  base::Place located(YamlPlace place) const { return {files_[place.file], place.line, place.column}; }

  /// In order of file (as added) and place, those of a whole file first.
  std::vector<base::Error> take_errors();
  std::vector<base::Error> take_warnings();

 private:
  std::vector<base::Error> sorted(std::vector<base::Error> errors) const;

  std::vector<std::string> files_;
  std::unordered_map<std::string, uint32_t> numbers_;  // of files_
  std::vector<base::Error> errors_;
  std::vector<base::Error> warnings_;
  size_t count_ = 0;
};

/// Text of a manifest for a message: in double quotes, escaped, cut when it is long.
std::string in_quotes(std::string_view text);

}  // namespace kc::manifest
