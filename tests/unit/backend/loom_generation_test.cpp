#include "backend/loom/run/generation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "backend/loom/run/abi.h"
#include "backend/loom/run/library.h"
#include "backend/run.h"
#include "support/hostile_install.h"
#include "support/real_loom.h"
#include "support/temp_folder.h"

namespace {

using kc::backend::loom::check_diagnostic;
using kc::backend::loom::Generation;
using kc::backend::loom::kProbeLine;
using kc::backend::loom::Marks;
using kc::backend::loom::recognise;
namespace abi = kc::backend::loom::abi;

std::string refused(const Marks& marks) {
  const auto generation = recognise(marks);
  REQUIRE_FALSE(generation);
  CHECK(generation.error().kind == kc::base::ErrorKind::kEnvironment);
  CHECK_FALSE(generation.error().hint.empty());
  return generation.error().message;
}

std::string why_not_opened(const kc::backend::Compiler& compiler) {
  const auto runner = kc::backend::open_runner(compiler);
  REQUIRE_FALSE(runner);
  CHECK(runner.error().kind == kc::base::ErrorKind::kEnvironment);
  return runner.error().message;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("generations are told apart by their symbols and those without an adapter are named") {
  Marks marks;
  CHECK(contains(refused(marks), "no generation of Loom's ABI that is known"));
  marks.byte_sequences = true;
  CHECK(contains(refused(marks), "generation G2"));
  marks.diagnostic_size = 80;  // a vendor's build says so itself
  CHECK(contains(refused(marks), "generation G2"));
  marks.import_cxx = true;
  CHECK(recognise(marks) == Generation::kG3);
  marks.compile_artifact = true;
  CHECK(recognise(marks) == Generation::kG4);
  marks.target_selection = true;
  CHECK(contains(refused(marks), "generation G1"));
  CHECK(contains(refused(marks), "gfx12"));
}

TEST_CASE("what is optional in a generation never decides against it") {
  Marks marks;
  marks.byte_sequences = true;
  marks.compile_artifact = true;
  CHECK(recognise(marks) == Generation::kG4);  // without import, without a vendor's symbols
  marks.diagnostic_size = 136;
  CHECK(recognise(marks) == Generation::kG4);
  // G3 without its optional import is known by what a vendor's build says of its rows.
  marks = {};
  marks.byte_sequences = true;
  marks.diagnostic_size = 104;
  CHECK(recognise(marks) == Generation::kG3);
}

TEST_CASE("the layout of diagnostics is probed and not believed") {
  abi::DiagnosticG4 late{};
  late.range.start = 200;
  late.range.start_line = kProbeLine;
  abi::DiagnosticG3 early{};
  early.range.start = 200;
  early.range.start_line = kProbeLine;
  CHECK(check_diagnostic(Generation::kG4, &late, kProbeLine));
  CHECK(check_diagnostic(Generation::kG3, &early, kProbeLine));
  // Longer than a row of G3, so that the test itself reads nothing beyond it.
  abi::DiagnosticG4 mixed{};
  std::memcpy(static_cast<void*>(&mixed), &early, sizeof early);
  CHECK_FALSE(check_diagnostic(Generation::kG4, &mixed, kProbeLine));
  CHECK_FALSE(check_diagnostic(Generation::kG3, &late, kProbeLine));
  const abi::DiagnosticG4 nowhere{};
  CHECK_FALSE(check_diagnostic(Generation::kG4, &nowhere, kProbeLine));
  CHECK_FALSE(check_diagnostic(Generation::kG4, nullptr, kProbeLine));
}

TEST_CASE("the probe's error is on its line and does not begin at the byte of that number") {
  const std::string text(kc::backend::loom::probe_text());
  const size_t begin = text.rfind('\n', text.size() - 2) + 1;
  CHECK(std::ranges::count(text.substr(0, begin), '\n') + 1 == kProbeLine);
  CHECK(begin > kProbeLine);
}

TEST_CASE("real libraries of all variants are recognised") {
  for (const char* variant : {"g4", "g4-hrx", "g3", "g3-hrx", "g2", "g2-hrx"}) {
    const std::string library = kc::test::real_loom(variant);
    if (library.empty()) continue;
    const auto compiler = kc::test::loom_compiler(library);
    if (std::string(variant).starts_with("g2")) {
      CHECK(contains(why_not_opened(compiler), "generation G2"));
      continue;
    }
    const auto loaded = kc::backend::loom::Library::load(compiler);
    REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error().text()));
    CHECK(loaded->generation() ==
          (std::string(variant).starts_with("g4") ? Generation::kG4 : Generation::kG3));
    CHECK(kc::backend::open_runner(compiler));
  }
}

TEST_CASE("libraries that kc cannot call are refused by what is wrong with them") {
  const std::string folder = KC_HOSTILE_LOOM;
  CHECK(contains(why_not_opened(kc::test::loom_compiler(folder + "/g1/libloomc.so")), "generation G1"));
  CHECK(contains(why_not_opened(kc::test::loom_compiler(folder + "/g2/libloomc.so")), "generation G2"));
  const std::string lacks = why_not_opened(kc::test::loom_compiler(folder + "/partial/libloomc.so"));
  CHECK_MESSAGE(contains(lacks, "looks like Loom's ABI generation G4 but lacks loomc_"), lacks);
  // A library of something else.
  const kc::test::TempFolder other;
  const auto compiler = kc::test::loom_compiler(folder + "/g4/libloomc.so");
  const auto libm = std::ranges::find(compiler.files, "libm", &kc::backend::IdentityFile::role);
  REQUIRE(libm != compiler.files.end());
  std::filesystem::copy_file(libm->path, other / "libloomc.so");
  const std::string unknown = why_not_opened(kc::test::loom_compiler(other / "libloomc.so"));
  CHECK_MESSAGE(contains(unknown, "no generation of Loom's ABI that is known"), unknown);
}

TEST_CASE("a library that is replaced before or while it is loaded is not used") {
  const kc::test::TempFolder folder;
  const std::string original = KC_HOSTILE_LOOM "/g4/libloomc.so";
  const auto library = kc::test::install_hostile_loom(original, folder.path());
  REQUIRE(library);
  const auto before = kc::test::loom_compiler(*library);
  REQUIRE(kc::test::install_hostile_loom(original, folder.path(), '2'));
  CHECK(contains(why_not_opened(before), "the compiler changed during the build: " + *library));

  // The library itself puts this one in its place when it is loaded.
  const auto now = kc::test::loom_compiler(*library);
  CHECK(now.identity != before.identity);
  std::filesystem::copy_file(original, *library + ".next");
  const auto with_next = kc::test::loom_compiler(*library);
  CHECK(contains(why_not_opened(with_next), "the compiler changed during the build"));
}
