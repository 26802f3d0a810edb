// Which module a link gave: its digest, remembered. The target comes in behind the link, so all targets of
// one entry and configuration get the same module, and only the first of them needs to serialize it.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "backend/run.h"
#include "base/digest.h"

namespace kc::backend::loom {

/// Thread-safe. Everything that a link reads decides about what is found: the source set (by `id`), the entry
/// and the configuration in its order; the library is the runner's one.
class ModuleDigests {
 public:
  /// 8 MiB. When it is full it stays as it is: units come sorted, and a table that drops the oldest would
  /// drop each digest just before it is wanted.
  static constexpr size_t kMost = 65'536;
  explicit ModuleDigests(size_t most = kMost) : most_(most) {}

  /// What a request is remembered by. Precondition: it has sources.
  static base::Digest key(const CompileRequest& request);

  std::optional<base::Digest> find(const base::Digest& key) const;
  void add(const base::Digest& key, const base::Digest& module);

 private:
  const size_t most_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<base::Digest, base::Digest> all_;
};

}  // namespace kc::backend::loom
