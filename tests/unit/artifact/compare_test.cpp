#include "artifact/compare.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace kc::artifact;

namespace {

Numbers numbers(uint64_t all) {
  return {all, all, all, all, all};
}

}  // namespace

TEST_CASE("every metric has a name that leads back to it") {
  for (const Metric metric : kMetrics) CHECK(find_metric(metric_name(metric)) == metric);
  CHECK(metric_name(Metric::kLocalMemory) == "local_memory");
  CHECK_FALSE(find_metric("local memory"));
  CHECK_FALSE(find_metric("Registers"));
  CHECK_FALSE(find_metric(""));
}

TEST_CASE("the numbers of a code object are its facts and its size") {
  KernelFacts facts;
  facts.registers = 96;
  facts.local_memory = 48;
  facts.spills = 3;
  facts.shared_memory = std::numeric_limits<uint32_t>::max();
  const Numbers found = numbers_of(facts, 9216);
  CHECK(found.of(Metric::kRegisters) == 96);
  CHECK(found.of(Metric::kLocalMemory) == 48);
  CHECK(found.of(Metric::kSpills) == 3);
  CHECK(found.of(Metric::kSharedMemory) == std::numeric_limits<uint32_t>::max());
  CHECK(found.of(Metric::kCode) == 9216);
  facts.spills.reset();
  CHECK_FALSE(numbers_of(facts, 0).of(Metric::kSpills));
}

TEST_CASE("changes name what differs in the order of the metrics") {
  CHECK(changes(numbers(7), numbers(7)).empty());
  Numbers after = numbers(7);
  after.code = 8;
  after.registers = 6;
  const auto found = changes(numbers(7), after);
  REQUIRE(found.size() == 2);
  CHECK(found[0].metric == Metric::kRegisters);
  CHECK(found[0].before == 7);
  CHECK(found[0].after == 6);
  CHECK(found[1].metric == Metric::kCode);
  CHECK(found[1].after == 8);
}

TEST_CASE("a number that only one of both tells is no change") {
  Numbers known = numbers(7);
  Numbers unknown = numbers(7);
  unknown.spills.reset();
  CHECK(changes(known, unknown).empty());
  CHECK(changes(unknown, known).empty());
  CHECK_FALSE(known == unknown);
  CHECK(changes(Numbers{}, numbers(7)).empty());
}

TEST_CASE("changes read as a line") {
  Numbers before = numbers(96);
  Numbers after = before;
  CHECK(text_of(changes(before, after)).empty());
  before.local_memory = 0;
  after.registers = 128;
  after.local_memory = 48;
  CHECK(text_of(changes(before, after)) == "registers 96 -> 128, local memory 0 -> 48");
  after = before;
  after.shared_memory = std::numeric_limits<uint64_t>::max();
  CHECK(text_of(changes(before, after)) == "shared memory 96 -> 18446744073709551615");
}
