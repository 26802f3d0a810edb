// The grammar of names that writer and reader hold.
#include "bundle/grammar.h"

#include <doctest/doctest.h>

#include "bundle_support.h"

using namespace kc;
using namespace kc::bundle;
using namespace kc::bundle::testing;

TEST_CASE("kernel names follow the manifest") {
  for (const char* good : {"a", "_x", "9lives", "qwen38.attention-decode_1"}) CHECK(is_kernel_name(good));
  for (const char* bad : {"", ".a", "-a", "a b", "a/b", "a@b", "a:b", "\xc3\xa4"})
    CHECK(!is_kernel_name(bad));
  CHECK(is_kernel_name(std::string(128, 'k')));
  CHECK(!is_kernel_name(std::string(129, 'k')));
}

TEST_CASE("a specialization is accepted in its canonical form alone") {
  for (const char* good : {"", "TM=64", "TM=64,TN=128", "a=,b=%20", "a.b=1,a_b=2", "x=-1.5e+3", "x=%FF"}) {
    CAPTURE(good);
    CHECK(is_specialization(good));
  }
  for (const char* bad : {"TM", "=64", "TM=64,", ",TM=64", "TN=128,TM=64", "TM=64,TM=64", "1a=2", "TM=6 4",
                          "TM=%2", "TM=%2g", "TM=%ff", "TM=%41", "TM=64,TN", "TM=a=b", "T-M=1"}) {
    CAPTURE(bad);
    CHECK(!is_specialization(bad));
  }
  CHECK(is_specialization("k=" + std::string(1024, 'v')));
  CHECK(!is_specialization("k=" + std::string(1025, 'v')));
  CHECK(is_specialization(std::string(128, 'k') + "=1"));
  CHECK(!is_specialization(std::string(129, 'k') + "=1"));
}

TEST_CASE("each field of a record has its own fault") {
  CHECK(!fault_of(make_record("a", "", "sm_90")));
  const auto fault = [](auto change) {
    Record record = make_record("a", "", "sm_90");
    change(record);
    return fault_of(record).value_or("none");
  };
  CHECK(contains(fault([](Record& r) { r.kernel = ""; }), "kernel"));
  CHECK(contains(fault([](Record& r) { r.specialization = "x"; }), "specialization"));
  CHECK(contains(fault([](Record& r) { r.target = "GFX942"; }), "the target is"));
  CHECK(contains(fault([](Record& r) { r.found_target = ""; }), "found in the code"));
  CHECK(contains(fault([](Record& r) { r.symbol = "a\nb"; }), "control"));
  CHECK(contains(fault([](Record& r) { r.entry = std::string(4097, 'e'); }), "too long"));
  CHECK(contains(fault([](Record& r) { r.facts.arguments.resize(32765); }), "arguments"));
  CHECK(contains(fault([](Record& r) { r.metadata = {{"b", ""}, {"a", ""}}; }), "metadata"));
  CHECK(contains(fault([](Record& r) { r.metadata = {{"a", ""}, {"a", ""}}; }), "metadata"));
  CHECK(contains(fault([](Record& r) { r.metadata = {{"", ""}}; }), "metadata"));
}
