// What the files of kernels say about themselves without a compiler: each file is asked once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "manifest/faults.h"
#include "manifest/plan.h"
#include "manifest/source_table.h"

namespace kc::manifest {

/// A file that a kernel is made from, and where the kernel names it.
struct KernelFile {
  uint32_t index = 0;  // in the plan's sources
  std::string path;    // as written, or as a list or a pattern gave it
  YamlPlace place;
};

/// Sorted, each once.
using KeyNames = std::shared_ptr<const std::vector<std::string>>;
KeyNames make_key_names(std::vector<std::string> keys);

/// The configuration keys that a kernel declares. Cheap to copy: kernels that are made from the same files
/// share their names.
class DeclaredKeys {
 public:
  explicit DeclaredKeys(KeyNames sources, KeyNames libraries = nullptr)
      : sources_(std::move(sources)), libraries_(std::move(libraries)) {}

  bool contains(std::string_view key) const;
  /// One that sources and libraries declare is counted twice.
  size_t size() const;
  std::vector<std::string> sorted() const;
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const std::string& key : *sources_) visit(key);
    if (libraries_ == nullptr) return;
    for (const std::string& key : *libraries_) visit(key);
  }

 private:
  KeyNames sources_;
  KeyNames libraries_;  // null: none
};

/// Not for concurrent use; the references must outlive it.
class Modules {
 public:
  Modules(SourceTable& sources, Faults& faults) : sources_(sources), faults_(faults) {}

  struct Told {
    KeyNames keys;            // null: not known
    std::string silent;       // the first file that only its compiler can tell about
    bool is_readable = true;  // false: some file cannot be read, which was reported
  };
  /// The keys that `files` declare together. Precondition: the backend has `declared_keys`. The reference is
  /// the same for the same files and holds as long as this object.
  const Told& keys_of(const BackendRules& backend, const std::vector<KernelFile>& files);

  struct Exported {
    std::vector<std::string> names;
    bool is_known = false;
    bool is_readable = true;
  };
  const Exported& exported(const BackendRules& backend, const KernelFile& file);

 private:
  // Null, and reported the first time, when the file cannot be read.
  const SourceContent* read(const KernelFile& file);
  Told keys_of_file(const BackendRules& backend, const KernelFile& file);

  SourceTable& sources_;
  Faults& faults_;
  std::unordered_set<uint32_t> unreadable_;
  std::unordered_map<std::string, Told> told_;          // by backend and files
  std::unordered_map<std::string, Exported> exported_;  // by backend and file
};

}  // namespace kc::manifest
