// Where jobs run inside the engine: at most `slots` at a time, in the order they were submitted.
#pragma once

#include <functional>
#include <memory>

#include "base/error.h"

namespace kc::engine {

class Executor {
 public:
  /// ErrorKind::kEnvironment when the threads cannot be had.
  static base::Result<std::unique_ptr<Executor>> make(unsigned slots);
  virtual ~Executor() = default;
  /// From one thread only. `work` must not throw.
  virtual void submit(std::function<void()> work) = 0;
};

}  // namespace kc::engine
