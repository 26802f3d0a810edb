// The running half against the stand-in of tests/support, which does what its source says.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backend/run.h"
#include "base/files.h"
#include "support/fake_install.h"
#include "support/source_set.h"
#include "support/temp_folder.h"

namespace {

using kc::backend::CompileOutcome;
using kc::backend::Compiler;
using kc::backend::CompileRequest;
using kc::backend::Pairs;
using kc::backend::Runner;
using kc::backend::SearchVariables;
using kc::backend::Status;
using kc::test::FakeInstallOptions;
using kc::test::install_fake_tileiras;
using kc::test::TempFolder;

constexpr std::string_view kHeader{"\x7FTileIR\0\x0D\x03\0\0", 12};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// One installation, one runner, any number of compiles.
class Fixture {
 public:
  explicit Fixture(const FakeInstallOptions& options = {}) {
    const auto program = install_fake_tileiras(KC_FAKE_TILEIRAS, folder_ / "cu13", options);
    REQUIRE_MESSAGE(program, (program ? "" : program.error().text()));
    SearchVariables variables;
    variables.kc_tileiras = *program;
    auto compiler = kc::backend::find_compiler("tileiras", variables, {});
    REQUIRE_MESSAGE(compiler, (compiler ? "" : compiler.error().text()));
    compiler_ = *compiler;
    auto runner = kc::backend::open_runner(compiler_);
    REQUIRE_MESSAGE(runner, (runner ? "" : runner.error().text()));
    runner_ = std::move(*runner);
  }

  CompileRequest request(const std::string& directives, const std::string& target = "sm_90",
                         Pairs options = {}) {
    CompileRequest out;
    out.entry = "kernel";
    out.target = *kc::target::parse_target(target);
    out.options = std::move(options);
    const std::string source = std::string(kHeader) + directives;
    out.sources = kc::test::one_source("kernels/a.tilebc", kc::base::Bytes(source.begin(), source.end()));
    out.timeout = std::chrono::seconds(30);
    out.folder = folder_ / ("job" + std::to_string(++jobs_));
    std::filesystem::create_directory(out.folder);
    return out;
  }
  CompileOutcome compile(const std::string& directives, const std::string& target = "sm_90",
                         Pairs options = {}) {
    return runner_->compile(request(directives, target, std::move(options)), {});
  }
  Runner& runner() { return *runner_; }
  const Compiler& compiler() const { return compiler_; }
  std::string root() const { return folder_ / "cu13"; }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
  Compiler compiler_;
  std::unique_ptr<Runner> runner_;
  int jobs_ = 0;
};

}  // namespace

TEST_CASE("a compile gives code and facts and who made it") {
  Fixture fake;
  const CompileOutcome out = fake.compile("@registers=40 @local=16 @shared=1024 @stderr=warning:%20slow%0A");
  CHECK_MESSAGE(out.status == Status::kCompiled, out.message);
  CHECK(out.message.empty());
  CHECK(out.artifact.compiler == "tileiras");
  CHECK(out.artifact.compiler_version == "13.4.92");
  CHECK(out.artifact.facts.found_target == "sm_90a");
  CHECK(out.artifact.facts.toolkit == "13.4");
  const auto* kernel = out.artifact.facts.find("kernel");
  REQUIRE(kernel);
  CHECK(kernel->registers == 40);
  CHECK(kernel->local_memory == 16);
  CHECK(kernel->shared_memory == 1024);
  CHECK(kernel->arguments.size() == 3);
  REQUIRE(out.artifact.diagnostics.size() == 1);
  CHECK(out.artifact.diagnostics[0].message == "slow");
  CHECK(out.artifact.code.size() > 512);
  CHECK(out.artifact.report.empty());
  CHECK(out.seconds > 0);
  // Nothing but the input changes the code; the options do.
  CHECK(fake.compile("@size=600").artifact.code == fake.compile("@size=600").artifact.code);
  CHECK(fake.compile("@size=600").artifact.code !=
        fake.compile("@size=600", "sm_90", {{"opt", "2"}}).artifact.code);
}

