// Which units of bundles a user names.
#include "report/unit_filter.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "unit/bundle/bundle_support.h"

namespace {

namespace bundle = kc::bundle;
using bundle::Reader;
using bundle::testing::Folder;
using bundle::testing::Input;
using bundle::testing::make_record;
using bundle::testing::small_input;
using kc::report::check_patterns;
using kc::report::is_named;

bool named(const std::string& pattern) {
  return is_named(make_record("matmul", "TM=64,TN=128", "sm_90"), {pattern});
}

}  // namespace

TEST_CASE("a unit is named by itself and its kernel and without target and by globs") {
  for (const char* pattern : {"matmul:TM=64,TN=128@sm_90", "matmul:TM=64,TN=128", "matmul", "mat*", "*@sm_90",
                              "matmul:TM=64,TN=*", "matmul:*@sm_?0", "*"}) {
    CAPTURE(pattern);
    CHECK(named(pattern));
  }
  for (const char* pattern : {"matmu", "matmul:TM=64", "matmul:TM=64,TN=128@sm_9", "matmul@sm_90", "sm_90",
                              "*@sm_80", "TM=64,TN=128", ""}) {
    CAPTURE(pattern);
    CHECK_FALSE(named(pattern));
  }
}

TEST_CASE("no patterns name everything and one of several is enough") {
  const bundle::Record record = make_record("matmul", "", "sm_90");
  CHECK(is_named(record, {}));
  CHECK(is_named(record, {"vec_add", "matmul"}));
  CHECK_FALSE(is_named(record, {"vec_add", "conv"}));
}

TEST_CASE("each pattern must name something in one of the bundles") {
  const Folder folder;
  REQUIRE(small_input().write(folder / "a.kcb"));
  Input other;
  other.add(make_record("conv", "", "sm_90"), bundle::testing::code_object(1));
  REQUIRE(other.write(folder / "b.kcb"));
  auto a = Reader::open(folder / "a.kcb");
  auto b = Reader::open(folder / "b.kcb");
  Reader* const both[] = {&*a, &*b};
  Reader* const first[] = {&*a};
  CHECK(check_patterns({}, both));
  CHECK(check_patterns({"conv", "matmul", "vec_*"}, both));
  const auto unknown = check_patterns({"matmul", "conv"}, first);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().kind == kc::base::ErrorKind::kInput);
  CHECK(unknown.error().message == "no unit or kernel in the bundle is named \"conv\"");
  const auto odd = check_patterns({"c\x1bx"}, both);
  REQUIRE_FALSE(odd);
  CHECK(odd.error().message == "no unit or kernel in either bundle is named \"c\\x1bx\"");
}

TEST_CASE("an unknown name is answered with the nearest of either bundle") {
  const Folder folder;
  REQUIRE(small_input().write(folder / "a.kcb"));
  Input other;
  other.add(make_record("conv", "", "sm_90"), bundle::testing::code_object(1));
  other.add(make_record("y", "", "sm_90"), bundle::testing::code_object(1));
  REQUIRE(other.write(folder / "b.kcb"));
  auto a = Reader::open(folder / "a.kcb");
  auto b = Reader::open(folder / "b.kcb");
  Reader* const both[] = {&*a, &*b};
  const auto hint = [&](const std::string& pattern) {
    const auto unknown = check_patterns({pattern}, both);
    return unknown ? "is known" : unknown.error().hint;
  };
  CHECK(hint("matmull") == "did you mean \"matmul\"?");
  CHECK(hint("con") == "did you mean \"conv\"?");
  CHECK(hint("matmul:TM=64,TN=63@sm_90") == "did you mean \"matmul:TM=64,TN=64@sm_90\"?");
  CHECK(hint("matmul:TM=64,TN=63") == "did you mean \"matmul:TM=64,TN=64\"?");
  CHECK(hint("x") == "did you mean \"y\"?");
  CHECK(hint("nothing_like_it").empty());
}

TEST_CASE("a search for a name that was meant ends in very large bundles") {
  const Folder folder;
  Input input;
  const std::string values = "=" + std::string(150, 'x');
  for (int i = 10'000; i < 14'000; ++i) {
    input.add(make_record("k", "TM" + values + std::to_string(i), "sm_90"), bundle::testing::code_object(1));
  }
  REQUIRE(input.write(folder / "a.kcb"));
  auto a = Reader::open(folder / "a.kcb");
  Reader* const bundles[] = {&*a};
  const auto loads = [&](const std::string& pattern) {
    const uint64_t before = a->page_loads();
    CHECK_FALSE(check_patterns({pattern}, bundles));
    return a->page_loads() - before;
  };
  // One pass over all for the pattern; the second ends early where names are long.
  const uint64_t once = loads("q");
  CHECK(loads("k:TM" + values + "y@sm_80") < once);
}

TEST_CASE("an empty bundle has no unit of any name") {
  const Folder folder;
  REQUIRE(Input().write(folder / "a.kcb"));
  auto a = Reader::open(folder / "a.kcb");
  Reader* const bundles[] = {&*a};
  CHECK(check_patterns({}, bundles));
  CHECK_FALSE(check_patterns({"*"}, bundles));
}
