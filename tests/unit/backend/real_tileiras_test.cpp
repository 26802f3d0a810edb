// The same against a real tileiras 13.4, where the environment variable KC_TEST_TILEIRAS names one.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "backend/run.h"
#include "base/files.h"
#include "support/source_set.h"
#include "support/temp_folder.h"

namespace {

using kc::backend::CompileOutcome;
using kc::backend::CompileRequest;
using kc::backend::Pairs;
using kc::backend::Runner;
using kc::backend::SearchVariables;
using kc::backend::Status;
using kc::test::TempFolder;

// Empty, with a message, when there is none to test with.
std::string real_program() {
  const char* program = std::getenv("KC_TEST_TILEIRAS");
  if (program != nullptr && *program != 0) return program;
  MESSAGE("not run: KC_TEST_TILEIRAS names no tileiras (packaging/bootstrap test installs one)");
  return {};
}

std::unique_ptr<Runner> runner_for(const std::string& program) {
  SearchVariables variables;
  variables.kc_tileiras = program;
  const auto compiler = kc::backend::find_compiler("tileiras", variables, {});
  REQUIRE_MESSAGE(compiler, (compiler ? "" : compiler.error().text()));
  auto runner = kc::backend::open_runner(*compiler);
  REQUIRE_MESSAGE(runner, (runner ? "" : runner.error().text()));
  return std::move(*runner);
}

CompileRequest request_for(const std::string& folder, const std::string& kernel, const std::string& entry,
                           const std::string& target, Pairs options = {}) {
  CompileRequest out;
  out.entry = entry;
  out.target = *kc::target::parse_target(target);
  out.options = std::move(options);
  const std::string path = KC_SOURCE_DIR "/manifests/demo/bytecode/" + kernel + ".tilebc";
  const auto bytes = kc::base::read_file(path, 1 << 20);
  REQUIRE(bytes);
  out.sources = kc::test::one_source(kernel + ".tilebc", *bytes);
  out.timeout = std::chrono::seconds(60);
  out.folder = folder;
  std::filesystem::create_directories(folder);
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("real tileiras: code and facts are right and the caller's environment changes nothing") {
  const std::string program = real_program();
  if (program.empty()) return;
  const TempFolder folder;
  const auto runner = runner_for(program);
  for (const char* target : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
    CAPTURE(target);
    const CompileOutcome plain = runner->compile(
        request_for(folder / (std::string("a") + target), "row_sum_f32", "row_sum_512", target), {});
    REQUIRE_MESSAGE(plain.status == Status::kCompiled, plain.message << "\n" << plain.output);
    CHECK(plain.artifact.facts.kernels.size() == 2);
    CHECK(plain.artifact.facts.toolkit == "13.4");
    const auto* kernel = plain.artifact.facts.find("row_sum_512");
    REQUIRE(kernel);
    CHECK(kernel->arguments.size() == 8);
    CHECK(kernel->argument_bytes >= 40);
    CHECK(kernel->shared_memory >= 16);
    CHECK(kernel->registers > 0);

    // Another toolkit, a foreign ptxas first in PATH: the same bytes, with the remarks asked for besides.
    const std::string ptxas = folder.write("foreign/ptxas", "#!/bin/sh\nexit 1\n");
    chmod(ptxas.c_str(), 0755);
    const std::string path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
    setenv("CUDA_HOME", (folder / "foreign").c_str(), 1);
    setenv("PATH", ((folder / "foreign") + ":" + path).c_str(), 1);
    const CompileOutcome again =
        runner->compile(request_for(folder / (std::string("b") + target), "row_sum_f32", "row_sum_512",
                                    target, {{"report", "remarks"}}),
                        {});
    unsetenv("CUDA_HOME");
    setenv("PATH", path.c_str(), 1);
    CHECK(again.status == Status::kCompiled);
    CHECK(again.artifact.code == plain.artifact.code);
    if (std::string(target) == "sm_90") CHECK_FALSE(again.artifact.report.empty());
  }
}

TEST_CASE("real tileiras: every combination of options gives a cubin whose facts can be read") {
  const std::string program = real_program();
  if (program.empty()) return;
  const TempFolder folder;
  const auto runner = runner_for(program);
  const Pairs all[] = {{{"opt", "0"}},
                       {{"opt", "1"}},
                       {{"opt", "2"}},
                       {{"lineinfo", "true"}},
                       {{"opt", "0"}, {"debug", "true"}},
                       {{"opt", "0"}, {"debug", "true"}, {"lineinfo", "true"}},
                       {{"sanitize", "memcheck"}}};
  int job = 0;
  for (const Pairs& options : all) {
    const CompileOutcome out = runner->compile(
        request_for(folder / std::to_string(++job), "softmax_f32_1024", "softmax", "sm_90", options), {});
    CHECK_MESSAGE(out.status == Status::kCompiled, out.message << "\n" << out.output);
    CHECK(out.artifact.facts.kernels.size() == 1);
  }
}

TEST_CASE("real tileiras: what it refuses is put into words") {
  const std::string program = real_program();
  if (program.empty()) return;
  const TempFolder folder;
  const auto runner = runner_for(program);

  CompileOutcome out = runner->compile(request_for(folder / "1", "vec_add_f32_256", "vec_add", "sm_90a"), {});
  CHECK(out.status == Status::kUnsupported);
  CHECK(contains(out.message, "it has sm_80, sm_86"));
  CHECK(contains(out.hint, "say sm_90"));

  CompileRequest request = request_for(folder / "2", "vec_add_f32_256", "vec_add", "sm_90");
  request.sources = kc::test::changed(request.sources, [](kc::base::Bytes& bytes) { bytes[9] = 9; });
  out = runner->compile(request, {});
  CHECK(out.status == Status::kFailed);
  CHECK(contains(out.message, "does not read Tile IR bytecode 13.9; it reads 13.1"));

  request = request_for(folder / "3", "vec_add_f32_256", "vec_add", "sm_90");
  request.sources = kc::test::changed(request.sources, [](kc::base::Bytes& bytes) { bytes.resize(300); });
  out = runner->compile(request, {});
  CHECK(out.status == Status::kFailed);
  CHECK(contains(out.message, "exceeds remaining data size"));

  // 8-bit floats came with sm_90, for this compiler.
  out = runner->compile(request_for(folder / "4", "matmul_e4m3_64x64x64", "matmul", "sm_80"), {});
  CHECK(out.status == Status::kUnsupported);
  CHECK(contains(out.message, "Incompatibility with architecture 'sm_80': unsupported type 'f8E4M3FN'"));
  CHECK(contains(out.hint, "leave sm_80 out"));
  CHECK(out.artifact.code.empty());
  REQUIRE_FALSE(out.artifact.diagnostics.empty());
  CHECK(out.artifact.diagnostics[0].file == "kernels/matmul.py");
  CHECK(out.artifact.diagnostics[0].line > 0);

  out = runner->compile(request_for(folder / "5", "vec_add_f32_256", "vec_sub", "sm_90"), {});
  CHECK(out.status == Status::kFailed);
  CHECK(contains(out.message, "no entry vec_sub; it has vec_add"));
}

TEST_CASE("real tileiras: a foreign ptxas beside it is found to be the cause") {
  const std::string program = real_program();
  if (program.empty()) return;
  const TempFolder folder;
  std::filesystem::create_directories(folder / "cu13/bin");
  // A copy: a hard link would change the change time of the real one, and so its tuple, under other tests.
  std::filesystem::copy_file(program, folder / "cu13/bin/tileiras");
  const std::string ptxas = folder.write("cu13/bin/ptxas",
                                         "#!/bin/sh\necho 'ptxas: NVIDIA (R) Ptx optimizing assembler'\n"
                                         "echo 'Cuda compilation tools, release 13.0, V13.0.88'\n");
  chmod(ptxas.c_str(), 0755);
  folder.write("cu13/lib/libnvvm.so.4", "");
  const auto runner = runner_for(folder / "cu13/bin/tileiras");
  const CompileOutcome out =
      runner->compile(request_for(folder / "job", "vec_add_f32_256", "vec_add", "sm_90"), {});
  CHECK(out.status == Status::kEnvironment);
  CHECK(contains(out.message, "of release 13.0"));
}
