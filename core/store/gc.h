// Collection and whole-store tools: `kc gc`, `kc store stats`, `kc store verify`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace kc::store {

struct GcOptions {
  std::optional<uint64_t> max_size;             // bytes, allocated
  std::optional<std::chrono::seconds> max_age;  // since last use
  bool dry_run = false;
  bool list_removed = false;  // fill GcReport::removed also without dry_run
};
struct GcReport {
  uint64_t entries_before = 0, records_before = 0;
  uint64_t bytes_before = 0;  // of both: max(st_size, st_blocks * 512)
  uint64_t entries_removed = 0, records_removed = 0, bytes_removed = 0;
  uint64_t temporaries_removed = 0;
  std::vector<std::string> removed;  // paths below v1/, only with dry_run or list_removed
  bool busy = false;                 // another collection runs: nothing was done
  uint64_t states_removed = 0;       // those unused for 90 days
  std::string trouble;               // the first thing that could not be removed, and why; else empty
};
/// Oldest first until both limits hold. Only names of the exact form are removed. A store that is not there
/// is an empty one. Errors: a root that is refused, as by Store::open.
base::Result<GcReport> collect(const std::string& root, const GcOptions& options);

struct Stats {
  uint64_t entries = 0, records = 0, bytes = 0;  // bytes: of both
  uint64_t states = 0, temporaries = 0, quarantined = 0;
  std::map<std::string, uint64_t> by_backend_target;         // "tileiras sm_90" -> entries
  double compile_seconds = 0;                                // that the entries took to make
  int64_t oldest_s = 0, newest_s = 0;                        // last use of entries, since the epoch
  uint64_t hits = 0, misses = 0, puts = 0, soft_errors = 0;  // folded from stats.d
  uint64_t corrupt = 0, declined = 0;                        // likewise
  std::vector<std::string> unreadable;  // folders that could not be read, and why: not counted
};
base::Result<Stats> stats(const std::string& root);

struct VerifyReport {
  uint64_t entries = 0, records = 0;
  std::vector<std::string> damaged;  // file and what is wrong
  std::vector<std::string> newer;    // of a version this kc does not know: left alone
};
/// Reads and checks every entry and record. A record whose entry is gone is no damage. Changes nothing.
base::Result<VerifyReport> verify(const std::string& root);

}  // namespace kc::store
