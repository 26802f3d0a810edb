#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/files.h"
#include "support/fake_install.h"
#include "support/temp_folder.h"

namespace {

using kc::backend::Compiler;
using kc::backend::find_compiler;
using kc::backend::is_unchanged;
using kc::backend::SearchStep;
using kc::backend::SearchVariables;
using kc::test::FakeInstallOptions;
using kc::test::TempFolder;

// Files of an installation that the search never runs: small ones will do. Gives the program.
std::string install(const TempFolder& folder, const std::string& root) {
  const std::string program = folder.write(root + "/bin/tileiras", "#!/bin/sh\n# " + root + "\n");
  const std::string ptxas = folder.write(root + "/bin/ptxas", "#!/bin/sh\n");
  folder.write(root + "/lib/libnvvm.so.4", "nvvm");
  folder.write(root + "/nvvm/libdevice/libdevice.10.bc", "bc");
  chmod(program.c_str(), 0755);
  chmod(ptxas.c_str(), 0755);
  return program;
}

Compiler found(const SearchVariables& variables) {
  auto compiler = find_compiler("tileiras", variables, {});
  REQUIRE_MESSAGE(compiler, (compiler ? "" : compiler.error().text()));
  return *compiler;
}

std::string why_not(const SearchVariables& variables, std::vector<SearchStep>* steps = nullptr) {
  const auto compiler = find_compiler("tileiras", variables, {}, steps);
  REQUIRE_FALSE(compiler);
  CHECK(compiler.error().kind == kc::base::ErrorKind::kEnvironment);
  return compiler.error().message;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the places are looked at in the documented order") {
  const TempFolder folder;
  const std::string wheel = "/site-packages/nvidia/cu13";
  const std::vector<std::string> programs = {
      install(folder, "kc"),
      install(folder, "cutile"),
      install(folder, "env/lib/python3.12" + wheel),
      install(folder, "env/lib/python3.9" + wheel),
      install(folder, "build/venv/lib/python3.11" + wheel),
      install(folder, "first"),
      install(folder, "second"),
      install(folder, "cuda"),
  };
  SearchVariables variables;
  variables.kc_tileiras = programs[0];
  variables.cutile_tileiras_path = programs[1];
  variables.virtual_env = folder / "env";
  variables.program_folder = folder / "build/bin";
  variables.path = (folder / "none") + "::relative:" + (folder / "first/bin") + ":" + (folder / "second/bin");
  variables.cuda_home = folder / "cuda";
  CHECK(found(variables).program == programs[0]);
  variables.kc_tileiras.reset();
  CHECK(found(variables).program == programs[1]);
  variables.cutile_tileiras_path = "";  // as good as not set
  // The rest by taking away each one found.
  for (size_t i = 2; i < programs.size(); ++i) {
    CAPTURE(i);
    CHECK(found(variables).program == programs[i]);
    std::filesystem::remove(programs[i]);
  }
}

TEST_CASE("a variable that names something unusable is an error that names it") {
  const TempFolder folder;
  const std::string good = install(folder, "good");
  SearchVariables variables;
  variables.path = folder / "good/bin";
  const auto said = [&](const std::string& value) {
    SearchVariables other = variables;
    other.cutile_tileiras_path = value;
    CHECK(contains(why_not(other), "CUTILE_TILEIRAS_PATH=" + value));
    other = variables;
    other.kc_tileiras = value;
    const std::string out = why_not(other);
    CHECK(contains(out, "KC_TILEIRAS=" + value));
    return out;
  };
  CHECK(contains(said(folder / "missing"), "no such file"));
  CHECK(contains(said(folder / "good"), "a directory"));
  CHECK(contains(said(folder.write("note.txt", "hello\n")), "not executable"));
  const std::string text = folder.write("text/tileiras", "hello\n");
  chmod(text.c_str(), 0755);
  CHECK(contains(said(text), "no ptxas beside it"));
  const std::string ptxas = folder.write("text/ptxas", "#!/bin/sh\n");
  chmod(ptxas.c_str(), 0755);
  CHECK(contains(said(text), "neither a program nor a script"));
  CHECK(contains(said("/dev/null"), "not a regular file"));
  variables.kc_tileiras = folder / "good/bin";  // the folder that holds it
  CHECK(found(variables).program == good);
}

TEST_CASE("an installation without ptxas is passed over with the reason") {
  const TempFolder folder;
  std::filesystem::remove(std::filesystem::path(install(folder, "a")).parent_path() / "ptxas");
  const std::string whole = install(folder, "b");
  SearchVariables variables;
  variables.path = (folder / "a/bin") + ":" + (folder / "b/bin");
  std::vector<SearchStep> steps;
  const auto compiler = find_compiler("tileiras", variables, {}, &steps);
  REQUIRE(compiler);
  CHECK(compiler->program == whole);
  REQUIRE(steps.size() >= 2);
  CHECK(contains(steps[steps.size() - 2].outcome, "no ptxas beside it"));
  CHECK(steps.back().outcome == "found");
  CHECK(steps.back().where == "PATH: " + (folder / "b/bin"));
}

TEST_CASE("without a compiler every place is listed and what to install is said") {
  const TempFolder folder;
  SearchVariables variables;
  variables.path = folder / "bin";
  variables.virtual_env = folder / "env";
  variables.program_folder = folder / "build/bin";
  variables.cuda_home = folder / "cuda";
  std::vector<SearchStep> steps;
  const auto compiler = find_compiler("tileiras", variables, {}, &steps);
  if (compiler) {
    MESSAGE("not run: this machine has a tileiras in /usr/local");
    return;
  }
  CHECK(compiler.error().kind == kc::base::ErrorKind::kEnvironment);
  CHECK(contains(compiler.error().hint, "nvidia-cuda-tileiras==13.4.92"));
  for (const SearchStep& step : steps) CHECK(contains(compiler.error().message, step.where));
  for (const std::string& place :
       {std::string("KC_TILEIRAS"), "PATH: " + (folder / "bin"), "VIRTUAL_ENV: " + (folder / "env"),
        "private environment: " + (folder / "build/venv"), "CUDA_HOME: " + (folder / "cuda/bin")}) {
    CHECK(contains(compiler.error().message, place));
  }
}

TEST_CASE("a link is followed and the parts are those of the real place") {
  const TempFolder folder;
  const std::string program = install(folder, "real");
  std::filesystem::create_directories(folder / "bin");
  std::filesystem::create_symlink(program, folder / "bin/tileiras");
  SearchVariables variables;
  variables.path = folder / "bin";
  const Compiler compiler = found(variables);
  CHECK(compiler.program == program);
  REQUIRE(compiler.files.size() == 4);
  CHECK(compiler.files[1].role == "ptxas");
  CHECK(compiler.files[1].path == folder / "real/bin/ptxas");
  CHECK(compiler.files[2].path == folder / "real/lib/libnvvm.so.4");
  CHECK(compiler.files[3].role == "libdevice");
  folder.write("real/nvvm/lib64/libnvvm.so", "the one that is looked at first");
  CHECK(found(variables).files[2].path == folder / "real/nvvm/lib64/libnvvm.so");
}

TEST_CASE("the identity is that of the content of every part and of nothing else") {
  const TempFolder folder;
  install(folder, "a");
  SearchVariables variables;
  variables.kc_tileiras = folder / "a/bin/tileiras";
  const Compiler first = found(variables);
  // Elsewhere, with other times: the same.
  std::filesystem::copy(folder / "a", folder / "b", std::filesystem::copy_options::recursive);
  variables.kc_tileiras = folder / "b/bin/tileiras";
  CHECK(found(variables).identity == first.identity);
  for (const char* part :
       {"bin/tileiras", "bin/ptxas", "lib/libnvvm.so.4", "nvvm/libdevice/libdevice.10.bc"}) {
    CAPTURE(part);
    const std::string path = (folder / "b/") + part;
    const std::string before = kc::test::content_of(path);
    folder.write(std::string("b/") + part, before + "x");
    CHECK(found(variables).identity != first.identity);
    folder.write(std::string("b/") + part, before);
    CHECK(found(variables).identity == first.identity);
  }
  std::filesystem::remove(folder / "b/nvvm/libdevice/libdevice.10.bc");
  CHECK(found(variables).identity != first.identity);
}

TEST_CASE("files whose digests are known are not opened") {
  const TempFolder folder;
  install(folder, "a");
  SearchVariables variables;
  variables.kc_tileiras = folder / "a/bin/tileiras";
  const Compiler first = found(variables);
  std::vector<std::string> asked;
  const kc::backend::KnownDigest known =
      [&](const std::string& path, const kc::base::FileTuple& tuple) -> std::optional<kc::base::Digest> {
    for (const auto& file : first.files) {
      if (file.path == path && file.tuple == tuple) {
        kc::base::Digest invented;
        invented.bytes[0] = 1;  // not that of the content, so that a file that is hashed shows
        return invented;
      }
    }
    return std::nullopt;
  };
  const auto second = find_compiler("tileiras", variables, known);
  REQUIRE(second);
  for (const auto& file : second->files) CHECK(file.digest.bytes[0] == 1);
  // Another content, another tuple: hashed again.
  folder.write("a/lib/libnvvm.so.4", "changed");
  const auto third = find_compiler("tileiras", variables, known);
  REQUIRE(third);
  CHECK(third->files[2].digest == kc::base::sha256("changed"));
}

TEST_CASE("every change of an installation is seen") {
  const TempFolder folder;
  install(folder, "a");
  SearchVariables variables;
  variables.kc_tileiras = folder / "a/bin/tileiras";
  for (const char* part :
       {"bin/tileiras", "bin/ptxas", "lib/libnvvm.so.4", "nvvm/libdevice/libdevice.10.bc"}) {
    CAPTURE(part);
    const Compiler compiler = found(variables);
    REQUIRE(is_unchanged(compiler));
    const std::string path = (folder / "a/") + part;
    const std::string other = folder.write("other", kc::test::content_of(path));
    chmod(other.c_str(), 0755);
    std::filesystem::rename(other, path);  // the same bytes, another file
    CHECK_FALSE(is_unchanged(compiler));
  }
  const Compiler compiler = found(variables);
  folder.write("a/nvvm/lib64/libnvvm.so", "looked at before the other one");
  CHECK_FALSE(is_unchanged(compiler));
  std::filesystem::remove(folder / "a/nvvm/lib64/libnvvm.so");
  CHECK(is_unchanged(compiler));
  std::filesystem::remove(folder / "a/bin/ptxas");
  CHECK_FALSE(is_unchanged(compiler));
}

TEST_CASE("a compiler is read back as it was written and not when damaged") {
  const TempFolder folder;
  install(folder, "a");
  SearchVariables variables;
  variables.kc_tileiras = folder / "a/bin/tileiras";
  const Compiler compiler = found(variables);
  kc::base::ByteWriter out;
  write_compiler(out, compiler);
  const kc::base::Bytes bytes = out.take();
  kc::base::ByteReader in(bytes);
  const Compiler again = kc::backend::read_compiler(in);
  REQUIRE(in.complete());
  CHECK(again.program == compiler.program);
  CHECK(again.identity == compiler.identity);
  REQUIRE(again.files.size() == compiler.files.size());
  CHECK(again.files[3].path == compiler.files[3].path);
  CHECK(again.files[3].tuple == compiler.files[3].tuple);
  CHECK(is_unchanged(again));
  for (size_t length = 0; length < bytes.size(); ++length) {
    kc::base::ByteReader cut(kc::base::ByteView(bytes).first(length));
    kc::backend::read_compiler(cut);
    CHECK_FALSE(cut.complete());
  }
  kc::base::Bytes flipped = bytes;
  flipped.back() = static_cast<uint8_t>(flipped.back() ^ 1);
  kc::base::ByteReader wrong(flipped);
  kc::backend::read_compiler(wrong);
  CHECK_FALSE(wrong.ok());
}

TEST_CASE("the backends known by name say what they take and which of them is there") {
  const auto* tileiras = kc::backend::find_description("tileiras");
  REQUIRE(tileiras);
  CHECK(tileiras->available);
  CHECK(tileiras->suffixes == std::vector<std::string>{".tilebc"});
  CHECK_FALSE(tileiras->takes_configuration);
  CHECK_FALSE(tileiras->has_front_half);
  CHECK(tileiras->options.at(0).values.front() == "3");
  CHECK(tileiras->check_options({{"debug", "true"}, {"opt", "0"}}) == std::nullopt);
  CHECK(tileiras->check_options({{"debug", "true"}}) != std::nullopt);
  CHECK(tileiras->check_options({{"debug", "true"}, {"opt", "3"}}) != std::nullopt);
  CHECK(tileiras->check_options({{"debug", "false"}}) == std::nullopt);
  const auto* loom = kc::backend::find_description("loom");
  REQUIRE(loom);
  CHECK(loom->available);
  CHECK(loom->takes_configuration);
  CHECK(loom->takes_libraries);
  CHECK_FALSE(loom->opens_files);
  const auto* cutile = kc::backend::find_description("cutile");
  REQUIRE(cutile);
  CHECK_FALSE(cutile->available);
  CHECK(cutile->opens_files);
  CHECK(cutile->takes_parameters);
  CHECK_FALSE(cutile->takes_libraries);
  CHECK(cutile->options.size() == tileiras->options.size());  // the second step is tileiras
  CHECK_FALSE(tileiras->takes_libraries);
  CHECK_FALSE(tileiras->opens_files);
  CHECK_FALSE(tileiras->takes_parameters);
  CHECK(kc::backend::find_description("nvrtc") == nullptr);
  const auto nothing = find_compiler("nvrtc", {}, {});
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().kind == kc::base::ErrorKind::kEnvironment);
}
