// Where jobs run inside the engine: at most `slots` at a time, in the order they were submitted.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/error.h"

namespace kc::engine {

/// Of each thread that compiles. Compilers recurse over their input and are tested on main threads, which
/// have this much; oneTBB's own would be half of it.
inline constexpr size_t kCompileStack = 8U << 20;

class Executor {
 public:
  /// On fewer threads than `slots` where there is no room for more. ErrorKind::kEnvironment when there is
  /// none for a single one.
  static base::Result<std::unique_ptr<Executor>> make(unsigned slots);
  virtual ~Executor() = default;
  /// From one thread only. `work` must not throw.
  virtual void submit(std::function<void()> work) = 0;
};

}  // namespace kc::engine
