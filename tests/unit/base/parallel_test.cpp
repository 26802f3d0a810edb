#include "base/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using kc::base::parallel_for;

TEST_CASE("each index is worked on exactly once whatever the number of threads") {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{1000}}) {
    for (const unsigned threads : {0U, 1U, 3U, 16U}) {
      std::vector<std::atomic<int>> seen(count);
      parallel_for(count, threads, [&](size_t i) { ++seen.at(i); });
      for (const auto& times : seen) CHECK(times == 1);
    }
  }
}

TEST_CASE("no more threads than asked for work at once") {
  std::mutex mutex;
  std::set<std::thread::id> ids;
  parallel_for(200, 3, [&](size_t) {
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  CHECK(ids.size() <= 3);
  ids.clear();
  parallel_for(200, 1, [&](size_t) { ids.insert(std::this_thread::get_id()); });
  CHECK(ids == std::set<std::thread::id>{std::this_thread::get_id()});
}
