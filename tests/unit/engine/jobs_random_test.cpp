// The state machine of jobs against engines that do whatever they like.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "book.h"
#include "engine/jobs.h"

namespace {

using kc::backend::RunKind;
using kc::engine::EngineNumber;
using kc::engine::JobState;
using kc::test::Book;
using kc::test::kKilled;
using kc::test::kSegv;
using std::chrono::seconds;
using Ids = std::vector<uint32_t>;

}  // namespace

// Whatever engines do, every job is answered once, nothing runs beside too many others, what is told as
// compiled was compiled in an engine that nothing bad happened to meanwhile, and it comes to an end.
TEST_CASE("random conversations end with one answer a job and the guilty ones alone are blamed") {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::minstd_rand random(seed);
    const auto below = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
    const uint32_t slots = 1 + below(4);
    const uint32_t prefetch = below(4);
    constexpr uint32_t kJobs = 30;
    // What a job does to its engine whenever it runs.
    enum Habit : uint8_t { kGood, kCrashes, kTaints, kHangs };
    std::map<uint32_t, Habit> habits;
    for (uint32_t id = 1; id <= kJobs; ++id) {
      const uint32_t dice = below(12);
      habits[id] = dice == 0 ? kCrashes : dice == 1 ? kTaints : dice == 2 ? kHangs : kGood;
    }
    Book book(slots, prefetch);
    std::map<EngineNumber, Ids> running;
    uint32_t next = 1;
    int steps = 0;
    int outside_kills = below(2) == 0 ? 1 : 0;
    while (book.answers.size() < kJobs) {
      REQUIRE_MESSAGE(++steps < 20'000, "seed ", seed);
      REQUIRE_MESSAGE(!book.jobs.failure(), "seed ", seed);
      while (next <= kJobs && book.jobs.room() > 0 && below(3) != 0) {
        const bool child = below(5) == 0 && habits[next] == kGood;
        book.submit(next++, child ? RunKind::kChild : RunKind::kThreads, seconds(1));
      }
      std::erase_if(running, [&](const auto& one) { return !book.engines.contains(one.first); });
      size_t all = 0;
      for (const auto& [number, ids] : running) all += ids.size();
      REQUIRE(all <= slots);
      if (book.engines.empty()) continue;
      auto chosen = book.engines.begin();
      std::advance(chosen, below(static_cast<uint32_t>(book.engines.size())));
      const EngineNumber number = chosen->first;
      Ids& runs = running[number];
      // Starts the next of its jobs that waits, if it has a slot.
      if (below(2) == 0 && runs.size() < chosen->second.slots) {
        const auto waits = std::ranges::find_if(
            chosen->second.jobs, [&](uint32_t id) { return std::ranges::find(runs, id) == runs.end(); });
        if (waits != chosen->second.jobs.end()) {
          const uint32_t id = *waits;
          runs.push_back(id);
          book.start(id);
        }
        continue;
      }
      if (runs.empty()) continue;
      if (outside_kills > 0 && below(20) == 0) {
        --outside_kills;
        book.die(number, kKilled);
        continue;
      }
      const uint32_t id = runs[below(static_cast<uint32_t>(runs.size()))];
      switch (habits[id]) {
        case kGood:
          std::erase(runs, id);
          book.end(id, JobState::kCompiled, static_cast<uint8_t>(id), below(2) == 0);
          if (book.answers.contains(id)) {
            static_cast<void>(book.jobs.release(id));
            book.read();
          }
          break;
        case kCrashes:
          book.die(number, kSegv);
          break;
        case kTaints:
          book.end(id, JobState::kTainted);
          break;
        case kHangs:
          // It is late when only others like it are left running.
          if (std::ranges::all_of(running, [&](const auto& one) {
                return std::ranges::all_of(one.second,
                                           [&](uint32_t other) { return habits[other] == kHangs; });
              })) {
            book.now += seconds(2);
            book.expire();
          }
          break;
      }
    }
    for (const auto& [id, done] : book.answers) {
      const JobState expected = habits[id] == kGood      ? JobState::kCompiled
                                : habits[id] == kCrashes ? JobState::kCrashed
                                : habits[id] == kTaints  ? JobState::kTainted
                                                         : JobState::kTimeout;
      CHECK_MESSAGE(done.state == expected, "seed ", seed, " job ", id);
    }
    CHECK(book.order.size() == kJobs);
    CHECK(book.jobs.room() == slots + prefetch);
  }
}
