// Parsed sources: one frozen link index a source set, shared by all its specializations.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "artifact/artifact.h"
#include "backend/loom/run/api.h"
#include "backend/run.h"

namespace kc::backend::loom {

/// Keeps the indexes used last. Thread-safe: an index that somebody uses lives on when it is dropped here,
/// and two threads that want the same one make it once.
class IndexCache {
 public:
  /// Sources of one kernel are some KiB, those of the largest known library 2 MiB; an index takes several
  /// times that.
  struct Limits {
    size_t sets = 256;
    uint64_t source_bytes = 32U << 20;
  };
  explicit IndexCache(const LoomApi& api, Limits limits) : api_(api), limits_(limits) {}

  struct Index {
    std::shared_ptr<const SourceSet> sources;  // the index borrows their bytes
    Object object;  // none: they are wrong, as `diagnostics` say, or `problem` does
    std::vector<artifact::Diagnostic> diagnostics;
    std::optional<Problem> problem;
  };
  std::shared_ptr<const Index> get(const std::shared_ptr<const SourceSet>& sources);

  size_t size() const;

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const Index> index;  // guarded by `mutex`
  };
  struct Entry {
    std::shared_ptr<Slot> slot;
    std::list<uint32_t>::iterator place;
    uint64_t bytes = 0;
  };
  std::shared_ptr<Slot> slot_for(const SourceSet& sources);
  std::shared_ptr<const Index> make(const std::shared_ptr<const SourceSet>& sources) const;

  const LoomApi& api_;
  const Limits limits_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<uint32_t, Entry> entries_;
  std::list<uint32_t> order_;  // used last in front
  uint64_t bytes_ = 0;
};

}  // namespace kc::backend::loom
