// Counters of all processes that used a store (docs/store-format.md: stats.d). For people to look at: trouble
// with them is never reported.
#pragma once

#include <cstdint>

#include "store/layout.h"
#include "store/store.h"

namespace kc::store {

/// One more file in stats.d; nothing when all counters are zero.
void write_tally(const Layout& layout, const Counters& tally);
/// The sum over all files.
Counters read_tallies(const Layout& layout);
/// Makes one file of all. Precondition: the caller holds gc.lock, as far as the file system has locks.
void fold_tallies(const Layout& layout);

}  // namespace kc::store
