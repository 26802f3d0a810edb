#include "backend/tileiras/diagnostics.h"
#include "support/source_set.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <vector>

namespace {

using kc::artifact::Diagnostic;
using kc::artifact::Severity;
using kc::backend::CompileRequest;
using kc::backend::Status;
using kc::backend::tileiras::explain;
using kc::backend::tileiras::Failure;
using kc::backend::tileiras::parse_diagnostics;
using kc::backend::tileiras::parse_gpus;
using kc::backend::tileiras::parse_version;
using kc::backend::tileiras::release_of;

Diagnostic only(const std::string& text) {
  const auto found = parse_diagnostics(text);
  REQUIRE(found.size() == 1);
  return found[0];
}

CompileRequest request_for(const std::string& target) {
  CompileRequest out;
  out.target = *kc::target::parse_target(target);
  return out;
}

Failure failure(int exit_code, const std::string& printed, const CompileRequest& request) {
  Failure out;
  out.exit_code = exit_code;
  out.compiler_version = "13.4.92";
  out.ptxas_version = "13.4.92";
  out.request = &request;
  out.diagnostics = parse_diagnostics(printed);
  out.printed_nothing = printed.empty();
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each form of line gives severity and message and place") {
  CHECK(only("error: no such thing\n") == Diagnostic{Severity::kError, "", "no such thing", "", 0, 0});
  CHECK(only("loc(\"kernels/a.py\":12:7): error: bad tile\n") ==
        Diagnostic{Severity::kError, "", "bad tile", "kernels/a.py", 12, 7});
  CHECK(only("loc(\"name\"(\"a b.py\":3:1)): warning: slow\n") ==
        Diagnostic{Severity::kWarning, "", "slow", "a b.py", 3, 1});
  CHECK(only("loc(unknown): error: lost\n") == Diagnostic{Severity::kError, "", "lost", "", 0, 0});
  // As tileiras 13.4 prints a location with debug information.
  CHECK(only("#cuda_tile.di_loc<loc(\"kernels/matmul.py\":7:11) in #cuda_tile.di_subprogram<file = "
             "<\"matmul.py\" in "
             "\"kernels\">, line = 6>>: error: Incompatibility with architecture 'sm_80'\n") ==
        Diagnostic{Severity::kError, "", "Incompatibility with architecture 'sm_80'", "kernels/matmul.py", 7,
                   11});
  CHECK(only("dir:x/a.py:5:2: note: see here\n") ==
        Diagnostic{Severity::kNote, "", "see here", "dir:x/a.py", 5, 2});
  CHECK(only("a.ptx:5: error: b\n") == Diagnostic{Severity::kError, "", "b", "a.ptx", 5, 0});
  CHECK(only("ptxas fatal   : Unresolved extern function 'f'\n") ==
        Diagnostic{Severity::kError, "", "ptxas: Unresolved extern function 'f'", "", 0, 0});
  CHECK(only("ptxas in.ptx, line 12; error   : Illegal operand\n") ==
        Diagnostic{Severity::kError, "", "ptxas: Illegal operand", "in.ptx", 12, 0});
  CHECK(only("LLVM ERROR: out of memory\n") == Diagnostic{Severity::kError, "", "out of memory", "", 0, 0});
  CHECK(only("remark: fused\n").severity == Severity::kRemark);
  CHECK(only("what: now: error: x\n").message == "what: now: x");
}

TEST_CASE("lines of no form of their own continue the message before") {
  const auto found = parse_diagnostics(
      "Failed to create temporary file: No such file or directory\n"
      "error: first\n"
      "  %0 = some.op\r\n"
      "       ^\n"
      "\n"
      "error: second\n");
  REQUIRE(found.size() == 3);
  CHECK(found[0].severity == Severity::kNote);
  CHECK(found[1].message == "first\n  %0 = some.op\n       ^");
  CHECK(found[2].message == "second");
}

TEST_CASE("an error without text is never the whole explanation") {
  const CompileRequest request = request_for("sm_90");
  for (const char* printed : {"error:\n", "error: \n", "a.py:1:2: error:\n"}) {
    CAPTURE(printed);
    CHECK(explain(failure(5, printed, request)).message == "tileiras failed to compile the program (exit 5)");
  }
  CHECK(explain(failure(5, "error:\nerror: the cause\n", request)).message == "the cause");
  CHECK(explain(failure(5, "error:\n  behind it\n  and more\n", request)).message == "behind it");
}

TEST_CASE("what a compiler prints without end is bounded") {
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "error: x\n";
  CHECK(parse_diagnostics(many).size() == 1000);
  std::string longer = "error: x\n";
  for (int i = 0; i < 5000; ++i) longer += "more of it\n";
  CHECK(only(longer).message.size() <= 4096);
  CHECK(only("error: " + std::string(100'000, 'y')).message.size() == 4096);
}

TEST_CASE("versions are read as tileiras and ptxas print them") {
  const std::string text =
      "tileiras: NVIDIA (R) Cuda Tile IR optimizing assembler\nCopyright (c) 2005-2026 NVIDIA Corporation\n"
      "Built on Tue\nCuda compilation tools, release 13.4, V13.4.92\nBuild local\n";
  CHECK(parse_version(text, "tileiras") == "13.4.92");
  CHECK(parse_version(text, "ptxas").empty());
  CHECK(parse_version("tileiras: NVIDIA but no number", "tileiras").empty());
  CHECK(parse_version("true (GNU coreutils) 9.1", "tileiras").empty());
  CHECK(release_of("13.4.92") == "13.4");
  CHECK(release_of("13.10.1") == "13.10");
  CHECK(parse_gpus(
            "  --gpu-name=<value>  - x\n    =sm_80    -   SM 80\n    =sm_100   -  SM 100\n  =linux - l\n") ==
        std::vector<std::string>{"sm_80", "sm_100"});
}

TEST_CASE("an unknown GPU is unsupported and says what there is and that no suffix is taken") {
  const CompileRequest request = request_for("sm_90a");
  Failure found =
      failure(1, "tileiras: for the --gpu-name option: Cannot find option named 'sm_90a'!\n", request);
  found.gpus = {"sm_80", "sm_90"};
  const auto why = explain(found);
  CHECK(why.status == Status::kUnsupported);
  CHECK(why.message == "tileiras 13.4.92 has no sm_90a; it has sm_80 and sm_90");
  CHECK(contains(why.hint, "say sm_90"));

  const CompileRequest other = request_for("sm_75");
  found = failure(1, "tileiras: for the --gpu-name option: Cannot find option named 'sm_75'!\n", other);
  found.gpus = {"sm_80", "sm_90"};
  CHECK(explain(found).status == Status::kUnsupported);
  CHECK(explain(found).hint.empty());
}

TEST_CASE("other exit codes are put into words") {
  const CompileRequest request = request_for("sm_90");
  const auto status = [&](int code, const std::string& printed) {
    return explain(failure(code, printed, request));
  };
  CHECK(status(1, "tileiras: Unknown command line argument '-x'\n").status == Status::kFailed);
  CHECK(status(1, "error: unable to read input file 'input.tilebc': gone\n").status == Status::kEnvironment);
  CHECK(status(2, "error: invalid optimization level: 4\n").status == Status::kFailed);
  CHECK(status(2, "error: invalid optimization level: 4\n").message == "invalid optimization level: 4");
  const auto silent = status(2, "");
  CHECK(silent.status == Status::kEnvironment);
  CHECK(contains(silent.message, "could not open its output"));
  CHECK(contains(silent.hint, "free space"));
  CHECK(
      status(3, "error: section too long\nerror: input does not correspond to Tile IR bytecode\n").message ==
      "section too long");
  CHECK(status(77, "").message == "tileiras ended with exit code 77");
}

TEST_CASE("a bytecode version that the compiler does not read is named with those it reads") {
  CompileRequest request = request_for("sm_90");
  const std::string header("\x7FTileIR\0\x0D\x09\0\0", 12);
  request.sources = kc::test::one_source("a.tilebc", kc::base::Bytes(header.begin(), header.end()));
  Failure found = failure(3, "error: unsupported Tile IR bytecode version: 13.9\n", request);
  found.bytecode_versions = {"13.3", "13.4"};
  const auto why = explain(found);
  CHECK(why.status == Status::kFailed);
  CHECK(why.message == "tileiras 13.4.92 does not read Tile IR bytecode 13.9; it reads 13.3 and 13.4");
  CHECK(contains(why.hint, "13.4"));
}

TEST_CASE("exit 5 names a foreign or broken ptxas or a missing libnvvm as the cause") {
  const CompileRequest request = request_for("sm_90");
  const std::string printed = "error: failed to compile Tile IR program\n";
  Failure found = failure(5, printed, request);
  CHECK(explain(found).status == Status::kFailed);
  CHECK(contains(explain(found).hint, "libnvvm of another release"));
  found.ptxas_version = "13.0.88";
  CHECK(explain(found).status == Status::kEnvironment);
  CHECK(explain(found).message == "the ptxas beside tileiras is of release 13.0, tileiras itself of 13.4");
  found.ptxas_version.clear();
  CHECK(explain(found).status == Status::kFailed);
  found.ptxas_problem = "--version ended with exit code 3";
  CHECK(explain(found).status == Status::kEnvironment);
  found.has_libnvvm = false;
  CHECK(contains(explain(found).message, "no libnvvm"));
}

TEST_CASE("a kernel whose only fault is the architecture is unsupported") {
  const CompileRequest request = request_for("sm_80");
  const std::string last = "error: failed to compile Tile IR program\n";
  // As tileiras 13.4 answers, with and without debug information.
  const std::string plain =
      "loc(\"a.py\":11:9): error: Incompatibility with architecture 'sm_80': unsupported type 'f8E4M3FN'\n";
  const std::string debug =
      "#cuda_tile.di_loc<loc(\"kernels/matmul.py\":7:11) in #cuda_tile.di_subprogram<file = <\"matmul.py\" "
      "in "
      "\"kernels\">, line = 6, name = \"matmul\", linkageName = \"matmul\", compileUnit = <file = "
      "<\"matmul.py\" in \"kernels\">>, scopeLine = 6>>: error: Incompatibility with architecture 'sm_80': "
      "unsupported type 'f8E4M3FN'\n";
  for (const std::string& printed : {plain + last, debug + last, plain + debug + last, plain,
                                     "warning: slow\n" + plain + "note: here\n" + last}) {
    CAPTURE(printed);
    const auto why = explain(failure(5, printed, request));
    CHECK(why.status == Status::kUnsupported);
    CHECK(why.message ==
          "this kernel is not for this target: Incompatibility with architecture 'sm_80': unsupported type "
          "'f8E4M3FN'");
    CHECK(contains(why.hint, "leave sm_80 out"));
  }
}

TEST_CASE("an architecture that is not the only fault is no excuse") {
  const CompileRequest request = request_for("sm_80");
  const std::string last = "error: failed to compile Tile IR program\n";
  const std::string type = "error: Incompatibility with architecture 'sm_80': unsupported type 'f8E4M3FN'\n";
  for (const std::string& printed :
       {"error: bad tile\n" + type + last, type + "error: bad tile\n" + last,
        type + "ptxas fatal   : Out of memory\n" + last, "error:\n" + type, last, std::string(),
        "error: in 'Incompatibility with architecture' something else\n" + last}) {
    CAPTURE(printed);
    const auto why = explain(failure(5, printed, request));
    CHECK(why.status == Status::kFailed);
    CHECK_FALSE(contains(why.hint, "leave sm_80 out"));
  }
  // Exit codes other than 5 mean something else.
  CHECK(explain(failure(3, type, request)).status == Status::kFailed);
  Failure foreign = failure(5, type + last, request);
  foreign.ptxas_version = "13.0.88";
  CHECK(explain(foreign).status == Status::kEnvironment);
}

TEST_CASE("a folder that cannot be written is the environment's fault whatever the exit code") {
  const CompileRequest request = request_for("sm_90");
  Failure found = failure(5, "error: failed to compile Tile IR program\n", request);
  found.folder_problem = "cannot write /x/probe: No space left on device";
  CHECK(explain(found).status == Status::kEnvironment);
  CHECK(contains(explain(found).message, "No space left"));
  // As tileiras 13.4 ends on a full disk.
  found = failure(1, "LLVM ERROR: IO failure on output stream: No space left on device\n", request);
  CHECK(explain(found).status == Status::kEnvironment);
}

TEST_CASE("a signal is named") {
  const CompileRequest request = request_for("sm_90");
  Failure found = failure(-1, "", request);
  found.signal = SIGSEGV;
  CHECK(explain(found).status == Status::kFailed);
  CHECK(explain(found).message == "tileiras was ended by signal 11 (SIGSEGV)");
  found.signal = SIGKILL;
  CHECK(contains(explain(found).hint, "memory"));
}
