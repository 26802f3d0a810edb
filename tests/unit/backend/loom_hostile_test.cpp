// A library that misbehaves, as far as the process outlives it; the rest is the engine's to survive.
#include <doctest/doctest.h>

#include <string>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include "backend/run.h"
#include "support/real_loom.h"

namespace {

using kc::backend::CompileOutcome;
using kc::backend::Status;

CompileOutcome outcome(const std::string& directives, const char* variant = "g4") {
  const auto runner = kc::test::loom_runner(std::string(KC_HOSTILE_LOOM "/") + variant + "/libloomc.so");
  const auto sources = kc::test::loom_sources({{"a.loom", directives + std::string(kc::test::kSubtract)}});
  return runner->compile(kc::test::loom_request(sources, "subtract", "gfx1100", {{"block.size", "64"}}), {});
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a well behaved stand-in compiles") {
  for (const char* variant : {"g4", "g4-hrx", "g3"}) {
    const CompileOutcome out = outcome("", variant);
    CHECK_MESSAGE(out.status == Status::kCompiled, out.message);
    CHECK_FALSE(out.artifact.code.empty());
  }
}

TEST_CASE("an exception out of the library taints") {
  for (const char* stage : {"index", "link", "compile", "emit"}) {
#if defined(__SANITIZE_ADDRESS__)
    const __lsan::ScopedDisabler leaks;  // nothing of a library that threw is touched again
#endif
    const CompileOutcome out = outcome(std::string("//! @throw:") + stage + "\n");
    CHECK_MESSAGE(out.status == Status::kTainted, stage);
    CHECK(contains(out.message, "made the Loom library throw an exception: the hostile library throws"));
    CHECK_FALSE(out.is_own_answer);
  }
}

TEST_CASE("code objects that are not what was asked for are failures") {
  struct Case {
    std::string directive;
    std::string message;
  };
  for (const Case& one :
       {Case{"//! @output=none\n", "gave no code object"},
        Case{"//! @output=empty\n", "the output of Loom is"},
        Case{"//! @output=garbage\n", "the output of Loom is"},
        Case{"//! @output=truncated\n", "the output of Loom is"},
        Case{"//! @processor=gfx942\n", "asked for gfx1100, the code object is for gfx942"}}) {
    const CompileOutcome out = outcome(one.directive);
    CHECK(out.status == Status::kFailed);
    CHECK_MESSAGE(contains(out.message, one.message), out.message);
    CHECK(out.artifact.code.empty());
  }
}

TEST_CASE("out of memory is no answer that is kept") {
  const CompileOutcome out = outcome("//! @status=8:no-more\n");
  CHECK(out.status == Status::kFailed);
  CHECK_FALSE(out.is_own_answer);
  CHECK(contains(out.message, "out of memory"));
}

TEST_CASE("a call that is refused for its layout is the library's fault and not the unit's") {
  const CompileOutcome out = outcome("//! @status=3:structure_size-is-too-small\n");
  CHECK_MESSAGE(out.status == Status::kEnvironment, out.message);
  CHECK(contains(out.message, "not what its symbols say"));
}

TEST_CASE("other statuses fail the unit with their text") {
  const CompileOutcome out = outcome("//! @status=13:something-broke\n");
  CHECK(out.status == Status::kFailed);
  CHECK_MESSAGE(contains(out.message, "something-broke"), out.message);
}

TEST_CASE("warnings are kept with code that was made") {
  const CompileOutcome out = outcome("//! @warn=SLOW/001:slow\n");
  CHECK(out.status == Status::kCompiled);
  REQUIRE(out.artifact.diagnostics.size() == 1);
  CHECK(out.artifact.diagnostics[0].severity == kc::artifact::Severity::kWarning);
  CHECK(out.artifact.diagnostics[0].code == "SLOW/001");
  CHECK(out.artifact.diagnostics[0].line == 1);
}

TEST_CASE("what the library allocates counts for the compile that made it") {
  const CompileOutcome usual = outcome("");
  const CompileOutcome large = outcome("//! @allocate=32MiB\n");
  REQUIRE(large.status == Status::kCompiled);
  CHECK(large.peak_bytes >= usual.peak_bytes + (32U << 20) - (1U << 20));
}
