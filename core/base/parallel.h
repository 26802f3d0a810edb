// Plain parallelism on std::thread for work inside kc itself (hashing, compressing frames, checking hits).
// Compilers run on the engine's own arena instead.
#pragma once

#include <cstddef>
#include <functional>

namespace kc::base {

/// Calls `work(i)` once for each i in [0, count), from at most `threads` threads including the caller's, in
/// no particular order, and returns when all are done. `work` must not throw. When a thread cannot be started
/// the others do its share, so nothing is lost but speed.
void parallel_for(size_t count, unsigned threads, const std::function<void(size_t)>& work);

}  // namespace kc::base
