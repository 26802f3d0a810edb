// The executor of the TSan build: the same promise on plain threads, because an uninstrumented libtbb gives
// false races.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/executor.h"
#include "util/limits.h"

namespace kc::engine {
namespace {

class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(unsigned slots) {
    for (unsigned i = 0; i < slots; ++i) {
      threads_.emplace_back([this](const std::stop_token& stop) { drain(stop); });
    }
  }

  void submit(std::function<void()> work) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    changed_.notify_one();
  }

 private:
  void drain(const std::stop_token& stop) {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> queue_;
  std::vector<std::jthread> threads_;  // last: they stop before what they use is gone
};

}  // namespace

base::Result<std::unique_ptr<Executor>> Executor::make(unsigned slots) {
  const unsigned threads = util::room_for_threads(slots, kCompileStack);
  if (threads == 0) {
    return base::fail(base::ErrorKind::kEnvironment, "cannot make a thread to compile on",
                      "a limit of processes, threads or address space (ulimit -u, ulimit -v) is reached");
  }
  try {
    return std::make_unique<ThreadExecutor>(threads);
  } catch (const std::system_error& error) {
    return base::fail(base::ErrorKind::kEnvironment,
                      std::string("cannot make the engine's threads: ") + error.what(), "try a smaller -j");
  }
}

}  // namespace kc::engine
