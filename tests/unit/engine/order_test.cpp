#include "engine/order.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace {

using kc::engine::choose_slots;
using kc::engine::longest_first;
using kc::engine::quiet_time;
using kc::engine::SlotLimits;
using Seconds = std::vector<std::optional<double>>;
using Order = std::vector<uint32_t>;

// Limits that leave room for everything.
SlotLimits roomy() {
  SlotLimits out;
  out.cpus = 8;
  out.free_bytes = 1ULL << 40;
  out.open_files = 1 << 20;
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the longest compile comes first") {
  CHECK(longest_first(Seconds{1, 3, 2}) == Order{1, 2, 0});
  CHECK(longest_first(Seconds{}).empty());
}

TEST_CASE("an unknown compile counts as the median of the known") {
  CHECK(longest_first(Seconds{1, std::nullopt, 9, 5}) == Order{2, 1, 3, 0});
  CHECK(longest_first(Seconds{std::nullopt, 5, 9, 1}) == Order{2, 0, 1, 3});
}

TEST_CASE("compiles that are equal or all unknown keep their order") {
  CHECK(longest_first(Seconds{2, 2, 7, 2}) == Order{2, 0, 1, 3});
  CHECK(longest_first(Seconds{std::nullopt, std::nullopt, std::nullopt}) == Order{0, 1, 2});
  // More than a sort does in place, where one that is not stable keeps order by luck.
  Order as_given(1000);
  std::iota(as_given.begin(), as_given.end(), 0U);
  CHECK(longest_first(Seconds(1000, 2.0)) == as_given);
}

TEST_CASE("small answers wait for one another while few come, and not at all where many do") {
  using std::chrono::milliseconds;
  CHECK(quiet_time(1, 0.001, 0.005, 6) == milliseconds(5));
  CHECK(quiet_time(2, 0.001, 0.005, 6) == milliseconds(3));
  CHECK(quiet_time(2, 0.0012, 0.005, 6) == milliseconds(3));
  CHECK(quiet_time(16, 0.001, 0.005, 6) == milliseconds(0));
  CHECK(quiet_time(1, 60, 0.005, 6) == milliseconds(5));
}

TEST_CASE("slots are as many as CPUs or as asked for when nothing limits them") {
  SlotLimits limits = roomy();
  CHECK(choose_slots(limits).count == 8);
  CHECK(choose_slots(limits).why.empty());
  limits.jobs = 3;
  CHECK(choose_slots(limits).count == 3);
  limits.jobs = 20;
  CHECK(choose_slots(limits).count == 20);
  limits.jobs = 0;
  CHECK(choose_slots(limits).count == 1);
  limits.jobs = 100'000;
  CHECK(choose_slots(limits).count == 1024);
}

TEST_CASE("free memory limits slots by what a compile was seen to need") {
  SlotLimits limits = roomy();
  limits.peak_bytes = 1ULL << 30;
  limits.free_bytes = (3ULL << 30) + 5;
  CHECK(choose_slots(limits).count == 3);
  CHECK(choose_slots(limits).why == "free memory is enough for 3 slots");
  limits.jobs = 5;  // what was seen holds against -j too
  CHECK(choose_slots(limits).count == 3);
  limits.free_bytes = 0;
  CHECK(choose_slots(limits).count == 1);
  CHECK(choose_slots(limits).why == "free memory is enough for 1 slot");
}

TEST_CASE("free memory limits slots by an assumption only without an explicit number") {
  SlotLimits limits = roomy();
  limits.free_bytes = 2 * (160ULL << 20);
  CHECK(choose_slots(limits).count == 2);
  limits.jobs = 6;
  CHECK(choose_slots(limits).count == 6);
  CHECK(choose_slots(limits).why.empty());
}

TEST_CASE("the process limit and the open file limit leave room for fewer slots") {
  SlotLimits limits = roomy();
  limits.processes_left = 33;
  CHECK(choose_slots(limits).count == 4);
  CHECK(contains(choose_slots(limits).why, "process limit"));
  limits.processes_left = 0;
  CHECK(choose_slots(limits).count == 1);

  limits = roomy();
  limits.open_files = 64 + 16 * 5;
  CHECK(choose_slots(limits).count == 5);
  CHECK(contains(choose_slots(limits).why, "open-file limit"));
  limits.open_files = 0;  // the kernel does not say
  CHECK(choose_slots(limits).count == 8);
  for (const uint64_t few : {1, 63, 64, 65}) {
    limits.open_files = few;
    CHECK_MESSAGE(choose_slots(limits).count == 1, few);
  }
}

TEST_CASE("compiles in the engine need less than programs of their own") {
  SlotLimits limits = roomy();
  limits.children = false;
  limits.free_bytes = 3 * (40ULL << 20);
  CHECK(choose_slots(limits).count == 3);
  limits = roomy();
  limits.children = false;
  limits.processes_left = 8;
  CHECK(choose_slots(limits).count == 4);
  limits = roomy();
  limits.children = false;
  limits.open_files = 64 + 2 * 3;
  CHECK(choose_slots(limits).count == 3);
}

TEST_CASE("the address space limit leaves room for fewer stacks and heaps") {
  SlotLimits limits = roomy();
  limits.address_space = 1ULL << 30;
  const unsigned children = choose_slots(limits).count;
  CHECK(children < 8);
  CHECK(children >= 1);
  CHECK(contains(choose_slots(limits).why, "address-space limit"));
  limits.children = false;  // then what compiles take is in the engine's too
  limits.peak_bytes = 256ULL << 20;
  CHECK(choose_slots(limits).count < children);
  limits.address_space = 0;
  CHECK(choose_slots(limits).count == 1);
  limits.address_space = 1ULL << 40;
  CHECK(choose_slots(limits).count == 8);
}

TEST_CASE("the tightest limit is the one that is told") {
  SlotLimits limits = roomy();
  limits.processes_left = 48;
  limits.open_files = 64 + 16 * 2;
  CHECK(choose_slots(limits).count == 2);
  CHECK(contains(choose_slots(limits).why, "open-file limit"));
  limits.processes_left = 8;
  CHECK(choose_slots(limits).count == 1);
}
