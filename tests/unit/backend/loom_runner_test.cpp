// Compiling with real Loom libraries, where KC_TEST_LOOM names them.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "backend/loom/run/api.h"
#include "backend/loom/run/runner.h"
#include "backend/run.h"
#include "base/digest.h"
#include "support/real_loom.h"

namespace {

using kc::backend::CompileOutcome;
using kc::backend::CompileRequest;
using kc::backend::Pairs;
using kc::backend::Runner;
using kc::backend::Status;
using kc::test::kShiftLibrary;
using kc::test::kShiftRoot;
using kc::test::kSubtract;
using kc::test::kUnusedLibrary;
using kc::test::loom_request;
using kc::test::loom_runner;
using kc::test::loom_sources;
using kc::test::real_loom;

auto subtract() {
  return loom_sources({{"kernels/subtract.loom", std::string(kSubtract)}});
}
auto shift(std::string library = std::string(kShiftLibrary),
           std::string unused = std::string(kUnusedLibrary)) {
  return loom_sources(
      {{"shift.loom", std::string(kShiftRoot)}, {"lib_a.loom", library}, {"lib_b.loom", unused}});
}

CompileOutcome compiled(Runner& runner, const CompileRequest& request) {
  CompileOutcome out = runner.compile(request, {});
  REQUIRE_MESSAGE(out.status == Status::kCompiled, out.message);
  return out;
}

kc::base::Digest digest_of_module(Runner& runner, CompileRequest request) {
  kc::base::Digest out;
  request.has_module = [&](const kc::base::Digest& module) {
    out = module;
    return false;
  };
  CHECK(runner.compile(request, {}).status == Status::kStopped);
  CHECK_FALSE(out.is_zero());
  return out;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("both generations make the same code and facts out of the same kernel") {
  const std::string g4 = real_loom("g4");
  const std::string g3 = real_loom("g3");
  if (g4.empty() || g3.empty()) return;
  const auto newer = loom_runner(g4);
  const auto older = loom_runner(g3);
  const auto sources = subtract();
  for (const char* target :
       {"gfx1100", "gfx1151", "gfx1201", "gfx942", "gfx950", "gfx11-generic", "gfx1250"}) {
    const CompileRequest request = loom_request(sources, "subtract", target, {{"block.size", "64"}});
    const CompileOutcome a = compiled(*newer, request);
    const CompileOutcome b = compiled(*older, request);
    CHECK(a.artifact.code == b.artifact.code);
    CHECK(a.artifact.facts == b.artifact.facts);
    CHECK(a.artifact.facts.found_target == target);
    REQUIRE(a.artifact.facts.kernels.size() == 1);
    const auto& kernel = a.artifact.facts.kernels[0];
    CHECK(kernel.symbol == "subtract_f32");
    CHECK(kernel.required_block == std::array<uint32_t, 3>{64, 1, 1});
    CHECK(kernel.arguments.size() == 4);
    CHECK(a.artifact.diagnostics.empty());
    CHECK(a.artifact.compiler == "loom");
    CHECK(a.artifact.compiler_version.starts_with("G4"));
    CHECK(b.artifact.compiler_version.starts_with("G3"));
    CHECK(a.artifact.report.empty());
    CHECK(a.is_own_answer);
    CHECK(a.seconds > 0);
    CHECK(a.peak_bytes > 100'000);
    CHECK(a.peak_bytes < 64'000'000);
  }
}

TEST_CASE("mistakes of the configuration have code and place and cause") {
  const std::string library = real_loom("g4");
  if (library.empty()) return;
  const auto runner = loom_runner(library);
  struct Case {
    Pairs config;
    std::string message;
    std::string hint;
  };
  const std::vector<Case> cases = {
      {{}, "unresolved config '@block.size'", "block.size has no default"},
      {{{"block.sise", "64"}}, "unresolved config '@block.size'", "did you mean \"block.sise\"?"},
      {{{"block.size", "33"}}, "value 33 violates constraint 'mul'", "mul(%size, 32)]"},
      {{{"block.size", "1024"}},
       "value 1024 violates constraint 'range'",
       "declared as config.decl @block.size"},
      {{{"block.size", "many"}}, "expects integer value, got 'many'", "declared as config.decl @block.size"},
  };
  for (const Case& one : cases) {
    const CompileOutcome out =
        runner->compile(loom_request(subtract(), "subtract", "gfx1100", one.config), {});
    CHECK(out.status == Status::kFailed);
    CHECK(out.is_own_answer);
    CHECK_MESSAGE(contains(out.message, one.message), out.message);
    CHECK(out.message.starts_with("CONFIG/INVALID: "));
    CHECK_MESSAGE(contains(out.hint, one.hint), out.hint);
    REQUIRE(out.artifact.diagnostics.size() == 1);
    const auto& diagnostic = out.artifact.diagnostics[0];
    CHECK(diagnostic.code == "CONFIG/INVALID");
    CHECK(diagnostic.file == "kernels/subtract.loom");
    CHECK(diagnostic.line == 2);
    CHECK(diagnostic.column == 1);
    CHECK(out.artifact.code.empty());
  }
}

TEST_CASE("a declaration that no value was asked for compiles with its default and with another one") {
  const std::string library = real_loom("g4");
  if (library.empty()) return;
  const auto runner = loom_runner(library);
  const CompileOutcome five = compiled(*runner, loom_request(shift(), "shift_i32", "gfx1100"));
  const CompileOutcome same =
      compiled(*runner, loom_request(shift(), "shift_i32", "gfx1100", {{"shift.by", "5"}}));
  const CompileOutcome six =
      compiled(*runner, loom_request(shift(), "shift_i32", "gfx1100", {{"shift.by", "6"}}));
  CHECK(five.artifact.code == same.artifact.code);
  CHECK(five.artifact.code != six.artifact.code);
}

TEST_CASE("what is wrong in a source is named with code and place") {
  for (const char* variant : {"g4", "g3"}) {
    const std::string library = real_loom(variant);
    if (library.empty()) return;
    const auto runner = loom_runner(library);
    const Pairs config = {{"block.size", "64"}};
    const auto fails = [&](const std::string& text, const std::string& entry) {
      const CompileOutcome out =
          runner->compile(loom_request(loom_sources({{"a.loom", text}}), entry, "gfx1201", config), {});
      CHECK(out.status == Status::kFailed);
      CHECK(out.is_own_answer);
      CHECK_FALSE(out.artifact.diagnostics.empty());
      return out;
    };
    const auto is_at = [](const CompileOutcome& out, std::string_view code, uint32_t line, uint32_t column) {
      const auto& first = out.artifact.diagnostics.front();
      return first.code == code && first.file == "a.loom" && first.line == line && first.column == column &&
             out.message.starts_with(std::string(code) + ": ");
    };
    const std::string good(kSubtract);
    CHECK(is_at(fails(replaced(good, "%am[%start]", "%am[%start"), "subtract"), "PARSE/003", 22, 32));
    const CompileOutcome type = fails(replaced(good, "%z = scalar.subf", "%z = scalar.subi"), "subtract");
    CHECK(is_at(type, "TYPE/003", 28, 5));
    CHECK(contains(type.message, "(and "));  // the cascade is counted
    const CompileOutcome unknown = fails(good, "substract");
    CHECK(unknown.artifact.diagnostics.front().code == "LINK/PLAN");
    CHECK(contains(unknown.message, "root symbol '@substract' was not found"));
    CHECK(unknown.hint == "did you mean \"subtract\"?");
    CHECK(fails(good, "nothing_like_it").hint == "the sources export subtract");

    const CompileOutcome alone = runner->compile(
        loom_request(loom_sources({{"a.loom", std::string(kShiftRoot)}}), "shift_i32", "gfx1201"), {});
    CHECK(alone.status == Status::kFailed);
    CHECK(is_at(alone, "LOWERING/044", 25, 5));
    REQUIRE(alone.artifact.diagnostics.size() > 1);  // where it is declared
    CHECK(alone.artifact.diagnostics[1].severity == kc::artifact::Severity::kNote);
    CHECK(alone.artifact.diagnostics[1].line == 2);
    CHECK(contains(alone.hint, "@shifted is declared and nowhere defined"));
  }
}

TEST_CASE("two files of one name are refused before they are compiled") {
  const std::string library = real_loom("g4");
  if (library.empty()) return;
  const auto runner = loom_runner(library);
  const std::string text(kSubtract);
  const auto sources = loom_sources({{"a.loom", text}, {"a.loom", text}});
  const CompileOutcome out =
      runner->compile(loom_request(sources, "subtract", "gfx1100", {{"block.size", "64"}}), {});
  CHECK(out.status == Status::kFailed);
  CHECK(out.artifact.diagnostics.at(0).file == "a.loom");
  CHECK(contains(out.message, "two files"));
}

TEST_CASE("targets that the library does not have are unsupported and the answer lists those it has") {
  for (const char* variant : {"g4", "g3", "g4-hrx"}) {
    const std::string library = real_loom(variant);
    if (library.empty()) return;
    const auto runner = loom_runner(library);
    for (const char* target : {"gfx90a", "gfx1030", "gfx906"}) {
      const CompileOutcome out = runner->compile(loom_request(subtract(), "subtract", target), {});
      CHECK(out.status == Status::kUnsupported);
      CHECK(out.is_own_answer);
      CHECK_MESSAGE(contains(out.message, std::string("has no ") + target + "; it has gfx940, "),
                    out.message);
      CHECK(contains(out.message, "gfx1201"));
    }
    CompileRequest unknown = loom_request(subtract(), "subtract", "gfx1100");
    unknown.target.text = unknown.target.processor = "gfx9999";
    CHECK(runner->compile(unknown, {}).status == Status::kUnsupported);
  }
}

TEST_CASE("a kernel that names its target is unsupported for another") {
  const std::string library = real_loom("g4");
  if (library.empty()) return;
  const auto runner = loom_runner(library);
  const std::string text =
      replaced(std::string(kSubtract), "kernel.def export", "kernel.def target(@chip) export") +
      "amdgpu.target<gfx942> @chip\n";
  const auto sources = loom_sources({{"a.loom", text}});
  const Pairs config = {{"block.size", "64"}};
  const CompileOutcome out = runner->compile(loom_request(sources, "subtract", "gfx1100", config), {});
  CHECK(out.status == Status::kUnsupported);
  CHECK(out.message.starts_with("TARGET/052: "));
  CHECK(out.hint == "leave gfx1100 out of its targets");
  compiled(*runner, loom_request(sources, "subtract", "gfx942", config));
}

TEST_CASE("features of a target are states that the code object shows") {
  const std::string library = real_loom("g4");
  if (library.empty()) return;
  const auto runner = loom_runner(library);
  const Pairs config = {{"block.size", "64"}};
  for (const char* target : {"gfx942", "gfx942:sramecc+:xnack-", "gfx942:sramecc-:xnack+", "gfx950:xnack+"}) {
    const CompileOutcome out = compiled(*runner, loom_request(subtract(), "subtract", target, config));
    CHECK(out.artifact.facts.found_target == target);
  }
}

TEST_CASE("a library without processor modes refuses them and says so") {
  for (const char* variant : {"g4", "g3"}) {
    const std::string library = real_loom(variant);
    if (library.empty()) return;
    const auto runner = loom_runner(library);
    for (const char* mode : {"compute_unit", "workgroup_processor"}) {
      const CompileOutcome out = runner->compile(
          loom_request(subtract(), "subtract", "gfx1100", {{"block.size", "64"}}, {{"processor_mode", mode}}),
          {});
      CHECK(out.status == Status::kFailed);
      CHECK_MESSAGE(contains(out.message, "needs a Loom library that knows processor modes"), out.message);
      CHECK_FALSE(out.hint.empty());
    }
    compiled(*runner, loom_request(subtract(), "subtract", "gfx1100", {{"block.size", "64"}},
                                   {{"processor_mode", "default"}}));
  }
}

TEST_CASE("processor modes change one bit where the library has them") {
  for (const char* variant : {"g4-hrx", "g3-hrx"}) {
    const std::string library = real_loom(variant);
    if (library.empty()) return;
    const auto runner = loom_runner(library);
    const auto code = [&](const char* target, const char* mode) {
      return runner->compile(
          loom_request(subtract(), "subtract", target, {{"block.size", "64"}}, {{"processor_mode", mode}}),
          {});
    };
    for (const char* target : {"gfx1100", "gfx1201"}) {
      const auto usual = code(target, "default").artifact.code;
      const auto whole = code(target, "workgroup_processor").artifact.code;
      const auto half = code(target, "compute_unit").artifact.code;
      REQUIRE_FALSE(usual.empty());
      CHECK(usual == whole);
      REQUIRE(half.size() == usual.size());
      unsigned bits = 0;
      for (size_t i = 0; i < half.size(); ++i)
        bits += static_cast<unsigned>(std::popcount<uint8_t>(half[i] ^ usual[i]));
      CHECK(bits == 1);
    }
    const CompileOutcome other = code("gfx942", "compute_unit");
    CHECK(other.status == Status::kFailed);
    CHECK_MESSAGE(contains(other.message, "not possible for gfx942"), other.message);
    // What the library does not have at all stays unsupported.
    CHECK(code("gfx90a", "compute_unit").status == Status::kUnsupported);
  }
}

TEST_CASE("reports come as asked for and on failures too") {
  for (const char* variant : {"g4", "g3"}) {
    const std::string library = real_loom(variant);
    if (library.empty()) return;
    const auto runner = loom_runner(library);
    const auto report = [&](const char* mode) {
      const CompileOutcome out = compiled(*runner, loom_request(subtract(), "subtract", "gfx1100",
                                                                {{"block.size", "64"}}, {{"report", mode}}));
      return std::make_pair(std::string(kc::base::as_text(out.artifact.report)), out.artifact.code);
    };
    const auto none = report("none");
    const auto summary = report("summary");
    const auto details = report("details");
    CHECK(none.first.empty());
    CHECK(summary.first.starts_with("{"));
    CHECK(contains(summary.first, "\"target_key\""));
    CHECK(details.first.size() > summary.first.size());
    CHECK(none.second == details.second);
  }
}

TEST_CASE("bytecode sources and text sources mix") {
  const std::string library = real_loom("g4");
  if (library.empty()) return;
  // The library's own bytecode of a linked module: what kc hashes, and what a .loombc file holds.
  auto loaded = kc::backend::loom::Library::load(kc::test::loom_compiler(library));
  REQUIRE(loaded);
  const auto api = kc::backend::loom::LoomApi::open(std::move(*loaded));
  REQUIRE(api);
  const auto sources = subtract();
  const kc::backend::loom::abi::ConfigBinding block{kc::backend::loom::abi::view("block.size"),
                                                    kc::backend::loom::abi::view("96")};
  std::string bytecode;
  {
    kc::backend::loom::Object index, workspace, module, source;
    REQUIRE((*api)->make_index(sources->files, index).succeeded);
    REQUIRE_FALSE((*api)->make_workspace(workspace));
    REQUIRE((*api)->link({workspace.get(), index.get(), "subtract", {&block, 1}}, module).succeeded);
    kc::base::ByteView bytes;
    REQUIRE_FALSE((*api)->serialize(module.get(), source, bytes));
    bytecode = kc::base::as_text(bytes);
  }
  REQUIRE(kc::backend::check_source("loom", "a.loombc", kc::base::as_bytes(bytecode)));
  const auto runner = loom_runner(library);
  const CompileOutcome text =
      compiled(*runner, loom_request(sources, "subtract", "gfx1100", {{"block.size", "96"}}));
  const CompileOutcome binary =
      compiled(*runner, loom_request(loom_sources({{"a.loombc", bytecode}}), "subtract", "gfx1100"));
  CHECK(text.artifact.code == binary.artifact.code);
  compiled(*runner, loom_request(loom_sources({{"shift.loom", std::string(kShiftRoot)},
                                               {"lib.loom", std::string(kShiftLibrary)},
                                               {"a.loombc", bytecode}}),
                                 "shift_i32", "gfx1100"));
  const CompileOutcome broken =
      runner->compile(loom_request(loom_sources({{"a.loombc", bytecode.substr(0, bytecode.size() / 2)}}),
                                   "subtract", "gfx1100"),
                      {});
  CHECK(broken.status == Status::kFailed);
  CHECK_FALSE(broken.message.empty());
}

TEST_CASE("the module that a content key covers is what the kernel reaches and reads") {
  for (const char* variant : {"g4", "g3"}) {
    const std::string library = real_loom(variant);
    if (library.empty()) return;
    const auto runner = loom_runner(library);
    const auto digest = [&](std::shared_ptr<const kc::backend::SourceSet> sources, Pairs config = {},
                            const char* target = "gfx1100") {
      return digest_of_module(*runner,
                              loom_request(std::move(sources), "shift_i32", target, std::move(config)));
    };
    const auto usual = digest(shift());
    CHECK(usual == digest(shift()));
    // Not reached, not read, not in it: the target is another field of the key.
    CHECK(usual ==
          digest(shift(std::string(kShiftLibrary), replaced(std::string(kUnusedLibrary), "addi", "muli"))));
    CHECK(usual == digest(shift(), {{"shift.unread", "7"}}));
    CHECK(usual == digest(shift(), {{"nobody.declares", "7"}}));
    CHECK(usual == digest(shift(), {}, "gfx942"));
    CHECK(usual != digest(shift(), {{"shift.by", "7"}}));
    CHECK(usual != digest(shift(replaced(std::string(kShiftLibrary), "addi", "muli"))));
  }
}

TEST_CASE("nothing is compiled when somebody has the module") {
  const std::string library = real_loom("g4");
  if (library.empty()) return;
  const auto runner = loom_runner(library);
  CompileRequest request = loom_request(subtract(), "subtract", "gfx1100", {{"block.size", "64"}});
  int asked = 0;
  request.has_module = [&](const kc::base::Digest&) { return ++asked > 1; };
  const CompileOutcome stopped = runner->compile(request, {});
  CHECK(stopped.status == Status::kStopped);
  CHECK(stopped.artifact.code.empty());
  CHECK(runner->compile(request, {}).status == Status::kCompiled);
  CHECK(asked == 2);
  // What cannot be linked is nobody's module.
  request.config.clear();
  CHECK(runner->compile(request, {}).status == Status::kFailed);
  CHECK(asked == 2);
}

TEST_CASE("what a link gives is known for all targets once one of them was linked") {
  for (const char* variant : {"g4", "g3"}) {
    const std::string library = real_loom(variant);
    if (library.empty()) return;
    const auto runner = loom_runner(library);
    const auto sources = shift();
    // A thread that linked has used memory of its own.
    const auto stopped = [&](Runner& by, const char* target, const Pairs& config) {
      CompileRequest request = loom_request(sources, "shift_i32", target, config);
      std::pair<kc::base::Digest, uint64_t> out;
      request.has_module = [&](const kc::base::Digest& module) {
        out.first = module;
        return false;
      };
      const CompileOutcome outcome = by.compile(request, {});
      CHECK(outcome.status == Status::kStopped);
      out.second = outcome.peak_bytes;
      return out;
    };
    for (const Pairs& config : {Pairs{}, Pairs{{"shift.by", "7"}}}) {
      const auto first = stopped(*runner, "gfx1100", config);
      CHECK(first.second > 0);
      for (const char* target : {"gfx1100", "gfx942", "gfx1201"}) {
        CHECK(stopped(*runner, target, config) == std::pair(first.first, uint64_t{0}));
        CHECK(stopped(*loom_runner(library), target, config).first == first.first);
        // Whoever has to compile gets the same as one who never met this module.
        CompileRequest request = loom_request(sources, "shift_i32", target, config);
        const CompileOutcome alone = compiled(*loom_runner(library), request);
        request.has_module = [&](const kc::base::Digest& module) { return module == first.first; };
        CHECK(compiled(*runner, request).artifact.code == alone.artifact.code);
      }
    }
  }
}

TEST_CASE("threads that share a source set make the same code as one alone") {
  const std::string library = real_loom("g4");
  if (library.empty()) return;
  kc::backend::loom::IndexCache::Limits limits;
  limits.sets = 2;  // of three: indexes are dropped and made anew all the time
  auto runner = kc::backend::loom::open(kc::test::loom_compiler(library), limits);
  REQUIRE(runner);
  std::vector<CompileRequest> requests;
  for (const char* target : {"gfx1100", "gfx942"}) {
    requests.push_back(loom_request(subtract(), "subtract", target, {{"block.size", "64"}}));
    requests.push_back(loom_request(shift(), "shift_i32", target));
    requests.push_back(loom_request(requests[0].sources, "subtract", target, {{"block.size", "128"}}));
    requests.push_back(loom_request(subtract(), "subtract", target));  // fails
  }
  std::vector<CompileOutcome> alone;
  for (const CompileRequest& request : requests) alone.push_back((*runner)->compile(request, {}));
  constexpr size_t kThreads = 4;
  constexpr size_t kRounds = 6;
  std::vector<size_t> wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (size_t i = 0; i < kRounds * requests.size(); ++i) {
        const size_t which = (i + thread) % requests.size();
        const CompileOutcome out = (*runner)->compile(requests[which], {});
        const bool is_same = out.status == alone[which].status && out.artifact == alone[which].artifact &&
                             out.message == alone[which].message;
        wrong[thread] += is_same ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<size_t>(kThreads, 0));
}

TEST_CASE("an index outlives the sources that a caller gave") {
  const std::string library = real_loom("g4");
  if (library.empty()) return;
  const auto runner = loom_runner(library);
  CompileRequest request = loom_request(subtract(), "subtract", "gfx1100", {{"block.size", "64"}});
  const auto kept = request.sources;
  // Whoever still looks at the bytes when the last owner has gone finds nothing of them.
  request.sources = std::shared_ptr<kc::backend::SourceSet>(new kc::backend::SourceSet(*kept), [](auto* set) {
    std::ranges::fill(set->files[0].bytes, uint8_t{0});
    delete set;
  });
  const auto first = compiled(*runner, request).artifact.code;
  request.sources = kept;  // the same number
  CHECK(compiled(*runner, request).artifact.code == first);
}

TEST_CASE("options that no description has are refused") {
  const std::string library = real_loom("g4");
  if (library.empty()) return;
  const auto runner = loom_runner(library);
  const CompileOutcome out = runner->compile(
      loom_request(subtract(), "subtract", "gfx1100", {{"block.size", "64"}}, {{"report", "everything"}}),
      {});
  CHECK(out.status == Status::kFailed);
  CHECK(contains(out.message, "loom has no option report: everything"));
}
