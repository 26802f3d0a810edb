// The conditions of `kc diff --fail-on`: which texts are conditions, and when they hold.
#include "report/fail_on.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <string_view>

namespace {

using kc::artifact::Metric;
using kc::report::Condition;
using kc::report::parse_condition;
using kc::report::UnitChange;
using kc::report::UnitDiff;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

UnitDiff changed(Metric metric, uint64_t before, uint64_t after) {
  UnitDiff diff;
  diff.change = UnitChange::kChanged;
  if (before != after) diff.numbers = {{metric, before, after}};
  return diff;
}

// Whether the condition holds for a unit whose `metric` went from `before` to `after`.
bool holds(std::string_view text, Metric metric, uint64_t before, uint64_t after) {
  const auto condition = parse_condition(text);
  REQUIRE_MESSAGE(condition, text);
  return condition->held_by(changed(metric, before, after)).has_value();
}

bool holds(std::string_view text, uint64_t before, uint64_t after) {
  return holds(text, Metric::kRegisters, before, after);
}

std::string error_of(std::string_view text) {
  const auto condition = parse_condition(text);
  if (condition) return "is a condition";
  CHECK(condition.error().kind == kc::base::ErrorKind::kInput);
  return condition.error().text();
}

bool says(std::string_view text, std::string_view part) {
  const std::string error = error_of(text);
  INFO(error);
  return error.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a metric alone means any increase") {
  CHECK(holds("registers", 96, 97));
  CHECK(holds("registers", 0, 1));
  CHECK_FALSE(holds("registers", 96, 96));
  CHECK_FALSE(holds("registers", 96, 76));
}

TEST_CASE("an amount is what a metric may grow by") {
  CHECK_FALSE(holds("registers+8", 96, 104));
  CHECK(holds("registers+8", 96, 105));
  CHECK(holds("registers+0", 96, 97));
  CHECK_FALSE(holds("registers+8", 96, 1));
}

TEST_CASE("percent are of the number before") {
  CHECK_FALSE(holds("registers+10%", 100, 110));
  CHECK(holds("registers+10%", 100, 111));
  // 10 percent of 96 are 9.6.
  CHECK_FALSE(holds("registers+10%", 96, 105));
  CHECK(holds("registers+10%", 96, 106));
  CHECK(holds("registers+0%", 96, 97));
  CHECK_FALSE(holds("registers+100%", 96, 192));
  CHECK(holds("registers+100%", 96, 193));
}

TEST_CASE("from nothing any increase is more than any percent") {
  CHECK(holds("spills+1000000%", Metric::kSpills, 0, 1));
  CHECK_FALSE(holds("spills+10%", Metric::kSpills, 0, 0));
}

TEST_CASE("a decrease is asked for with a minus") {
  CHECK(holds("registers-19", 96, 76));
  CHECK_FALSE(holds("registers-20", 96, 76));
  CHECK(holds("registers-0", 96, 95));
  CHECK_FALSE(holds("registers-0", 96, 97));
  CHECK(holds("registers-10%", 96, 86));
  CHECK_FALSE(holds("registers-10%", 96, 87));
  CHECK_FALSE(holds("registers-100%", 96, 0));
}

TEST_CASE("numbers at the end of the range do not overflow") {
  CHECK(holds("code", Metric::kCode, 0, kMost));
  CHECK(holds("code+100%", Metric::kCode, kMost / 2 - 1, kMost));
  CHECK_FALSE(holds("code+100%", Metric::kCode, kMost / 2 + 1, kMost));
  CHECK_FALSE(holds("code+1000000%", Metric::kCode, kMost - 1, kMost));
  // 2^19 percent of these are 2^64, which would be 0 again.
  constexpr uint64_t kWraps = (uint64_t{1} << 45) * 100;
  CHECK_FALSE(holds("code+524288%", Metric::kCode, kWraps, kWraps + 1));
  CHECK(holds("registers+18446744073709551614", 0, kMost));
  CHECK_FALSE(holds("registers+18446744073709551615", 0, kMost));
  CHECK(holds("code-99%", Metric::kCode, kMost, 0));
}

TEST_CASE("amounts of bytes may be sizes") {
  CHECK_FALSE(holds("code+4KiB", Metric::kCode, 0, 4096));
  CHECK(holds("code+4KiB", Metric::kCode, 0, 4097));
  CHECK(holds("shared_memory+64K", Metric::kSharedMemory, 0, 65537));
  CHECK(holds("local_memory-1KiB", Metric::kLocalMemory, 2048, 1023));
  CHECK(says("registers+4KiB", "\"4KiB\" is not a whole number"));
  CHECK(says("spills+1K", "is not a whole number"));
}

TEST_CASE("a condition looks at its own metric alone") {
  CHECK_FALSE(holds("spills", Metric::kRegisters, 1, 2));
  CHECK_FALSE(holds("code", Metric::kSharedMemory, 1, 2));
}

TEST_CASE("a unit in one bundle alone has no numbers that change") {
  const auto condition = parse_condition("registers");
  UnitDiff added;
  added.change = UnitChange::kAdded;
  added.after.emplace().facts.registers = 200;
  CHECK_FALSE(condition->held_by(added));
}

TEST_CASE("numbers can be compared when both bundles know them") {
  const auto spills = parse_condition("spills");
  const auto registers = parse_condition("registers");
  UnitDiff diff;
  diff.after.emplace().facts.spills = 1;
  CHECK_FALSE(registers->can_compare(diff));
  CHECK_FALSE(spills->can_compare(diff));
  diff.before.emplace();
  CHECK(registers->can_compare(diff));
  CHECK_FALSE(spills->can_compare(diff));
  diff.before->facts.spills = 0;
  CHECK(spills->can_compare(diff));
}

TEST_CASE("added and removed and changed hold for such units alone") {
  for (const UnitChange change :
       {UnitChange::kAdded, UnitChange::kRemoved, UnitChange::kChanged, UnitChange::kSame}) {
    UnitDiff diff;
    diff.change = change;
    for (const std::string_view name : {"added", "removed", "changed"}) {
      CHECK(parse_condition(name)->held_by(diff).has_value() == (name == change_name(change)));
    }
  }
  UnitDiff added;
  added.change = UnitChange::kAdded;
  CHECK(parse_condition("added")->held_by(added) == "added");
}

TEST_CASE("a condition that holds says why") {
  CHECK(parse_condition("registers+10%")->held_by(changed(Metric::kRegisters, 96, 128)) ==
        "registers 96 -> 128");
  CHECK(parse_condition("changed")->held_by(changed(Metric::kRegisters, 96, 76)) == "registers 96 -> 76");
  CHECK(parse_condition("registers+10%")->text == "registers+10%");
}

TEST_CASE("an unknown metric is answered with the nearest or with all") {
  CHECK(says("register+10%", "there is no metric \"register\""));
  CHECK(says("register+10%", "did you mean \"registers\"?"));
  CHECK(says("Spills", "did you mean \"spills\"?"));
  CHECK(says("add", "did you mean \"added\"?") == false);  // too far to be a typo
  CHECK(says("add",
             "known are registers, local_memory, spills, shared_memory, code, added, removed and changed"));
  CHECK(says("", "there is no metric \"\""));
  CHECK(says("+3", "there is no metric \"\""));
  CHECK(says("local-memory", "there is no metric \"local\""));
  CHECK(says("\x1b[31m", "\\x1b[31m"));
}

TEST_CASE("what is no amount is refused") {
  for (const std::string_view text :
       {"registers+", "registers-", "registers+%", "registers+x", "registers++1", "registers+-1",
        "registers+1.5", "registers+ 1", "registers+1 %", "registers+10%%", "registers+18446744073709551616",
        "registers+1000001%", "code+4KiB%", "code+99999999999G", "code+"}) {
    CAPTURE(text);
    CHECK(says(text, "is not a"));
  }
  CHECK(says("registers +1", "did you mean \"registers\"?"));
  CHECK(says("added+5", "\"added\" takes no amount"));
  CHECK(says("code+x", "write `code`, `code+4KiB` or `code+10%`"));
}
