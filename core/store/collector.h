// The work behind `kc gc` and the automatic collection, and the walks over entries, records and pins that all
// tools share.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "store/frozen.h"
#include "store/gc.h"
#include "store/layout.h"
#include "store/roots.h"

namespace kc::store {

/// Calls `visit(folder, name, key)` for each name in the shard that has the exact form of its kind. Nothing
/// is known about the file but its name.
base::Result<void> visit_shard(
    const Layout& layout, Kind kind, unsigned shard,
    const std::function<void(int folder, const char* name, const base::Digest& key)>& visit);

/// Calls `visit` for each pin in the order of their names, with what it says or why it cannot be believed.
/// An error of `visit` ends it.
base::Result<void> visit_pins(
    const Layout& layout,
    const std::function<base::Result<void>(const std::string& name, Checked<Pin> pin)>& visit);
/// As read_pins().
base::Result<std::vector<Pin>> read_pins_in(const Layout& layout);

/// The same keys, sorted. Unlike a visit it is not disturbed by what is then done with the files.
base::Result<std::vector<base::Digest>> keys_in_shard(const Layout& layout, Kind kind, unsigned shard);

/// gc.lock, taken without waiting: held while the descriptor is open. No descriptor: somebody else has it.
/// Where locks do not work it is given to everyone; collections side by side only do the same work twice.
base::Result<base::FileDescriptor> try_collection_lock(const Layout& layout);

/// How long a build may be held up at its end. Enough to scan 100,000 files and remove most of what a
/// build adds; what is left over is for the next collection.
inline constexpr std::chrono::milliseconds kAutomaticTime{2000};

/// With a time limit, half of it is for the scan. A scan that ends early has seen some of the shards, which
/// are a fair sample because keys are digests: it brings them down to their share of max_size. Reading
/// where kept records lead is not limited.
base::Result<GcReport> collect_in(const Layout& layout, const GcOptions& options,
                                  std::optional<std::chrono::milliseconds> time_limit);

/// Whether a put of `bytes` decides to collect, from 64 random bits: with probability bytes / (limit_bytes /
/// 32), never without a limit.
bool draws_collection(uint64_t bytes, uint64_t limit_bytes, uint64_t draw);
/// The random bits of one put. Processes of a few puts each must together collect as often as one long one,
/// so nothing of it may depend on the process, or on how many it has drawn.
uint64_t random_draw();

/// What an automatic collection goes down to, the largest entry that is kept, and what a build's set should
/// not exceed: 80 % of the limit, so that a collection makes room for more than the next put.
inline uint64_t low_mark(uint64_t limit_bytes) {
  return limit_bytes - limit_bytes / 5;
}

}  // namespace kc::store
