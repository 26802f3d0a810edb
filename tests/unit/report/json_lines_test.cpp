// The JSON lines of a build and a plan, field by field as docs/json.md lists them.
#include "report/json_lines.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace {

namespace build = kc::build;
using kc::report::JsonLines;
using kc::util::Json;

// Counts what is passed on.
class Rest final : public build::Listener {
 public:
  void error(const kc::base::Error&) override { heard += "error "; }
  void warning(const kc::base::Error&) override { heard += "warning "; }
  void note(const std::string&) override { heard += "note "; }
  void progress(const build::Progress&) override { heard += "progress "; }
  void failed(const kc::manifest::Plan&, const kc::manifest::Unit&, const build::UnitResult&) override {
    heard += "failed ";
  }
  void unit(const kc::manifest::Plan&, const kc::manifest::Unit&, const build::UnitResult&) override {
    heard += "unit ";
  }
  void summary(const build::Summary&) override { heard += "summary "; }
  std::string heard;
};

class Lines {
 public:
  explicit Lines(JsonLines::Kind kind)
      : listener(
            kind, [this](const Json& line) { out.push_back(line); }, rest) {
    kc::manifest::Kernel kernel;
    kernel.name = "matmul";
    plan.kernels = {kernel};
    plan.sources = {{"/w/a.tilebc", "a.tilebc", {}, {}}, {"/w/b.tilebc", "sub/b.tilebc", {}, {}}};
    unit.name = "matmul:TM=64,TN=128@sm_90";
    unit.target = *kc::target::parse_target("sm_90");
    unit.specialization = {{"TM", "64"}, {"TN", "128"}};
    unit.sources = {1, 0};
    result.state = build::UnitState::kCompiled;
    result.key = kc::base::sha256("key");
    result.seconds = 1.5;
    result.peak_bytes = 1ULL << 40;
    result.code_bytes = 4096;
    result.facts.symbol = "matmul";
    result.facts.registers = 40;
    result.facts.local_memory = 16;
    result.facts.shared_memory = 1024;
    result.facts.argument_bytes = 12;
    result.facts.arguments = {{0, 8}, {8, 4}};
    result.facts.required_block = {128, 1, 1};
    result.facts.max_threads = 256;
    result.facts.wave_size = 32;
    result.diagnostics = {{kc::artifact::Severity::kWarning, "W1", "slow", "a.tilebc", 3, 4}};
  }
  Json tell() {
    listener.unit(plan, unit, result);
    return out.back();
  }

  Rest rest;
  std::vector<Json> out;
  JsonLines listener;
  kc::manifest::Plan plan;
  kc::manifest::Unit unit;
  build::UnitResult result;
};

std::string names_of(const Json& object) {
  std::string out;
  for (const auto& [name, value] : object.items()) out += name + " ";
  return out;
}

}  // namespace

TEST_CASE("a unit of a build has the fields of the document in this order") {
  Lines lines(JsonLines::Kind::kBuild);
  const Json line = lines.tell();
  CHECK(names_of(line) ==
        "event unit kernel target config request_key key state seconds peak_bytes code_bytes facts "
        "changes diagnostics signers ");
  CHECK(
      kc::util::dump_line(line) ==
      R"({"event":"unit","unit":"matmul:TM=64,TN=128@sm_90","kernel":"matmul","target":"sm_90",)"
      R"("config":{"TM":"64","TN":"128"},"request_key":null,"key":")" +
          kc::base::sha256("key").hex() +
          R"(","state":"compiled","seconds":1.5,"peak_bytes":1099511627776,"code_bytes":4096,)"
          R"("facts":{"symbol":"matmul","registers":40,"scalar_registers":null,"local_memory":16,"spills":null,)"
          R"("shared_memory":1024,)"
          R"("argument_bytes":12,"arguments":[{"offset":0,"size":8},{"offset":8,"size":4}],)"
          R"("required_block":[128,1,1],"max_threads":256,"wave_size":32},"changes":[],)"
          R"("diagnostics":[{"severity":"warning","code":"W1","message":"slow","file":"a.tilebc","line":3,"column":4}],"signers":[]})");
  lines.result.facts.spills = 2;
  CHECK(lines.tell()["facts"]["spills"] == 2);
  lines.result.facts.scalar_registers = 18;
  CHECK(lines.tell()["facts"]["scalar_registers"] == 18);
}

