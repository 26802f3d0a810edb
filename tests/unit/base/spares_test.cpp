#include "base/spares.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace {

std::atomic<int> alive;

struct Counted {
  Counted() { ++alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --alive; }

  std::atomic<bool> is_used = false;
};

using Spares = kc::base::Spares<Counted>;

}  // namespace

TEST_CASE("a spare is given back once, to whoever asks first") {
  alive = 0;
  {
    Spares spares;
    CHECK(spares.take() == nullptr);
    auto made = std::make_unique<Counted>();
    const Counted* const which = made.get();
    spares.give_back(std::move(made));
    CHECK(alive == 1);
    auto taken = spares.take();
    CHECK(taken.get() == which);
    CHECK(spares.take() == nullptr);
    spares.give_back(std::move(taken));
  }
  CHECK(alive == 0);
}

TEST_CASE("spares beyond the slots are deleted") {
  alive = 0;
  {
    Spares spares;
    for (int i = 0; i < 100; ++i) spares.give_back(std::make_unique<Counted>());
    CHECK(alive == 32);
    for (int i = 0; i < 32; ++i) CHECK(spares.take() != nullptr);
    CHECK(spares.take() == nullptr);
  }
  CHECK(alive == 0);
}

TEST_CASE("no spare has two owners, whatever threads take and give back") {
  alive = 0;
  std::atomic<int> shared = 0;
  {
    Spares spares;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 20'000; ++k) {
          auto mine = spares.take();
          if (mine == nullptr) mine = std::make_unique<Counted>();
          if (mine->is_used.exchange(true)) ++shared;
          mine->is_used = false;
          spares.give_back(std::move(mine));
        }
      });
    }
    threads.clear();
    CHECK(alive <= 8);
  }
  CHECK(shared == 0);
  CHECK(alive == 0);
}
