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
    plan.sources = {{"/w/a.tilebc", "a.tilebc", {}}, {"/w/b.tilebc", "sub/b.tilebc", {}}};
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
        "diagnostics ");
  CHECK(
      kc::util::dump_line(line) ==
      R"({"event":"unit","unit":"matmul:TM=64,TN=128@sm_90","kernel":"matmul","target":"sm_90",)"
      R"("config":{"TM":"64","TN":"128"},"request_key":null,"key":")" +
          kc::base::sha256("key").hex() +
          R"(","state":"compiled","seconds":1.5,"peak_bytes":1099511627776,"code_bytes":4096,)"
          R"("facts":{"symbol":"matmul","registers":40,"local_memory":16,"spills":null,"shared_memory":1024,)"
          R"("argument_bytes":12,"arguments":[{"offset":0,"size":8},{"offset":8,"size":4}],)"
          R"("required_block":[128,1,1],"max_threads":256,"wave_size":32},)"
          R"("diagnostics":[{"severity":"warning","code":"W1","message":"slow","file":"a.tilebc","line":3,"column":4}]})");
  lines.result.facts.spills = 2;
  CHECK(lines.tell()["facts"]["spills"] == 2);
}

TEST_CASE("every state has its word") {
  Lines lines(JsonLines::Kind::kBuild);
  const std::vector<std::pair<build::UnitState, std::string>> words = {
      {build::UnitState::kHit, "hit"},
      {build::UnitState::kCompiled, "compiled"},
      {build::UnitState::kFailed, "failed"},
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

TEST_CASE("a unit of a plan has its sources and no results") {
  Lines lines(JsonLines::Kind::kPlan);
  lines.result.state = build::UnitState::kPending;
  const Json line = lines.tell();
  CHECK(names_of(line) == "event unit kernel target config sources request_key key state ");
  CHECK(line["sources"].dump() == R"(["sub/b.tilebc","a.tilebc"])");
  CHECK(line["state"] == "miss");
}

TEST_CASE("summaries have the fields of the document") {
  build::Summary summary;
  summary.units = 9;
  summary.hits = 4;
  summary.compiled = 2;
  summary.failed = 1;
  summary.not_tried = 2;
  summary.warnings = 3;
  summary.seconds = 0.5;
  Lines built(JsonLines::Kind::kBuild);
  built.listener.summary(summary);
  CHECK(kc::util::dump_line(built.out.back()) ==
        R"({"event":"summary","units":9,"hits":4,"compiled":2,"failed":1,"skipped":0,"not_tried":2,)"
        R"("warnings":3,"seconds":0.5,"output":null,"output_state":"none"})");
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
  CHECK(kc::util::dump_line(planned.out.back()) == R"({"event":"summary","units":9,"hits":4,"misses":5})");
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
