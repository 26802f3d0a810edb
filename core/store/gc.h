// Collection and whole-store tools: `kc gc`, `kc store verify` (`kc store stats`: stats.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/roots.h"

namespace kc::store {

struct GcOptions {
  std::optional<uint64_t> max_size;             // bytes, allocated
  std::optional<std::chrono::seconds> max_age;  // since last use
  bool dry_run = false;
  bool list_removed = false;  // fill GcReport::removed also without dry_run
  /// Survive like what is pinned; may be null. Pinned records and these keep the entries that they lead to.
  const KeySet* keep = nullptr;
  bool only_keep = false;  // all else goes, however young and however small the store is
};
struct GcReport {
  uint64_t entries_before = 0, records_before = 0;
  uint64_t bytes_before = 0;  // of both: max(st_size, st_blocks * 512)
  uint64_t entries_removed = 0, records_removed = 0, bytes_removed = 0;
  uint64_t temporaries_removed = 0;
  std::vector<std::string> removed;           // paths below v1/, only with dry_run or list_removed
  bool busy = false;                          // another collection runs: nothing was done
  uint64_t states_removed = 0;                // those unused for 90 days
  uint64_t entries_kept = 0, bytes_kept = 0;  // pinned or asked for: what no limit takes; bytes: of both
  std::string trouble;        // the first thing that could not be removed, and why; else empty
  uint64_t records_kept = 0;  // likewise
};
/// Oldest first until both limits hold; the records that lead to an entry go with it. When it is not known
/// what pins keep nothing is removed, and that is an error. With dry_run `removed` is what the same call
/// without it removes next, if nobody else uses the store.
/// Only names of the exact form are removed. A store that is not there is an empty one. Errors: a root that
/// is refused, as by Store::open.
base::Result<GcReport> collect(const std::string& root, const GcOptions& options);

struct VerifyReport {
  uint64_t entries = 0, records = 0;
  std::vector<std::string> damaged;  // file and what is wrong, also of those that were moved aside
  std::vector<std::string> newer;    // of a version this kc does not know: left alone
  uint64_t pins = 0;
  uint64_t repaired = 0;  // of the damaged: moved aside
  std::string trouble;    // the first that could not be moved aside, and why; else empty
};
/// Reads and checks every entry, record and pin. A record whose entry is gone is no damage. With `repair`
/// damaged entries and records are moved to tmp/ as a build does, and are misses then; else nothing is
/// changed. What cannot be read is named as damaged, but stays, and so do damaged pins, which nothing could
/// make again.
base::Result<VerifyReport> verify(const std::string& root, bool repair = false);

}  // namespace kc::store
