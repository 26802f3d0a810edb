// The executor of every build but TSan's: a oneTBB arena. oneTBB is included here only.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <exception>
#include <string>

#include "engine/executor.h"

namespace kc::engine {
namespace {

class TbbExecutor final : public Executor {
 public:
  // No slot is reserved for a calling thread: the engine's main thread reads the socket and never computes.
  // TBB's limit counts the main thread, hence the one more.
  explicit TbbExecutor(unsigned slots)
      : limit_(oneapi::tbb::global_control::max_allowed_parallelism, slots + 1),
        arena_(static_cast<int>(slots), 0) {
    arena_.initialize();
  }

  void submit(std::function<void()> work) override { arena_.enqueue(std::move(work)); }

 private:
  oneapi::tbb::global_control limit_;
  oneapi::tbb::task_arena arena_;
};

}  // namespace

base::Result<std::unique_ptr<Executor>> Executor::make(unsigned slots) {
  try {
    return std::make_unique<TbbExecutor>(slots);
  } catch (const std::exception& error) {
    return base::fail(base::ErrorKind::kEnvironment,
                      std::string("cannot make the engine's threads: ") + error.what(), "try a smaller -j");
  }
}

}  // namespace kc::engine
