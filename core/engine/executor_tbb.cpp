// The executor of every build but TSan's: a oneTBB arena. oneTBB is included here only.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "engine/executor.h"
#include "util/limits.h"

namespace kc::engine {
namespace {

class TbbExecutor final : public Executor {
 public:
  // No slot is reserved for a calling thread: the engine's main thread reads the socket and never computes.
  // TBB's limit counts the main thread, hence the one more.
  explicit TbbExecutor(unsigned slots)
      : limit_(oneapi::tbb::global_control::max_allowed_parallelism, slots + 1),
        stack_(oneapi::tbb::global_control::thread_stack_size, kCompileStack),
        arena_(static_cast<int>(slots), 0) {
    arena_.initialize();
  }

  void submit(std::function<void()> work) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    // An arena takes its tasks in any order, so each of them takes whatever comes first here.
    arena_.enqueue([this] { run_first(); });
  }

 private:
  void run_first() {
    std::function<void()> work;
    {
      const std::lock_guard lock(mutex_);
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }

  std::mutex mutex_;
  std::deque<std::function<void()>> queue_;
  oneapi::tbb::global_control limit_;
  oneapi::tbb::global_control stack_;
  oneapi::tbb::task_arena arena_;
};

}  // namespace

base::Result<std::unique_ptr<Executor>> Executor::make(unsigned slots) {
  // oneTBB ends the process when it cannot have a thread that it was promised.
  const unsigned threads = util::room_for_threads(slots, kCompileStack);
  if (threads == 0) {
    return base::fail(base::ErrorKind::kEnvironment, "cannot make a thread to compile on",
                      "a limit of processes, threads or address space (ulimit -u, ulimit -v) is reached");
  }
  try {
    return std::make_unique<TbbExecutor>(threads);
  } catch (const std::exception& error) {
    return base::fail(base::ErrorKind::kEnvironment,
                      std::string("cannot make the engine's threads: ") + error.what(), "try a smaller -j");
  }
}

}  // namespace kc::engine
