// Workspaces of the library: one a thread, which a compile in that thread has to itself.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "backend/loom/run/api.h"
#include "backend/loom/run/memory.h"

namespace kc::backend::loom {

/// Hands out workspaces and takes them back, each only to the thread that it was made for. Thread-safe.
class Workers {
 public:
  explicit Workers(const LoomApi& api) : api_(api) {}

  struct Worker {
    std::thread::id thread;
    Object workspace;
    MemoryCount memory;
  };

  /// One compile's worker; everything made with it must be gone before this is, in the same thread. Counts
  /// what the library allocates in this thread meanwhile.
  class Lease {
   public:
    Lease(Workers& owner, std::unique_ptr<Worker> worker);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    abi::Handle workspace() const { return worker_->workspace.get(); }
    uint64_t peak_bytes() const;
    /// Why there is no workspace; nothing when there is one.
    const std::optional<Problem>& problem() const { return problem_; }

   private:
    Workers& owner_;
    std::unique_ptr<Worker> worker_;
    CountScope scope_;
    std::optional<Problem> problem_;
  };
  Lease take();

 private:
  const LoomApi& api_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;  // guarded by mutex_
};

}  // namespace kc::backend::loom
