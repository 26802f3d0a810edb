// Counters of all processes that used a store (docs/store-format.md: stats.d). For people to look at: trouble
// with them is never reported.
#pragma once

#include <cstdint>

#include "store/layout.h"

namespace kc::store {

struct Tally {
  uint64_t hits = 0, misses = 0, puts = 0, corrupt = 0, soft_errors = 0, declined = 0;
  uint64_t saved_ms = 0;  // that the hits took to compile

  Tally& operator+=(const Tally& other);
  bool operator==(const Tally&) const = default;
};

/// One more file in stats.d; nothing when all counters are zero.
void write_tally(const Layout& layout, const Tally& tally);
/// The sum over all files.
Tally read_tallies(const Layout& layout);
/// Makes one file of all. Precondition: the caller holds gc.lock, as far as the file system has locks.
void fold_tallies(const Layout& layout);

}  // namespace kc::store
