// Patterns in paths: `*`, `?` and `[...]` within one part, `**` for any number of folders, none included.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "manifest/plan.h"

namespace kc::manifest {

/// Whether a path is a pattern: it holds `*`, `?` or `[`.
bool is_pattern(std::string_view path);
/// Why a pattern could never name a file, to stand behind "the pattern "x" "; empty when it could.
std::string_view pattern_fault(std::string_view pattern);

/// More than a folder of kernels has; a pattern that finds more was not meant.
inline constexpr size_t kMaxFilesFound = 100'000;
inline constexpr size_t kMaxFoldersSeen = 100'000;
inline constexpr size_t kMaxFolderDepth = 64;

/// Looks files up by patterns. Lists each folder once for each part of a pattern that looks at it, and
/// appends it to `inputs`, which must outlive it. Not for concurrent use.
class PatternSearch {
 public:
  /// `folder` is the top manifest's, as opened.
  PatternSearch(std::string folder, std::vector<Input>& inputs)
      : folder_(std::move(folder)), inputs_(inputs) {}

  /// The files that `pattern`, relative to `base`, matches, as paths relative to `base` too, sorted bytewise;
  /// only regular files and links to them (a link that leads nowhere is left for whoever opens it to report).
  /// None is no error here. An error, without a place, is a sentence that follows the pattern: `finds more
  /// than ...`. Precondition: pattern_fault() has none.
  base::Result<std::vector<std::string>> find(const std::string& base, const std::string& pattern);

 private:
  class Walk;
  base::Result<const std::vector<std::string>*> names(const std::string& opened, const std::string& pattern);

  std::string folder_;
  std::vector<Input>& inputs_;
  std::unordered_map<std::string, std::vector<std::string>> listed_;  // by folder and pattern
};

}  // namespace kc::manifest
