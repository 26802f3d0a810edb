// A manifest and those that it includes, read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "manifest/draft.h"
#include "manifest/resolve.h"

namespace kc::manifest {

struct ManifestFile {
  std::string identifier;  // relative to the top manifest's folder
  base::FileTuple tuple;
  ManifestDraft draft;
  FileDefaults defaults;  // points into this draft and those of the includers
};

/// Bounds on what a few lines of includes could ask for.
inline constexpr size_t kMaxManifestFiles = 1'000;
inline constexpr size_t kMaxIncludeDepth = 64;
inline constexpr uint64_t kMaxManifestTotal = 64ULL << 20;  // bytes
/// Options, configuration values and libraries of `defaults`, counted again in each file that has them from
/// its includers.
inline constexpr size_t kMaxDefaults = 200'000;

/// Reads a manifest and what it includes, each file once however many include it: it has the defaults of the
/// first that does. Faults are reported, files appended to `inputs`; both references must outlive it. Not for
/// concurrent use.
class ManifestFiles {
 public:
  /// `folder` is the top manifest's, as opened.
  ManifestFiles(std::string folder, std::vector<Input>& inputs, Faults& faults)
      : folder_(std::move(folder)), inputs_(inputs), faults_(faults) {}

  /// Takes the text of the top manifest, which is the last of `inputs`, and reads what it includes.
  void read(std::string_view text);

  /// In the order read, the top manifest first. They stay where they are.
  const std::deque<ManifestFile>& files() const { return files_; }
  /// In the order of their kernels: what a file includes, in its order, then the file.
  const std::vector<const ManifestFile*>& in_kernel_order() const { return in_kernel_order_; }

 private:
  void add(std::string identifier, const Input& input, std::string_view text, const ManifestFile* includer);
  void include(const ManifestFile& from, const Text& path);
  FileDefaults defaults_of(const ManifestFile& file, const ManifestFile* includer) const;
  /// `a.yaml -> b.yaml -> a.yaml`; `begin` is in open_.
  std::string cycle(size_t begin) const;

  std::string folder_;
  std::vector<Input>& inputs_;
  Faults& faults_;
  std::deque<ManifestFile> files_;
  std::vector<const ManifestFile*> in_kernel_order_;
  std::vector<const ManifestFile*> open_;  // from the top one to that which is being read
  uint64_t bytes_ = 0;                     // of all files so far
  size_t defaults_ = 0;                    // see kMaxDefaults
};

}  // namespace kc::manifest
