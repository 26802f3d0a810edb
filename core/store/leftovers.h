// What collections remove besides entries and records: what is left of processes that are gone, and what
// nobody asked for in a long time. Inner to core/store.
#pragma once

#include "store/gc.h"
#include "store/layout.h"

namespace kc::store {

/// Removes temporary files and states that are older than docs/store-format.md lets them be at `now_ns`, or
/// says what it would remove, and counts them in `report`.
void remove_leftovers(const Layout& layout, const GcOptions& options, int64_t now_ns, GcReport& report);

}  // namespace kc::store
