// Objects that cost much to make, kept for whoever needs one next.
#pragma once

#include <array>
#include <atomic>
#include <memory>

namespace kc::base {

/// Of static storage duration. Any number of threads; no locks, so that a child of fork() can use it too. Not
/// thread_local: that keeps an object for each thread that ever needed one until the thread ends, and a
/// library with thread_local destructors in memory as long.
template <typename T, typename Delete = std::default_delete<T>>
class Spares {
 public:
  using Pointer = std::unique_ptr<T, Delete>;

  constexpr Spares() = default;
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;
  ~Spares() {
    while (take() != nullptr) continue;
  }

  /// nullptr when there is none.
  Pointer take() {
    for (std::atomic<T*>& slot : slots_) {
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (T* found = slot.exchange(nullptr, std::memory_order_acquire)) return Pointer(found);
    }
    return nullptr;
  }

  /// Deletes it when there are enough.
  void give_back(Pointer spare) {
    for (std::atomic<T*>& slot : slots_) {
      T* none = nullptr;
      if (slot.load(std::memory_order_relaxed) != nullptr ||
          !slot.compare_exchange_strong(none, spare.get(), std::memory_order_release)) {
        continue;
      }
      static_cast<void>(spare.release());
      return;
    }
  }

 private:
  // As many as threads are commonly busy at once.
  std::array<std::atomic<T*>, 32> slots_{};
};

}  // namespace kc::base
