#include "backend/loom/run/workers.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace kc::backend::loom {
namespace {

// Blocks that a workspace keeps for the next compile. A small kernel leaves less than this behind; a large
// one leaves tens of MiB, which would stay for good in every worker.
constexpr int64_t kKeptBytes = 4 << 20;
// Threads come and go; beyond as many as an engine may ever have slots, the workspace of one that was here
// longest ago is given up.
constexpr size_t kMostIdle = 1024;

}  // namespace

Workers::Lease::Lease(Workers& owner, std::unique_ptr<Worker> worker)
    : owner_(owner), worker_(std::move(worker)), scope_(worker_->memory) {
  if (!worker_->workspace) problem_ = owner_.api_.make_workspace(worker_->workspace);
}

Workers::Lease::~Lease() {
  if (std::uncaught_exceptions() > 0) {
    // Nobody knows what state it is in: never used again, nor released.
    static_cast<void>(worker_.release());
    return;
  }
  if (!worker_->workspace) return;
  if (worker_->memory.live > kKeptBytes) owner_.api_.trim(worker_->workspace.get());
  std::unique_ptr<Worker> oldest;  // gone outside the lock
  const std::lock_guard lock(owner_.mutex_);
  if (owner_.idle_.size() >= kMostIdle) {
    oldest = std::move(owner_.idle_.front());
    owner_.idle_.erase(owner_.idle_.begin());
  }
  owner_.idle_.push_back(std::move(worker_));
}

uint64_t Workers::Lease::peak_bytes() const {
  return static_cast<uint64_t>(std::max<int64_t>(worker_->memory.peak, 0));
}

Workers::Lease Workers::take() {
  const std::thread::id thread = std::this_thread::get_id();
  std::unique_ptr<Worker> worker;
  {
    const std::lock_guard lock(mutex_);
    const auto own = std::ranges::find(idle_, thread, [](const auto& idle) { return idle->thread; });
    if (own != idle_.end()) {
      worker = std::move(*own);
      idle_.erase(own);
    }
  }
  if (!worker) {
    worker = std::make_unique<Worker>();
    worker->thread = thread;
  }
  return Lease(*this, std::move(worker));
}

}  // namespace kc::backend::loom
