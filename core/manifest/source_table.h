// The files that kernels are made from: each once, however many units use it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "manifest/paths.h"
#include "manifest/plan.h"

namespace kc::manifest {

/// Larger than any kernel source; refused before memory is taken.
inline constexpr uint64_t kMaxSourceBytes = 256ULL << 20;

/// Not for concurrent use.
class SourceTable {
 public:
  /// Appends to `sources`, which must outlive the table. `folder` is the manifest's, as opened.
  SourceTable(std::string folder, std::vector<Source>& sources, bool allow_absolute)
      : folder_(std::move(folder)), sources_(sources), allow_absolute_(allow_absolute) {}

  struct Entry {
    uint32_t index = 0;  // in `sources`, when there is no fault
    std::string fault;   // why the file cannot be a source: `the source "a.loom" does not exist`
  };
  /// `path` as written in a file whose folder is `base` (relative to the manifest's; may be empty). Looked at
  /// on the disk the first time only. The reference holds until the next call.
  const Entry& add(const std::string& base, const std::string& path, const base::Place& place);
  /// What may have been meant by a file that is not there; may be empty.
  std::string hint_for(const std::string& base, const std::string& path) const;
  /// The content of a source, read the first time and kept in Source::content; the pointer holds until the
  /// next add(). An error has no place.
  base::Result<const SourceContent*> content(uint32_t index);
  /// Whether the top manifest has `allow_absolute_paths: true`.
  bool allow_absolute() const { return allow_absolute_; }

 private:
  std::string fault_of(const std::string& path, const std::string& identifier) const;

  std::string folder_;
  std::vector<Source>& sources_;
  bool allow_absolute_;
  std::unordered_map<std::string, Entry> by_path_;  // by base and path as written
  std::unordered_map<std::string, uint32_t> by_identifier_;
};

}  // namespace kc::manifest
