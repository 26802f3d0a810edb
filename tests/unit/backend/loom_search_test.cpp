// Finding and identifying a Loom library, with made-up ones that nobody loads.
#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/loom/loom.h"
#include "base/files.h"
#include "support/shared_object.h"
#include "support/temp_folder.h"

namespace {

using kc::backend::Compiler;
using kc::backend::find_compiler;
using kc::backend::IdentityFile;
using kc::backend::is_unchanged;
using kc::backend::KnownDigest;
using kc::backend::SearchStep;
using kc::backend::SearchVariables;
using kc::test::SharedObject;
using kc::test::TempFolder;
using kc::test::write_shared_object;

std::string install(const TempFolder& folder, const std::string& path, SharedObject object = {}) {
  object.tail = path;
  return folder.write(path, write_shared_object(object));
}

Compiler found(const SearchVariables& variables) {
  auto compiler = find_compiler("loom", variables, {});
  REQUIRE_MESSAGE(compiler, (compiler ? "" : compiler.error().text()));
  return *compiler;
}

std::string why_not(const SearchVariables& variables, std::vector<SearchStep>* steps = nullptr) {
  const auto compiler = find_compiler("loom", variables, {}, steps);
  REQUIRE_FALSE(compiler);
  CHECK(compiler.error().kind == kc::base::ErrorKind::kEnvironment);
  CHECK_FALSE(compiler.error().hint.empty());
  return compiler.error().message;
}

SearchVariables named(const std::string& path) {
  SearchVariables out;
  out.kc_loom_library = path;
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> roles(const Compiler& compiler) {
  std::vector<std::string> out;
  for (const IdentityFile& file : compiler.files) out.push_back(file.role);
  return out;
}

}  // namespace

TEST_CASE("places of the Loom library are looked at in the documented order") {
  const TempFolder folder;
  const std::vector<std::string> libraries = {
      install(folder, "kc/one.so"),
      install(folder, "hrx/two.so"),
      install(folder, "venv/lib/python3.12/site-packages/hrx_loom/libloomc.so"),
      install(folder, "venv/lib/python3.12/site-packages/hrx_loom/lib/libloomc.so.0"),
      install(folder, "venv/lib/python3.9/site-packages/hrx_loom/libloomc.so"),
      install(folder, "build/venv/lib/python3.11/site-packages/hrx_loom/libloomc.so"),
      install(folder, "path/libloomc.so"),
      install(folder, "path/libloomc.so.0"),
  };
  SearchVariables variables;
  variables.kc_loom_library = libraries[0];
  variables.hrx_loom_library = libraries[1];
  variables.virtual_env = folder / "venv";
  variables.program_folder = folder / "build/bin";
  variables.library_path = "relative::" + (folder / "path");
  CHECK(found(variables).program == libraries[0]);
  variables.kc_loom_library = "";  // as good as not set
  CHECK(found(variables).program == libraries[1]);
  variables.hrx_loom_library.reset();
  for (size_t i = 2; i < libraries.size(); ++i) {
    CHECK(found(variables).program == libraries[i]);
    std::filesystem::remove(libraries[i]);
  }
  std::vector<SearchStep> steps;
  const std::string message = why_not(variables, &steps);
  CHECK(contains(message, "no Loom library found"));
  CHECK(steps[0].where == "KC_LOOM_LIBRARY");
  CHECK(steps[0].outcome == "not set");
  for (const SearchStep& step : steps) CHECK(contains(message, step.where));
  const auto looked_at = [&](const std::string& path) {
    return std::ranges::any_of(steps, [&](const SearchStep& step) {
      return step.where.ends_with(path) && step.outcome == "no such file";
    });
  };
  CHECK(looked_at("python3.12/site-packages/hrx_loom/libloomc.so"));
  CHECK(looked_at("path/libloomc.so.0"));
  CHECK(looked_at("/usr/lib/libloomc.so.0"));
  CHECK(looked_at("/usr/local/lib/libloomc.so"));
#if defined(__x86_64__)
  CHECK(looked_at("/usr/lib/x86_64-linux-gnu/libloomc.so"));
#endif
}

TEST_CASE("an environment without Python is still named as a place") {
  const TempFolder folder;
  SearchVariables variables;
  variables.virtual_env = folder / "empty";
  CHECK(contains(why_not(variables), "empty/lib/python3*/site-packages/hrx_loom/libloomc.so"));
}

TEST_CASE("a variable that names a Loom library is obeyed or an error") {
  const TempFolder folder;
  install(folder, "good/libloomc.so.0");
  SharedObject foreign;
  foreign.machine = EM_RISCV;
  SharedObject program;
  program.flags_1 = DF_1_PIE;
  SharedObject object_file;
  object_file.type = ET_REL;
  struct Bad {
    std::string path;
    std::string reason;
  };
  const std::vector<Bad> all = {
      {folder / "missing.so", "no such file"},
      {folder / "good/..", "a directory without libloomc.so"},
      {"/dev/null", "not a regular file"},
      {folder.write("text.so", "hello"), "is no ELF file"},
      {folder.write("empty.so", ""), "is empty"},
      {folder.write("cut.so", write_shared_object({}).substr(0, 100)), "is a damaged ELF file"},
      {install(folder, "foreign.so", foreign), "made for RISC-V, this machine is"},
      {install(folder, "program.so", program), "not a shared library"},
      {install(folder, "object.so", object_file), "not a shared library"},
  };
  for (const Bad& bad : all) {
    SearchVariables variables;
    variables.virtual_env = folder / "never/looked/at";
    variables.library_path = folder / "good";
    variables.kc_loom_library = bad.path;
    const std::string message = why_not(variables);
    CHECK_MESSAGE(contains(message, bad.reason), message);
    CHECK(message.starts_with("KC_LOOM_LIBRARY=" + bad.path));
    variables.kc_loom_library.reset();
    variables.hrx_loom_library = bad.path;
    CHECK(why_not(variables).starts_with("HRX_LOOM_LIBRARY=" + bad.path));
  }
  // The folder that holds it will do as well.
  CHECK(found(named(folder / "good")).program == folder / "good/libloomc.so.0");
}

TEST_CASE("an unusable Loom library that nobody named is passed over and listed") {
  const TempFolder folder;
  SharedObject foreign;
  foreign.machine = EM_S390;
  install(folder, "first/libloomc.so", foreign);
  const std::string good = install(folder, "second/libloomc.so");
  SearchVariables variables;
  variables.library_path = (folder / "first") + ":" + (folder / "second");
  std::vector<SearchStep> steps;
  const auto compiler = find_compiler("loom", variables, {}, &steps);
  REQUIRE(compiler);
  CHECK(compiler->program == good);
  CHECK(steps.back().outcome == "found");
  CHECK(std::ranges::any_of(steps,
                            [](const SearchStep& step) { return contains(step.outcome, "made for S/390"); }));
}

TEST_CASE("the identity of a Loom library covers what lies beside and above it and what it needs") {
  const TempFolder folder;
  SharedObject library;
  library.needed = {"libhelper.so.1", "libc.so.6", "libm.so.6", "libstdc++.so.6"};
  library.run_path = "$ORIGIN/../deps:${ORIGIN}/private";
  SharedObject helper;
  helper.needed = {"libdeep.so", "libhelper.so.1"};
  helper.run_path = "$ORIGIN";
  install(folder, "lib/loom/libloomc.so.0.1", library);
  std::filesystem::create_symlink("libloomc.so.0.1", folder / "lib/loom/libloomc.so");
  install(folder, "lib/loom/libloom-extra.so.2");
  install(folder, "lib/libloomcore.so");
  folder.write("lib/loom/libloom.so.txt", "no library");
  folder.write("lib/loom/other.so", "not asked for");
  std::filesystem::create_symlink("nowhere", folder / "lib/loom/libloomgone.so");
  install(folder, "lib/deps/libhelper.so.1", helper);
  install(folder, "lib/deps/libdeep.so");
  install(folder, "lib/loom/private/libdeep.so");

  const Compiler compiler = found(named(folder / "lib/loom/libloomc.so"));
  CHECK(compiler.program == folder / "lib/loom/libloomc.so.0.1");
  CHECK(roles(compiler) == std::vector<std::string>{"libloomc", "beside:libloom-extra.so.2",
                                                    "beside:libloom.so.txt", "above:libloomcore.so", "libm",
                                                    "needed:libhelper.so.1", "needed:libdeep.so"});
  CHECK(compiler.files.back().path == folder / "lib/deps/libdeep.so");
  CHECK(is_unchanged(compiler));

  const auto changes = [&](const std::string& path) {
    const std::string before = kc::test::content_of(path);
    const Compiler identified = found(named(folder / "lib/loom"));
    folder.write(path.substr(folder.path().size() + 1), before + "x");
    CHECK_FALSE(is_unchanged(identified));
    CHECK(contains(kc::backend::change_of(identified), path));
    CHECK(found(named(folder / "lib/loom")).identity != compiler.identity);
    folder.write(path.substr(folder.path().size() + 1), before);
    CHECK(found(named(folder / "lib/loom")).identity == compiler.identity);
  };
  for (const IdentityFile& file : compiler.files) {
    if (file.role != "libm") changes(file.path);
  }
}

TEST_CASE("a Loom library that appears or goes beside an identified one is a change") {
  const TempFolder folder;
  install(folder, "top/loom/libloomc.so");
  const Compiler compiler = found(named(folder / "top/loom/libloomc.so"));
  CHECK(is_unchanged(compiler));
  const std::string newcomer = install(folder, "top/libloomnew.so");
  CHECK_FALSE(is_unchanged(compiler));
  CHECK(contains(kc::backend::change_of(compiler), "other files beside it"));
  std::filesystem::remove(newcomer);
  CHECK(is_unchanged(compiler));
}

TEST_CASE("what a Loom library needs and nobody has is named with who needs it") {
  const TempFolder folder;
  SharedObject library;
  library.needed = {"libkc-has-no-such.so.7"};
  install(folder, "libloomc.so", library);
  const std::string message = why_not(named(folder / "libloomc.so"));
  CHECK(contains(message, "needs libkc-has-no-such.so.7"));
  const auto failed = find_compiler("loom", named(folder / "libloomc.so"), {});
  REQUIRE_FALSE(failed);
  CHECK(contains(failed.error().hint, "install that library"));
  CHECK(contains(message, folder / "libloomc.so"));

  // A companion may never be loaded: what it lacks is no reason.
  install(folder, "companion/libloomc.so");
  install(folder, "companion/libloomother.so", library);
  CHECK(roles(found(named(folder / "companion"))).size() == 4);
}

TEST_CASE("what is needed of another machine is looked for further") {
  const TempFolder folder;
  SharedObject library;
  library.needed = {"libhelper.so"};
  library.run_path = "$ORIGIN/wrong:$ORIGIN/right";
  install(folder, "loom/libloomc.so", library);
  SharedObject foreign;
  foreign.machine = EM_S390;
  install(folder, "loom/wrong/libhelper.so", foreign);
  install(folder, "loom/right/libhelper.so");
  CHECK(found(named(folder / "loom")).files.back().path == folder / "loom/right/libhelper.so");
}

TEST_CASE("libm counts by its build id") {
  const TempFolder folder;
  install(folder, "libloomc.so");
  const Compiler compiler = found(named(folder / "libloomc.so"));
  const IdentityFile& libm = compiler.files.back();
  REQUIRE(libm.role == "libm");
  CHECK(kc::base::file_name(libm.path).starts_with("libm"));
  const auto whole = kc::base::read_file(libm.path, 1U << 26);
  REQUIRE(whole);
  CHECK(libm.digest != kc::base::sha256(*whole));
}

TEST_CASE("a Loom library that is known is not opened again") {
  const TempFolder folder;
  const std::string library = install(folder, "lib/libloomc.so");
  install(folder, "libloomcore.so");
  const Compiler settled = found(named(library));
  bool is_trusted = true;
  const KnownDigest lying = [&](const std::string&, const kc::base::FileTuple&) {
    return is_trusted ? std::optional(kc::base::Digest{}) : std::nullopt;
  };
  // Its digests are taken as they are given: nothing was read.
  const auto blind = find_compiler("loom", named(library), lying, nullptr, &settled);
  REQUIRE(blind);
  for (const IdentityFile& file : blind->files) CHECK(file.digest.is_zero());
  is_trusted = false;
  const auto looked = find_compiler("loom", named(library), lying, nullptr, &settled);
  REQUIRE(looked);
  CHECK(looked->identity == settled.identity);
}

TEST_CASE("what a companion lacked is looked for again and is another compiler once it is there") {
  const TempFolder folder;
  const std::string library = install(folder, "lib/libloomc.so");
  SharedObject companion;
  companion.needed = {"libhelper.so"};
  companion.run_path = "$ORIGIN/parts";
  install(folder, "lib/libloomother.so", companion);
  const Compiler before = found(named(library));
  CHECK(is_unchanged(before));
  const auto known = [&](const std::string& path, const kc::base::FileTuple&) {
    const auto at = std::ranges::find(before.files, path, &IdentityFile::path);
    return at == before.files.end() ? std::nullopt : std::optional(at->digest);
  };
  const std::string helper = install(folder, "lib/parts/libhelper.so");
  CHECK_FALSE(is_unchanged(before));
  const auto after = find_compiler("loom", named(library), known, nullptr, &before);
  REQUIRE(after);
  CHECK(after->files.back().path == helper);
  CHECK(after->identity != before.identity);
  CHECK(is_unchanged(*after));
}

TEST_CASE("a Loom compiler survives being written down") {
  const TempFolder folder;
  install(folder, "libloomc.so");
  const Compiler compiler = found(named(folder / "libloomc.so"));
  kc::base::ByteWriter out;
  kc::backend::write_compiler(out, compiler);
  kc::base::ByteReader in(out.bytes());
  const Compiler read = kc::backend::read_compiler(in);
  CHECK(in.complete());
  CHECK(read.identity == compiler.identity);
  CHECK(is_unchanged(read));
}

TEST_CASE("the description of loom is that of a backend with two keys that runs in threads") {
  const auto* loom = kc::backend::find_description("loom");
  REQUIRE(loom != nullptr);
  CHECK(loom->available);
  CHECK(loom->has_front_half);
  CHECK_FALSE(loom->entry_is_symbol);
  CHECK(loom->run == kc::backend::RunKind::kThreads);
  CHECK(loom->adapter_revision == 1);
  CHECK(kc::backend::loom::is_bytecode("a.loombc"));
  CHECK_FALSE(kc::backend::loom::is_bytecode("a.loom"));
}
