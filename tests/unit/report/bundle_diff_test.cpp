// What differs between two bundles, and how it is told.
#include "report/bundle_diff.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "unit/bundle/bundle_support.h"

namespace {

namespace base = kc::base;
namespace bundle = kc::bundle;
using bundle::Record;
using bundle::testing::code_object;
using bundle::testing::Folder;
using bundle::testing::Input;
using bundle::testing::make_record;
using bundle::testing::small_input;
using kc::report::compare_records;
using kc::report::DiffCounts;
using kc::report::UnitChange;
using kc::report::UnitDiff;

// A line a unit, `~ unit text`, but for those that are the same.
struct Told {
  std::string text;
  DiffCounts counts;
  std::string error;
};

Told diff(const std::string& before, const std::string& after,
          const std::vector<std::string>& patterns = {}) {
  auto a = bundle::Reader::open(before);
  auto b = bundle::Reader::open(after);
  REQUIRE(a);
  REQUIRE(b);
  Told out;
  const auto counts = kc::report::diff_bundles(*a, *b, patterns, [&](const UnitDiff& unit) {
    if (unit.change == UnitChange::kSame) return true;
    out.text += unit.record().unit() + ": " + unit.text() + "\n";
    return true;
  });
  if (counts) {
    out.counts = *counts;
  } else {
    CHECK(counts.error().kind == base::ErrorKind::kFailed);
    out.error = counts.error().text();
  }
  return out;
}

Record sample() {
  Record record = make_record("matmul", "TM=64", "sm_90");
  record.artifact_digest = base::sha256("code");
  record.artifact_size = 9216;
  return record;
}

// How a unit that differs from sample() by `change` is told.
std::string told(const std::function<void(Record&)>& change) {
  Record after = sample();
  change(after);
  const UnitDiff diff = compare_records(sample(), after);
  CHECK(diff.change == (diff.text() == "same" ? UnitChange::kSame : UnitChange::kChanged));
  return diff.text();
}

}  // namespace

TEST_CASE("a bundle does not differ from itself") {
  const Folder folder;
  REQUIRE(small_input().write(folder / "a.kcb"));
  const Told told = diff(folder / "a.kcb", folder / "a.kcb");
  CHECK(told.text.empty());
  CHECK(told.counts.same == 12);
  CHECK(told.counts.added + told.counts.removed + told.counts.changed == 0);
}

TEST_CASE("units come and go and change in the order of their names") {
  const Folder folder;
  Input input = small_input();
  REQUIRE(input.write(folder / "a.kcb"));
  std::erase_if(input.records, [](const Record& r) { return r.kernel == "vec_add" && r.target == "sm_80"; });
  input.artifacts.resize(input.records.size());
  // Code objects are the record's own, so that what stays is the same.
  const Input original = small_input();
  for (size_t i = 0; i < input.records.size(); ++i) {
    for (size_t j = 0; j < original.records.size(); ++j) {
      if (original.records[j].unit() == input.records[i].unit()) input.artifacts[i] = original.artifacts[j];
    }
  }
  input.add(make_record("add", "", "sm_90"), code_object(1));
  input.add(make_record("zero", "", "sm_90"), code_object(2));
  for (Record& record : input.records) {
    if (record.unit() == "matmul:TM=64,TN=64@sm_90") record.facts.registers = 76;
  }
  REQUIRE(input.write(folder / "b.kcb"));
  const Told told = diff(folder / "a.kcb", folder / "b.kcb");
  CHECK(told.text ==
        "add@sm_90: added\n"
        "matmul:TM=64,TN=64@sm_90: registers 96 -> 76\n"
        "vec_add@sm_80: removed\n"
        "zero@sm_90: added\n");
  CHECK(told.counts.added == 2);
  CHECK(told.counts.removed == 1);
  CHECK(told.counts.changed == 1);
  CHECK(told.counts.same == 10);

  const Told back = diff(folder / "b.kcb", folder / "a.kcb");
  CHECK(back.counts.added == 1);
  CHECK(back.counts.removed == 2);
  CHECK(back.text.find("matmul:TM=64,TN=64@sm_90: registers 76 -> 96\n") != std::string::npos);

  const Told some = diff(folder / "a.kcb", folder / "b.kcb", {"vec_*", "zero"});
  CHECK(some.text == "vec_add@sm_80: removed\nzero@sm_90: added\n");
  CHECK(some.counts.same == 2);
}

TEST_CASE("an empty bundle has lost everything") {
  const Folder folder;
  REQUIRE(small_input().write(folder / "a.kcb"));
  REQUIRE(Input().write(folder / "b.kcb"));
  CHECK(diff(folder / "a.kcb", folder / "b.kcb").counts.removed == 12);
  CHECK(diff(folder / "b.kcb", folder / "a.kcb").counts.added == 12);
  CHECK(diff(folder / "b.kcb", folder / "b.kcb").counts.same == 0);
}

