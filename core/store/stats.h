// What a store holds and what was done with it: `kc store stats`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/store.h"

namespace kc::store {

struct Stats {
  uint64_t entries = 0, records = 0, bytes = 0;  // bytes: of both
  uint64_t states = 0, temporaries = 0, quarantined = 0, pins = 0;
  std::map<std::string, uint64_t> by_backend_target;  // "tileiras sm_90" -> entries
  double compile_seconds = 0;                         // that the entries took to make
  int64_t oldest_s = 0, newest_s = 0;                 // last use of entries, since the epoch
  Counters counters;  // of all processes that used the store: folded from stats.d
  // Whether the file system has the locks that single flight needs; nothing when that cannot be tried: the
  // store was never written, or may not be.
  std::optional<bool> has_locks;
  std::vector<std::string> unreadable;  // folders that could not be read, and why: not counted
};
/// A store that is not there is an empty one. Errors: a root that is refused, as by Store::open.
base::Result<Stats> stats(const std::string& root);

/// A store that is only read, under the user's own.
struct TierStats {
  std::string directory;
  uint64_t entries = 0, records = 0, bytes = 0;  // bytes: of both
  std::string trouble;                           // why it, or a part of it, is left out; else empty
};
std::vector<TierStats> tier_stats(const std::vector<std::string>& directories);

}  // namespace kc::store