TEST_CASE("a unit with two keys has both and null stands for what is not known") {
  for (const auto kind : {JsonLines::Kind::kBuild, JsonLines::Kind::kPlan}) {
    Lines lines(kind);
    lines.result.request_key = kc::base::sha256("request");
    Json line = lines.tell();
    CHECK(line["request_key"] == kc::base::sha256("request").hex());
    CHECK(line["key"] == kc::base::sha256("key").hex());
    lines.result.key.reset();
    line = lines.tell();
    CHECK(line["key"] == nullptr);
    CHECK(line["request_key"] == kc::base::sha256("request").hex());
  }
}

TEST_CASE("every state has its word") {
  Lines lines(JsonLines::Kind::kBuild);
  const std::vector<std::pair<build::UnitState, std::string>> words = {
      {build::UnitState::kHit, "hit"},
      {build::UnitState::kCompiled, "compiled"},
      {build::UnitState::kFailed, "failed"},
      {build::UnitState::kSkipped, "skipped"},
      {build::UnitState::kNotTried, "not_tried"},
      {build::UnitState::kPending, "miss"}};
  for (const auto& [state, word] : words) {
    lines.result.state = state;
    CHECK(lines.tell()["state"] == word);
  }
}

TEST_CASE("a unit without code has empty facts and one that failed says why") {
  Lines lines(JsonLines::Kind::kBuild);
  lines.result.state = build::UnitState::kFailed;
  lines.result.error = {kc::base::ErrorKind::kFailed, "no such tile", {"kernels.yaml", 4, 5}, "use another"};
  const Json failed = lines.tell();
  CHECK(failed["facts"] == Json::object());
  CHECK(failed["facts"].dump() == "{}");
  CHECK(failed["error"] == lines.result.error.text());
  CHECK(failed["diagnostics"].size() == 1);
  lines.result.state = build::UnitState::kSkipped;
  CHECK(lines.tell()["facts"].dump() == "{}");
  CHECK(lines.tell()["error"] == lines.result.error.text());
  lines.result.state = build::UnitState::kNotTried;
  CHECK(lines.tell()["facts"].dump() == "{}");
  CHECK_FALSE(lines.tell().contains("error"));
}

TEST_CASE("a unit without configuration or diagnostics has empty ones of the right kind") {
  Lines lines(JsonLines::Kind::kBuild);
  lines.unit.specialization.clear();
  lines.result.diagnostics.clear();
  lines.result.facts.arguments.clear();
  const Json line = lines.tell();
  CHECK(line["config"].dump() == "{}");
  CHECK(line["diagnostics"].dump() == "[]");
  CHECK(line["facts"]["arguments"].dump() == "[]");
}

TEST_CASE("a compiled unit lists what changed against the last build and a hit does not") {
  Lines lines(JsonLines::Kind::kBuild);
  lines.result.last = kc::artifact::numbers_of(lines.result.facts, lines.result.code_bytes);
  CHECK(lines.tell()["changes"].dump() == "[]");
  lines.result.last->registers = 96;
  lines.result.last->code = 4000;
  CHECK(lines.tell()["changes"].dump() ==
        R"([{"metric":"registers","before":96,"after":40},{"metric":"code","before":4000,"after":4096}])");
  lines.result.state = build::UnitState::kHit;
  CHECK(lines.tell()["changes"].dump() == "[]");
}

TEST_CASE("a unit of a plan that cannot be compiled says why and one that is skipped is no error") {
  Lines lines(JsonLines::Kind::kPlan);
  lines.result.state = build::UnitState::kFailed;
  lines.result.error = {kc::base::ErrorKind::kFailed, "no entry", {"kernels.yaml", 4, 5}, ""};
  const Json line = lines.tell();
  CHECK(line["state"] == "failed");
  CHECK(line["error"] == "kernels.yaml:4:5: no entry");
  lines.result.state = build::UnitState::kSkipped;
  CHECK_FALSE(lines.tell().contains("error"));
}

