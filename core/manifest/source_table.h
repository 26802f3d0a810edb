// The files that kernels are made from: each once, however many units use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "manifest/plan.h"

namespace kc::manifest {

/// `a/./b/../c` -> `a/c`, without looking at the disk; leading `..` stay. Precondition: relative.
std::string normal_path(std::string_view path);

class SourceTable {
 public:
  /// Appends to `sources`, which must outlive the table. `folder` is the manifest's, as opened.
  SourceTable(std::string folder, std::vector<Source>& sources)
      : folder_(std::move(folder)), sources_(sources) {}

  struct Entry {
    uint32_t index = 0;  // in `sources`, when there is no fault
    std::string fault;   // why the file cannot be a source: `"a.loom" does not exist`
  };
  /// `path` as written, relative to the manifest's folder. Looked at on the disk the first time only.
  const Entry& add(const std::string& path, const base::Place& place);
  /// What may have been meant by a file that is not there; may be empty.
  std::string hint_for(const std::string& path) const;

 private:
  std::string fault_of(const std::string& path) const;

  std::string folder_;
  std::vector<Source>& sources_;
  std::unordered_map<std::string, Entry> by_path_;  // as written
  std::unordered_map<std::string, uint32_t> by_identifier_;
};

}  // namespace kc::manifest