TEST_CASE("each option reaches the compiler and one that it does not have is refused") {
  Fixture fake;
  const auto code = [&](Pairs options) {
    const CompileOutcome out = fake.compile("@size=64", "sm_90", std::move(options));
    CHECK_MESSAGE(out.status == Status::kCompiled, out.message);
    return out.artifact.code;
  };
  const auto plain = code({});
  CHECK(code({{"opt", "3"},
              {"lineinfo", "false"},
              {"debug", "false"},
              {"sanitize", "none"},
              {"report", "none"}}) == plain);
  CHECK(code({{"opt", "0"}}) != plain);
  CHECK(code({{"lineinfo", "true"}}) != plain);
  CHECK(code({{"sanitize", "memcheck"}}) != plain);
  CHECK(code({{"debug", "true"}, {"opt", "0"}}) != code({{"opt", "0"}}));
  const CompileOutcome remarks = fake.compile("", "sm_90", {{"report", "remarks"}});
  CHECK(contains(std::string(kc::base::as_text(remarks.artifact.report)), "--- !Passed"));
  CHECK(fake.compile("", "sm_90", {{"debug", "true"}}).status == Status::kFailed);
  CHECK(contains(fake.compile("", "sm_90", {{"opt", "4"}}).message, "no option opt: 4"));
  CHECK(contains(fake.compile("", "sm_90", {{"optt", "3"}}).message, "no option optt"));
}

TEST_CASE("the compiler's environment is built and nothing of the caller's is in it") {
  setenv("CUDA_HOME", "/usr/local/other-toolkit", 1);
  setenv("TILEIR_DUMP", "1", 1);
  setenv("MAKEFLAGS", "-j8", 1);
  Fixture fake;
  const CompileRequest request = fake.request("@env");
  const CompileOutcome out = fake.runner().compile(request, {});
  unsetenv("CUDA_HOME");
  unsetenv("TILEIR_DUMP");
  unsetenv("MAKEFLAGS");
  CHECK(out.status == Status::kCompiled);
  CHECK(out.output == "env HOME=" + request.folder + "\nenv LC_ALL=C\nenv PATH=" + fake.root() +
                          "/bin\nenv TMPDIR=" + request.folder + "\n");
}

TEST_CASE("each way to end badly has its status and message and leaves no code") {
  Fixture fake;
  struct Case {
    const char* directives;
    Status status;
    const char* part;
  };
  const Case cases[] = {
      {"@exit=1 @stderr=error:%20bad%20option", Status::kFailed, "bad option"},
      {"@exit=2 @stderr=error:%20bad%20combination", Status::kFailed, "bad combination"},
      {"@exit=2", Status::kEnvironment, "could not open its output file"},
      {"@exit=3 @stderr=error:%20no%20bytecode", Status::kFailed, "no bytecode"},
      {"@exit=5 @stderr=loc(\"a.py\":3:4):%20error:%20bad%20tile", Status::kFailed, "bad tile"},
      {"@exit=42", Status::kFailed, "exit code 42"},
      {"@signal=11", Status::kFailed, "signal 11 (SIGSEGV)"},
      {"@signal=9", Status::kFailed, "signal 9 (SIGKILL)"},
      {"@output=none", Status::kFailed, "wrote no output"},
      {"@output=empty", Status::kFailed, "output is empty"},
      {"@output=garbage", Status::kFailed, "not a whole cubin"},
      {"@output=truncated", Status::kFailed, "not a whole cubin"},
      {"@entry=kernels @entry=other", Status::kFailed, "no entry kernel; it has kernels and other"},
      {"@arch=sm_80", Status::kFailed, "asked for sm_90, the code object is for sm_80"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.directives);
    const CompileOutcome out = fake.compile(one.directives);
    CHECK(out.status == one.status);
    CHECK_MESSAGE(contains(out.message, one.part), out.message);
    CHECK(out.artifact.code.empty());
    CHECK(out.artifact.facts.kernels.empty());
  }
  CHECK(fake.compile("@entry=kernels").hint == "did you mean \"kernels\"?");
}