TEST_CASE("the caller may stop a comparison") {
  const Folder folder;
  REQUIRE(small_input().write(folder / "a.kcb"));
  auto a = bundle::Reader::open(folder / "a.kcb");
  auto b = bundle::Reader::open(folder / "a.kcb");
  int seen = 0;
  const auto counts = kc::report::diff_bundles(*a, *b, {}, [&](const UnitDiff&) { return ++seen < 3; });
  REQUIRE(counts);
  CHECK(counts->same == 3);
}

TEST_CASE("an index that is not sorted is damage") {
  const Folder folder;
  REQUIRE(small_input().write(folder / "a.kcb"));
  bundle::testing::Image image(folder / "a.kcb");
  // Two index entries change places; all digests are made right again, as who forges a bundle would.
  const auto at = image.bytes.begin();
  const auto first = at + static_cast<std::ptrdiff_t>(image.index(3));
  std::swap_ranges(first, first + bundle::kIndexSize, at + static_cast<std::ptrdiff_t>(image.index(7)));
  image.seal();
  bundle::testing::write_file(folder / "b.kcb", image.bytes);
  for (const bool swapped : {false, true}) {
    const std::string a = folder / (swapped ? "b.kcb" : "a.kcb");
    const std::string b = folder / (swapped ? "a.kcb" : "b.kcb");
    const std::string error = diff(a, b).error;
    CHECK(error.find("b.kcb: the bundle is damaged: record 4 is not in order") != std::string::npos);
  }
}

TEST_CASE("a damaged page ends a comparison with the name of its bundle") {
  const Folder folder;
  REQUIRE(small_input().write(folder / "a.kcb"));
  bundle::testing::Image image(folder / "a.kcb");
  image.bytes[image.detail(11) + 40] ^= 1;
  bundle::testing::write_file(folder / "b.kcb", image.bytes);
  CHECK(diff(folder / "a.kcb", folder / "b.kcb").error.find("b.kcb: the bundle is damaged") !=
        std::string::npos);
}

TEST_CASE("equal numbers over other code are told") {
  CHECK(told([](Record& r) { r.artifact_digest = base::sha256("other"); }) == "code differs");
  CHECK(told([](Record& r) {
          r.artifact_digest = base::sha256("other");
          r.facts.registers = 76;
          r.artifact_size = 9088;
        }) == "registers 96 -> 76, code 9216 -> 9088");
}

TEST_CASE("all that a loader sees makes a unit changed") {
  CHECK(told([](Record& r) { r.found_target = "sm_90"; }) == "found target sm_90a -> sm_90");
  CHECK(told([](Record& r) { r.symbol = "other"; }) == "symbol matmul -> other");
  CHECK(told([](Record& r) { r.is_default = true; }) == "now the default");
  CHECK(told([](Record& r) { r.lowest_driver = 0; }) == "lowest driver 580 -> none");
  CHECK(told([](Record& r) { r.facts.spills = 4; }) == "spills unknown -> 4");
  CHECK(told([](Record& r) { r.facts.scalar_registers = 0; }) == "scalar registers none -> 0");
  CHECK(told([](Record& r) { r.facts.arguments.pop_back(); }) == "arguments 3 of 24 B -> 2 of 24 B");
  CHECK(told([](Record& r) { r.facts.argument_bytes = 20; }) == "arguments 3 of 24 B -> 3 of 20 B");
  CHECK(told([](Record& r) { r.facts.required_block = {128, 1, 1}; }) == "required block none -> 128x1x1");
  CHECK(told([](Record& r) { r.facts.max_threads = 0; }) == "most threads 1024 -> none");
  CHECK(told([](Record& r) { r.facts.wave_size = 64; }) == "wave size 32 -> 64");
}

TEST_CASE("metadata that differs is named") {
  Record before = sample();
  Record after = sample();
  before.metadata = {{"a", "1"}, {"b", "1"}, {"d", "1"}};
  after.metadata = {{"b", "2"}, {"c", "1"}, {"d", "1"}};
  CHECK(compare_records(before, after).text() == "metadata a, b and c differs");
  CHECK(compare_records(after, before).text() == "metadata a, b and c differs");
  CHECK(compare_records(after, sample()).text() == "metadata b, c and d differs");
}

TEST_CASE("equal code of another compiler is the same unit") {
  const auto change = [](Record& r) {
    r.compiler_version = "13.5.1";
    r.compiler_identity = base::sha256("another");
    r.toolkit = "13.5";
    r.content_key = base::sha256("another");
    r.frame = 3;
    r.frame_offset = 64;
    r.backend = "other";
    r.entry = "other";
  };
  CHECK(told(change) == "same");
  Record after = sample();
  change(after);
  CHECK(kc::report::compiler_text(sample(), after) ==
        "compiler tileiras 13.4.92 -> 13.5.1, toolkit 13.4 -> 13.5");
  after = sample();
  CHECK(kc::report::compiler_text(sample(), after).empty());
  after.compiler_identity = base::sha256("another");
  CHECK(kc::report::compiler_text(sample(), after) == "another compiler tileiras 13.4.92");
  after.compiler = "nvrtc";
  CHECK(kc::report::compiler_text(sample(), after) == "compiler tileiras 13.4.92 -> nvrtc 13.4.92");
}
