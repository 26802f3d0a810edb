// The JSON of records and of what differs, field by field as docs/json.md lists them.
#include "report/bundle_json.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unit/bundle/bundle_support.h"

namespace {

namespace base = kc::base;
namespace bundle = kc::bundle;
using bundle::Record;
using bundle::testing::make_record;
using kc::util::Json;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  return out;
}

Record sample() {
  Record record = make_record("matmul", "TM=64,act=a%2Cb", "sm_90");
  record.artifact_digest = base::sha256("code");
  record.artifact_size = 9216;
  record.frame = 3;
  record.frame_offset = 64;
  record.metadata = {{"owner", "attention"}, {"when", "m=64;m=128,name=x%3By"}};
  return record;
}

}  // namespace

TEST_CASE("configurations are read with their values decoded") {
  using kc::report::Pairs;
  CHECK(kc::report::parse_configuration("") == Pairs{});
  CHECK(kc::report::parse_configuration("TM=64,act=a%2Cb%25,e=") ==
        Pairs{{"TM", "64"}, {"act", "a,b%"}, {"e", ""}});
  for (const std::string_view text :
       {"TM", "=64", "TM=64,", ",TM=64", "TM=%", "TM=%2", "TM=%2g", "TM=%2c", "TM=1,TN=2,TM=1"}) {
    CAPTURE(text);
    CHECK_FALSE(kc::report::parse_configuration(text));
  }
}

TEST_CASE("selection data is a list of rows") {
  CHECK(kc::report::selection_json("").dump() == "[]");
  CHECK(kc::report::selection_json("m=64,n=128;m=64,n=256").dump() ==
        R"([{"m":"64","n":"128"},{"m":"64","n":"256"}])");
  CHECK(kc::report::selection_json(";m=1").dump() == R"([{},{"m":"1"}])");
  CHECK(kc::report::selection_json("m=64;n").is_null());
  CHECK(kc::report::selection_json("m=64;m=1,m=2").is_null());
}

TEST_CASE("a record in JSON has every field of the index") {
  const Json json = kc::report::record_json(sample());
  CHECK(keys(json) == std::vector<std::string>{
                          "event",         "unit",     "kernel",           "specialization",    "config",
                          "default",       "target",   "found_target",     "backend",           "entry",
                          "symbol",        "compiler", "compiler_version", "compiler_identity", "toolkit",
                          "lowest_driver", "key",      "code_digest",      "code_bytes",        "frame",
                          "frame_offset",  "facts",    "selection",        "metadata"});
  CHECK(json["unit"] == "matmul:TM=64,act=a%2Cb@sm_90");
  CHECK(json["config"] == Json{{"TM", "64"}, {"act", "a,b"}});
  CHECK(json["found_target"] == "sm_90a");
  CHECK(json["compiler_identity"] == base::sha256("compiler").hex());
  CHECK(json["lowest_driver"] == 580);
  CHECK(json["key"] == base::sha256("matmul:TM=64,act=a%2Cb@sm_90").hex());
  CHECK(json["code_digest"] == base::sha256("code").hex());
  CHECK(json["code_bytes"] == 9216);
  CHECK(json["frame"] == 3);
  CHECK(json["frame_offset"] == 64);
  CHECK(json["facts"]["registers"] == 96);
  CHECK(json["facts"]["spills"].is_null());
  CHECK(json["selection"].dump() == R"([{"m":"64"},{"m":"128","name":"x;y"}])");
  CHECK(json["metadata"] == Json{{"owner", "attention"}, {"when", "m=64;m=128,name=x%3By"}});
  Record record = sample();
  record.lowest_driver = 0;
  record.metadata.clear();
  CHECK(kc::report::record_json(record)["lowest_driver"].is_null());
  CHECK(kc::report::record_json(record)["selection"].dump() == "[]");
}