TEST_CASE("code found for the asked architecture with a suffix or without is accepted") {
  Fixture fake;
  for (const auto& [suffix, found] : {std::pair("none", "sm_120"), {"a", "sm_120a"}, {"f", "sm_120f"}}) {
    const CompileOutcome out = fake.compile(std::string("@suffix=") + suffix, "sm_120");
    CHECK_MESSAGE(out.status == Status::kCompiled, out.message);
    CHECK(out.artifact.facts.found_target == found);
  }
}

TEST_CASE("an unknown GPU is unsupported and its list is that of the compiler") {
  Fixture fake;
  const CompileOutcome out = fake.compile("", "sm_90a");
  CHECK(out.status == Status::kUnsupported);
  CHECK(contains(out.message, "tileiras 13.4.92 has no sm_90a; it has sm_80, sm_86"));
  CHECK(contains(out.message, "sm_121"));
  CHECK(contains(out.hint, "say sm_90"));
  CHECK(fake.compile("", "sm_75").status == Status::kUnsupported);
}

TEST_CASE("a kernel that its target cannot run is unsupported there and compiled elsewhere") {
  Fixture fake;
  const char* directives = "@incompatible=sm_80 @incompatible=sm_89";
  for (const char* target : {"sm_80", "sm_89"}) {
    const CompileOutcome out = fake.compile(directives, target);
    CHECK(out.status == Status::kUnsupported);
    CHECK(out.is_own_answer);
    CHECK(contains(out.message, "not for this target"));
    CHECK(contains(out.message, "unsupported type 'f8E4M3FN'"));
    CHECK(out.artifact.diagnostics.size() == 2);
    CHECK(out.artifact.code.empty());
  }
  CHECK(fake.compile(directives, "sm_90").status == Status::kCompiled);
  CHECK(fake.compile("@stderr=error:%20bad%20tile%0A @incompatible=sm_80", "sm_80").status ==
        Status::kFailed);
}

TEST_CASE("a bytecode version that the compiler does not read is explained") {
  Fixture fake;
  CompileRequest request = fake.request("");
  request.sources = kc::test::changed(request.sources, [](kc::base::Bytes& bytes) { bytes[9] = 9; });
  const CompileOutcome out = fake.runner().compile(request, {});
  CHECK(out.status == Status::kFailed);
  CHECK(out.message ==
        "tileiras 13.4.92 does not read Tile IR bytecode 13.9; it reads 13.1, 13.2, 13.3 and 13.4");
}

TEST_CASE("a failure under a foreign ptxas is put down to it") {
  Fixture fake({.ptxas_release = "13.0.88"});
  const CompileOutcome out =
      fake.compile("@exit=5 @stderr=error:%20failed%20to%20compile%20Tile%20IR%20program");
  CHECK(out.status == Status::kEnvironment);
  CHECK(contains(out.message, "ptxas beside tileiras is of release 13.0, tileiras itself of 13.4"));
}

TEST_CASE("a failure without libnvvm is put down to it") {
  Fixture fake({.has_libnvvm = false});
  const CompileOutcome out =
      fake.compile("@exit=5 @stderr=error:%20failed%20to%20compile%20Tile%20IR%20program");
  CHECK(out.status == Status::kEnvironment);
  CHECK(contains(out.message, "no libnvvm"));
}

TEST_CASE("a job folder that is gone is the environment's fault") {
  Fixture fake;
  CompileRequest request = fake.request("");
  std::filesystem::remove(request.folder);
  CHECK(fake.runner().compile(request, {}).status == Status::kEnvironment);
}

