// What `sources`, `libraries` and `depends` name: lists in files and patterns become paths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "manifest/fields.h"
#include "manifest/pattern.h"
#include "manifest/plan.h"
#include "manifest/template.h"

namespace kc::manifest {

/// How an item of `sources`, `libraries` or `depends` is written.
enum class PathKind : uint8_t {
  kPath,     // `a.loom`; may hold `{key}`
  kPattern,  // `kernels/**/*.loom`: any path with `*`, `?` or `[`
  kList,     // `@list.txt`: a file with a path or pattern on each line
};
PathKind kind_of_path(std::string_view text);
/// False, and reported, when `text` is wrong on its own, without a look at the disk: empty, a pattern with
/// `{key}`, with `..` behind its first wildcard or with a slash at its end, a list whose name is a pattern or
/// holds braces. `label` is what a message calls it: `"sources"`, `an item of "sources"`.
bool check_path(const Text& text, std::string_view label, Faults& faults);

/// A path after lists and patterns. A file that a pattern found is that file whatever braces its name holds.
struct SourceName {
  Template path;
  std::string base;  // the folder that it is relative to, itself relative to the top manifest's; may be empty
};

inline constexpr uint64_t kMaxListBytes = 8ULL << 20;
/// Of all items of all kernels after lists and patterns: a few short lines can name many files many times.
inline constexpr uint64_t kMaxSourceNames = 1'000'000;

/// Reads lists and lists folders, each once, and appends both to `inputs`. Not for concurrent use; the
/// references must outlive it.
class SourceLists {
 public:
  /// `folder` is the top manifest's, as opened.
  SourceLists(std::string folder, std::vector<Input>& inputs, Faults& faults,
              uint64_t most_names = kMaxSourceNames)
      : folder_(std::move(folder)),
        inputs_(inputs),
        faults_(faults),
        most_names_(most_names),
        search_(folder_, inputs) {}

  /// The paths that `items`, relative to `base`, name, in order: files of a pattern sorted bytewise, lines of
  /// `@list.txt` (relative to the list's own folder; `#` begins a comment at the start of a line or behind a
  /// blank, blank lines count nothing) in its order. A file that several patterns find, or a pattern and a
  /// name, is there once, where it came first. Nothing, and reported, when an item is at fault: a list that
  /// is not there, a pattern that matches nothing, one path written twice. `label` is what a message calls
  /// them:
  /// `"sources"`. The text of each path is as written, that of a file that a pattern found its path relative
  /// to `base`; its place is where it or the pattern is written, in the manifest or in the list.
  std::optional<std::vector<SourceName>> expand(const std::vector<Text>& items, const std::string& base,
                                                std::string_view label, bool allow_absolute);

 private:
  class Expansion;
  // A list: its paths and the folder that they are relative to.
  struct List {
    std::string base;
    std::vector<Text> paths;
    bool is_faulty = false;  // and reported
  };
  // Null when the list is at fault, and reported: wherever it is named when it cannot be read, and once what
  // is wrong in it.
  const List* list_at(const Text& item, const std::string& base, bool allow_absolute);
  List parse_list(std::string_view text, const Text& path, const std::string& identifier);

  std::string folder_;
  std::vector<Input>& inputs_;
  Faults& faults_;
  uint64_t most_names_;
  PatternSearch search_;
  std::unordered_map<std::string, List> lists_;  // by identifier
  uint64_t names_ = 0;                           // given so far
};

}  // namespace kc::manifest
