// Taking entries and records out of a store. Inner to core/store.
#pragma once

#include <sys/stat.h>

#include "base/digest.h"
#include "base/error.h"
#include "store/layout.h"

namespace kc::store {

/// Moves the file of `key` in `folder` to `tmp/bad-...`, where it stays for a day. `status`, which may be
/// null, is that of the file that was found damaged: another one, which has come into its place since, stays.
/// False when there was nothing to move.
base::Result<bool> move_aside(const Layout& layout, Kind kind, int folder, const base::Digest& key,
                              const struct stat* status);

/// Removes the file of `key`. False when there was none.
base::Result<bool> remove_stored(const Layout& layout, Kind kind, const base::Digest& key);

}  // namespace kc::store