TEST_CASE("a summary of a plan has a line a kernel and none a unit") {
  Lines lines(JsonLines::Kind::kPlanSummary);
  lines.listener.unit(lines.plan, lines.unit, lines.result);
  CHECK(lines.out.empty());
  CHECK(lines.rest.heard == "unit ");
  build::Summary summary;
  summary.units = 10;
  summary.hits = 4;
  summary.skipped = 2;
  summary.failed = 1;
  summary.expected_seconds = 7.5;
  summary.kernels = {{"matmul", 9, 4, 2, 1, {"sm_80", "sm_90"}, 7.5}, {"other", 1, 0, 0, 0, {"sm_80"}, {}}};
  lines.listener.summary(summary);
  REQUIRE(lines.out.size() == 3);
  CHECK(kc::util::dump_line(lines.out[0]) ==
        R"({"event":"kernel","kernel":"matmul","units":9,"hits":4,"misses":2,"skipped":2,"failed":1,)"
        R"("targets":["sm_80","sm_90"],"expected_seconds":7.5})");
  CHECK(lines.out[1]["misses"] == 1);
  CHECK(lines.out[1]["expected_seconds"].is_null());
  CHECK(
      kc::util::dump_line(lines.out[2]) ==
      R"({"event":"summary","units":10,"hits":4,"misses":3,"skipped":2,"failed":1,"expected_seconds":7.5})");
}

TEST_CASE("a unit of a plan has its sources and no results") {
  Lines lines(JsonLines::Kind::kPlan);
  lines.result.state = build::UnitState::kPending;
  const Json line = lines.tell();
  CHECK(names_of(line) == "event unit kernel target config sources request_key key state expected_seconds ");
  CHECK(line["expected_seconds"].is_null());
  CHECK(line["sources"].dump() == R"(["sub/b.tilebc","a.tilebc"])");
  CHECK(line["state"] == "miss");
  lines.result.expected_seconds = 1.5;
  CHECK(lines.tell()["expected_seconds"] == 1.5);
}

TEST_CASE("summaries have the fields of the document") {
  build::Summary summary;
  summary.units = 9;
  summary.hits = 4;
  summary.compiled = 2;
  summary.failed = 1;
  summary.skipped = 1;
  summary.not_tried = 1;
  summary.warnings = 3;
  summary.seconds = 0.5;
  summary.pack_seconds = 0.25;
  Lines built(JsonLines::Kind::kBuild);
  built.listener.summary(summary);
  CHECK(kc::util::dump_line(built.out.back()) ==
        R"({"event":"summary","units":9,"hits":4,"compiled":2,"failed":1,"skipped":1,"not_tried":1,)"
        R"("warnings":3,"seconds":0.5,"pack_seconds":0.25,"output":null,"output_state":"none"})");
  summary.output = "/w/kernels.kcb";
  summary.output_state = build::OutputState::kWritten;
  built.listener.summary(summary);
  CHECK(built.out.back()["output"] == "/w/kernels.kcb");
  CHECK(built.out.back()["output_state"] == "written");
  summary.output_state = build::OutputState::kUnchanged;
  built.listener.summary(summary);
  CHECK(built.out.back()["output_state"] == "unchanged");

  Lines planned(JsonLines::Kind::kPlan);
  planned.listener.summary(summary);
  CHECK(
      kc::util::dump_line(planned.out.back()) ==
      R"({"event":"summary","units":9,"hits":4,"misses":3,"skipped":1,"failed":1,"expected_seconds":null})");
}

TEST_CASE("invalid UTF-8 is replaced and line feeds stay within the line") {
  Lines lines(JsonLines::Kind::kBuild);
  lines.unit.specialization = {{"T", "a\xFFz"}};
  lines.result.diagnostics[0].message = "broken \xC3( and\nnext \xE2\x82";
  lines.result.diagnostics[0].file = "\x80";
  lines.result.state = build::UnitState::kFailed;
  lines.result.error.message = "bad \xFE byte";
  const std::string text = kc::util::dump_line(lines.tell());
  CHECK(text.find('\n') == std::string::npos);
  const Json back = Json::parse(text);  // throws on invalid UTF-8
  CHECK(back["config"]["T"] == "a\uFFFDz");
  CHECK(back["diagnostics"][0]["message"] == "broken \uFFFD( and\nnext \uFFFD");
  CHECK(back["diagnostics"][0]["file"] == "\uFFFD");
  CHECK(back["error"].get<std::string>().find("bad \uFFFD byte") != std::string::npos);
}

TEST_CASE("what is no line of its own goes on and so does everything else") {
  Lines lines(JsonLines::Kind::kBuild);
  lines.listener.error({});
  lines.listener.warning({});
  lines.listener.note("text");
  lines.listener.progress({});
  lines.listener.failed(lines.plan, lines.unit, lines.result);
  CHECK(lines.out.empty());
  lines.listener.unit(lines.plan, lines.unit, lines.result);
  lines.listener.summary({});
  CHECK(lines.out.size() == 2);
  CHECK(lines.rest.heard == "error warning note progress failed unit summary ");
}
