#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace kc::base {

void parallel_for(size_t count, unsigned threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  const auto drain = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> helpers;
  const size_t wanted = std::min<size_t>(std::max(threads, 1U), count);
  for (size_t i = 1; i < wanted; ++i) {
    try {
      helpers.emplace_back(drain);
    } catch (const std::system_error&) {
      break;  // no room for another thread: the caller does the rest
    }
  }
  drain();
}

}  // namespace kc::base
