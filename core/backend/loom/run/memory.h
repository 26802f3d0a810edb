// The allocators that the library gets. Out of memory is a status of the library, never an exception.
#pragma once

#include <cstdint>

#include "backend/loom/run/abi.h"

namespace kc::backend::loom {

/// What one worker holds of the counting allocator's memory, in bytes. One thread at a time.
struct MemoryCount {
  int64_t live = 0;
  int64_t peak = 0;
};

/// While it lives, what this thread takes from the counting allocator is counted in `count`.
class CountScope {
 public:
  explicit CountScope(MemoryCount& count);
  ~CountScope();
  CountScope(const CountScope&) = delete;
  CountScope& operator=(const CountScope&) = delete;

 private:
  MemoryCount* const before_;
};

/// For what lives in one worker: workspaces, modules, results.
abi::Allocator counting_allocator();
/// For what all workers share, and any of them may release: counts nothing.
abi::Allocator shared_allocator();

}  // namespace kc::backend::loom