TEST_CASE("a changed unit in JSON has both sides and what differs") {
  Record after = sample();
  after.facts.registers = 76;
  after.artifact_digest = base::sha256("other");
  after.metadata.clear();
  const Json json =
      kc::report::diff_json(kc::report::compare_records(sample(), after), {"registers-10", "changed"});
  CHECK(keys(json) == std::vector<std::string>{"event", "unit", "kernel", "target", "config", "before",
                                               "after", "changes", "differs", "failed_on"});
  CHECK(json["event"] == "changed");
  CHECK(json["config"]["act"] == "a,b");
  CHECK(json["changes"].dump() == R"([{"metric":"registers","before":96,"after":76}])");
  CHECK(json["differs"].dump() == R"(["code_digest","metadata"])");
  CHECK(json["failed_on"].dump() == R"(["registers-10","changed"])");
  CHECK(keys(json["before"]) ==
        std::vector<std::string>{
            "registers",        "local_memory",   "spills",    "shared_memory",    "code",
            "scalar_registers", "argument_bytes", "arguments", "required_block",   "max_threads",
            "wave_size",        "code_digest",    "key",       "found_target",     "symbol",
            "default",          "lowest_driver",  "compiler",  "compiler_version", "compiler_identity",
            "toolkit",          "metadata"});
  CHECK(json["before"]["registers"] == 96);
  CHECK(json["before"]["local_memory"] == 8);
  CHECK(json["before"]["spills"].is_null());
  CHECK(json["before"]["scalar_registers"].is_null());
  CHECK(json["before"]["shared_memory"] == 4096);
  CHECK(json["before"]["code"] == 9216);
  CHECK(json["after"]["registers"] == 76);
  CHECK(json["after"]["code_digest"] == base::sha256("other").hex());
}

// As much metadata as a bundle may hold. Where each pair is looked for among those before, this takes
// minutes.
TEST_CASE("metadata of very many pairs takes time in proportion") {
  Record record = sample();
  record.metadata.clear();
  for (uint32_t i = 0; i < 150'000; ++i) record.metadata.emplace_back(std::to_string(1'000'000 + i), "");
  const auto start = std::chrono::steady_clock::now();
  CHECK(kc::report::record_json(record)["metadata"].size() == 150'000);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

TEST_CASE("all that differs can be seen on both sides") {
  Record after = sample();
  after.found_target = "sm_90";
  after.symbol = "other";
  after.is_default = true;
  after.lowest_driver = 0;
  after.metadata.clear();
  after.artifact_digest = base::sha256("other");
  after.facts.spills = 4;
  after.facts.arguments.pop_back();
  after.facts.required_block = {128, 1, 1};
  after.facts.max_threads = 7;
  after.facts.wave_size = 64;
  const Json json = kc::report::diff_json(kc::report::compare_records(sample(), after), {});
  CHECK(json["differs"].size() == 11);
  for (const Json& field : json["differs"]) {
    const auto name = field.get<std::string>();
    CAPTURE(name);
    REQUIRE(json["before"].contains(name));
    CHECK(json["before"][name] != json["after"][name]);
  }
}

TEST_CASE("a unit of one bundle has null for the other") {
  kc::report::UnitDiff diff;
  diff.change = kc::report::UnitChange::kRemoved;
  diff.before = sample();
  const Json json = kc::report::diff_json(diff, {});
  CHECK(json["event"] == "removed");
  CHECK(json["after"].is_null());
  CHECK(json["before"]["registers"] == 96);
  CHECK(json["changes"].dump() == "[]");
  CHECK(json["differs"].dump() == "[]");
  CHECK(json["failed_on"].dump() == "[]");
}

TEST_CASE("bundles as a whole in JSON") {
  const bundle::testing::Folder folder;
  bundle::testing::Input input = bundle::testing::small_input();
  REQUIRE(input.write(folder / "a.kcb"));
  input.info = {"other", 13, true, true};
  REQUIRE(input.write(folder / "b.kcb"));
  const auto a = bundle::Reader::open(folder / "a.kcb");
  const auto b = bundle::Reader::open(folder / "b.kcb");
  const Json json = kc::report::bundles_json(*a, *b);
  CHECK(json["event"] == "bundles");
  CHECK(json["before"]["path"] == folder / "a.kcb");
  CHECK(json["before"]["name"] == "demo");
  CHECK(json["before"]["records"] == 12);
  CHECK(json["before"]["bytes"] == a->file_size());
  CHECK(json["after"]["release"] == 13);
  CHECK(json["after"]["partial"] == true);
  CHECK(json["after"]["subset"] == true);
  CHECK(json["after"]["header_digest"] == b->header_digest().hex());
  const Json one = kc::report::bundle_json(*a, {{"note", "x"}}, {{1, 4096, 96}});
  CHECK(keys(one) == std::vector<std::string>{"event", "path", "name", "release", "partial", "subset",
                                              "bytes", "records", "header_digest", "frames", "metadata",
                                              "signatures"});
  CHECK(one["event"] == "bundle");
  CHECK(one["metadata"].dump() == R"({"note":"x"})");
  CHECK(one["signatures"].dump() == R"([{"type":1,"offset":4096,"bytes":96}])");
}