TEST_CASE("a compiler that hangs is killed with its children when its time is over") {
  Fixture fake;
  CompileRequest request = fake.request("@spawn-grandchild @hang");
  request.timeout = std::chrono::milliseconds(1500);
  pid_t started = 0;
  pid_t ended = 0;
  kc::util::ProcessHooks hooks;
  hooks.started = [&](pid_t group) { started = group; };
  hooks.ended = [&](pid_t group) { ended = group; };
  const auto before = std::chrono::steady_clock::now();
  const CompileOutcome out = fake.runner().compile(request, hooks);
  const auto took = std::chrono::steady_clock::now() - before;
  CHECK(out.status == Status::kTimeout);
  CHECK(contains(out.message, "1.5"));
  CHECK(took < std::chrono::seconds(10));
  CHECK(started > 0);
  CHECK(ended == started);
  REQUIRE(contains(out.output, "grandchild "));
  const pid_t grandchild = std::atoi(out.output.c_str() + out.output.find("grandchild ") + 11);
  REQUIRE(grandchild > 0);
  // Killed; whoever inherits it may take a moment to reap it.
  const auto is_alive = [&] {
    const std::string status = kc::test::content_of("/proc/" + std::to_string(grandchild) + "/stat");
    const size_t name_end = status.rfind(") ");
    return name_end != std::string::npos && status[name_end + 2] != 'Z' && status[name_end + 2] != 'X';
  };
  for (int i = 0; i < 100 && is_alive(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(is_alive());
}

TEST_CASE("a compiler replaced while it runs gives nothing to keep") {
  for (const bool is_ptxas : {false, true}) {
    CAPTURE(is_ptxas);
    Fixture fake;
    kc::util::ProcessHooks hooks;
    hooks.started = [&](pid_t) {
      if (is_ptxas) {
        const std::string other = fake.folder().write("ptxas", "#!/bin/sh\nexit 0\n");
        chmod(other.c_str(), 0755);
        std::filesystem::rename(other, fake.root() + "/bin/ptxas");
      } else {
        REQUIRE(install_fake_tileiras(KC_FAKE_TILEIRAS, fake.root(), {.variant = "2", .has_ptxas = false}));
      }
    };
    const CompileOutcome out = fake.runner().compile(fake.request("@sleep=200"), hooks);
    CHECK(out.status == Status::kChanged);
    CHECK(contains(out.message, "changed during the build"));
    CHECK(out.artifact.code.empty());
    // And the next one does not even start.
    const CompileOutcome next = fake.compile("");
    CHECK(next.status == Status::kChanged);
    CHECK(next.seconds == 0);
  }
}

TEST_CASE("another variant and another ptxas are other compilers and make other code") {
  Fixture first;
  Fixture second({.variant = "2"});
  Fixture third({.ptxas_release = "13.4.93"});
  const std::string source = "@size=64";
  CHECK(first.compiler().identity != second.compiler().identity);
  CHECK(first.compiler().identity != third.compiler().identity);
  CHECK(first.compile(source).artifact.code != second.compile(source).artifact.code);
  CHECK(first.compile(source).artifact.code != third.compile(source).artifact.code);
}

TEST_CASE("compiles run side by side") {
  Fixture fake;
  std::vector<CompileRequest> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(fake.request("@size=" + std::to_string(100 + i)));
  std::vector<CompileOutcome> outcomes(requests.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < requests.size(); ++i) {
    threads.emplace_back([&, i] { outcomes[i] = fake.runner().compile(requests[i], {}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CompileOutcome& out : outcomes) CHECK_MESSAGE(out.status == Status::kCompiled, out.message);
  CHECK(outcomes[0].artifact.code != outcomes[1].artifact.code);
}

TEST_CASE("a wrong program is named with what it printed") {
  const TempFolder folder;
  const auto refusal = [&](const std::string& script) {
    const std::string program = folder.write("bin/tileiras", script);
    const std::string ptxas = folder.write("bin/ptxas", "#!/bin/sh\n");
    chmod(program.c_str(), 0755);
    chmod(ptxas.c_str(), 0755);
    SearchVariables variables;
    variables.kc_tileiras = program;
    const auto compiler = kc::backend::find_compiler("tileiras", variables, {});
    REQUIRE(compiler);
    const auto runner = kc::backend::open_runner(*compiler);
    REQUIRE_FALSE(runner);
    CHECK(runner.error().kind == kc::base::ErrorKind::kEnvironment);
    CHECK(contains(runner.error().message, program));
    return runner.error().message;
  };
  CHECK(contains(refusal("#!/bin/sh\nprintf 'I am \\033[31m something else\\nsecond line\\n'\n"),
                 "printed \"I am \\x1b[31m something else\""));
  CHECK(contains(refusal("#!/bin/sh\necho no >&2\nexit 7\n"), "exit code 7 and printed \"no\""));
  CHECK(contains(refusal("#!/no/such/interpreter\n"), "tileiras"));
}
