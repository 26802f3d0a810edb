#include "backend/tileiras/runner.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "artifact/elf/elf_facts.h"
#include "backend/tileiras/diagnostics.h"
#include "util/text.h"

namespace kc::backend::tileiras {
namespace {

// A version or help text comes in milliseconds; a wrong program may wait for ever.
constexpr std::chrono::seconds kQuestionTimeout{10};
// The largest cubins of real kernels are some MiB; with debug information some tens.
constexpr uint64_t kLargestOutput = 256U << 20;
// Remarks of a large kernel are some 100 KB.
constexpr uint64_t kLargestReport = 16U << 20;
// Their names do not matter to the output; relative ones keep the job's folder out of every message.
constexpr std::string_view kInputName = "input.tilebc";
constexpr std::string_view kOutputName = "output.cubin";
constexpr std::string_view kRemarksName = "remarks.yaml";
constexpr std::string_view kProbeName = "probe";

// Built, not filtered: CUDA_HOME, TILEIR_*, MAKEFLAGS and others of the caller's redirect tileiras or ptxas.
std::vector<std::string> environment_for(const Compiler& compiler, const std::string& folder) {
  return {"TMPDIR=" + folder, "HOME=" + folder, "PATH=" + base::parent_path(compiler.program), "LC_ALL=C"};
}

struct Answer {
  std::string text;
  std::string problem;  // not empty: it could not be asked, or did not say "0"
};

// Runs `program option`, which prints something and ends.
Answer ask(const Compiler& compiler, const std::string& program, const std::string& option,
           const std::string& folder, const util::ProcessHooks& hooks) {
  util::ProcessSpec spec;
  spec.program = program;
  spec.arguments = {option};
  spec.environment = environment_for(compiler, folder);
  spec.directory = folder;
  spec.timeout = kQuestionTimeout;
  const auto result = util::run_process(spec, hooks);
  if (!result) return {{}, result.error().text()};
  Answer out{result->out + result->err, {}};
  const std::string_view printed = util::trim(out.text);
  const std::string first = util::escape(printed.substr(0, std::min<size_t>(printed.find('\n'), 200)));
  if (result->timed_out) {
    out.problem = util::format("{} did not end within {} s", option, kQuestionTimeout.count());
  } else if (result->exit_code != 0) {
    out.problem = result->signal != 0 ? util::format("{} ended by signal {}", option, result->signal)
                                      : util::format("{} ended with exit code {}", option, result->exit_code);
  }
  if (!out.problem.empty() && !first.empty()) out.problem += util::format(" and printed \"{}\"", first);
  return out;
}

// What is asked once for all compiles, when the first failure needs it.
class Question {
 public:
  const Answer& get(const std::function<Answer()>& ask_now) {
    std::call_once(once_, [&] { answer_ = ask_now(); });
    return answer_;
  }

 private:
  std::once_flag once_;
  Answer answer_;
};

base::Result<void> write_file(const std::string& path, base::ByteView bytes) {
  KC_ASSIGN(const base::FileDescriptor fd,
            base::open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600,
                          base::ErrorKind::kEnvironment));
  return base::write_all(fd.get(), bytes, path);
}

// Why nothing can be written to `folder`; empty when it can.
std::string folder_problem(const std::string& folder) {
  const std::string path = base::join_path(folder, kProbeName);
  const auto written = write_file(path, base::Bytes(4096));
  unlink(path.c_str());
  return written ? std::string() : written.error().text();
}

base::Result<base::Bytes> read_result(const std::string& folder, std::string_view name, uint64_t limit) {
  const std::string path = base::join_path(folder, name);
  KC_ASSIGN(const base::FileDescriptor fd,
            base::open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, base::ErrorKind::kFailed));
  return base::read_descriptor(fd.get(), name, limit, nullptr, base::ErrorKind::kFailed);
}

struct Arguments {
  std::vector<std::string> list;
  bool wants_remarks = false;
};

base::Result<Arguments> arguments_for(const CompileRequest& request) {
  Arguments out;
  out.list = {std::string(kInputName), "-o", std::string(kOutputName), "--gpu-name", request.target.text};
  std::string opt = "3";
  const auto is_on = [](const std::string& value) { return value == "true"; };
  for (const auto& [name, value] : request.options) {
    const Description* self = find_description(kName);
    const auto option = std::ranges::find(self->options, name, &Option::name);
    if (option == self->options.end() || std::ranges::find(option->values, value) == option->values.end()) {
      return base::fail(base::ErrorKind::kInput, util::format("tileiras has no option {}: {}",
                                                              util::escape(name), util::escape(value)));
    }
    if (name == "opt") opt = value;
    if (name == "lineinfo" && is_on(value)) out.list.emplace_back("--lineinfo");
    if (name == "debug" && is_on(value)) out.list.emplace_back("-g");
    if (name == "sanitize" && value != "none") out.list.push_back("--sanitize=" + value);
    if (name == "report" && value == "remarks") {
      out.wants_remarks = true;
      out.list.insert(out.list.end(), {"--remarks=all", "--remark-format=yaml",
                                       "--remarks-output-file=" + std::string(kRemarksName)});
    }
  }
  out.list.push_back("-O" + opt);
  return out;
}

class TileirasRunner final : public Runner {
 public:
  TileirasRunner(Compiler compiler, std::string version)
      : compiler_(std::move(compiler)), version_(std::move(version)) {}

  CompileOutcome compile(const CompileRequest& request, const util::ProcessHooks& hooks) override;

 private:
  void run(const CompileRequest& request, const util::ProcessHooks& hooks, const Arguments& arguments,
           CompileOutcome& out);
  void explain_failure(const CompileRequest& request, const util::ProcessHooks& hooks,
                       const util::ProcessResult& result, CompileOutcome& out);
  void take_output(const CompileRequest& request, const Arguments& arguments, CompileOutcome& out);

  const Compiler compiler_;
  const std::string version_;
  Question help_;
  Question bytecode_versions_;
  Question ptxas_;
};

void set(CompileOutcome& out, Status status, std::string message, std::string hint = {}) {
  out.status = status;
  out.message = std::move(message);
  out.hint = std::move(hint);
}

CompileOutcome TileirasRunner::compile(const CompileRequest& asked, const util::ProcessHooks& hooks) {
  CompileOutcome out;
  out.artifact.compiler = kName;
  out.artifact.compiler_version = version_;
  CompileRequest request = asked;
  auto folder = base::absolute_path(asked.folder);
  auto arguments = arguments_for(request);
  if (!folder) {
    set(out, Status::kEnvironment, folder.error().text());
  } else if (!arguments) {
    set(out, Status::kFailed, arguments.error().text());
  } else if (request.sources->files.size() != 1) {
    set(out, Status::kFailed,
        util::format("tileiras takes one source, not {}", request.sources->files.size()));
  } else if (!is_unchanged(compiler_)) {
    set(out, Status::kChanged, change_of(compiler_));
  } else {
    request.folder = std::move(*folder);
    run(request, hooks, *arguments, out);
    // Whatever came out may be another compiler's work: nothing of it may be kept.
    if (!is_unchanged(compiler_)) set(out, Status::kChanged, change_of(compiler_));
  }
  if (out.status != Status::kCompiled) {
    out.artifact.code.clear();
    out.artifact.facts = {};
    out.artifact.report.clear();
  }
  return out;
}

void TileirasRunner::run(const CompileRequest& request, const util::ProcessHooks& hooks,
                         const Arguments& arguments, CompileOutcome& out) {
  const auto written =
      write_file(base::join_path(request.folder, kInputName), request.sources->files.front().bytes);
  if (!written) return set(out, Status::kEnvironment, written.error().text(), written.error().hint);
  util::ProcessSpec spec;
  spec.program = compiler_.program;
  spec.arguments = arguments.list;
  spec.environment = environment_for(compiler_, request.folder);
  spec.directory = request.folder;
  if (request.timeout > util::Nanoseconds::zero()) spec.timeout = request.timeout;
  const auto result = util::run_process(spec, hooks);
  if (!result) return set(out, Status::kEnvironment, result.error().text(), result.error().hint);
  out.seconds = result->seconds;
  out.peak_bytes = result->peak_bytes;
  out.is_own_answer = result->exit_code >= 0 && !result->timed_out;
  out.output = result->out + result->err;
  out.artifact.diagnostics = parse_diagnostics(out.output);
  if (result->timed_out) {
    const double seconds = std::chrono::duration<double>(request.timeout).count();
    set(out, Status::kTimeout,
        util::format("tileiras was still running after {}", util::duration_text(seconds)),
        "raise the kernel's timeout");
  } else if (result->exit_code != 0) {
    explain_failure(request, hooks, *result, out);
  } else {
    take_output(request, arguments, out);
  }
}

void TileirasRunner::explain_failure(const CompileRequest& request, const util::ProcessHooks& hooks,
                                     const util::ProcessResult& result, CompileOutcome& out) {
  const auto question = [&](Question& slot, const std::string& program,
                            const std::string& option) -> const Answer& {
    return slot.get([&] { return ask(compiler_, program, option, request.folder, hooks); });
  };
  Failure failure;
  failure.exit_code = result.exit_code;
  failure.signal = result.signal;
  failure.compiler_version = version_;
  failure.request = &request;
  failure.diagnostics = out.artifact.diagnostics;
  failure.printed_nothing = util::trim(out.output).empty();
  failure.folder_problem = folder_problem(request.folder);
  if (!failure.folder_problem.empty()) {
    // Nothing more to ask: the questions would meet the same folder.
  } else if (result.exit_code == 1) {
    failure.gpus = parse_gpus(question(help_, compiler_.program, "--help").text);
  } else if (result.exit_code == 3) {
    for (const std::string& line :
         util::split(question(bytecode_versions_, compiler_.program, "--list-versions").text, '\n')) {
      if (!util::trim(line).empty()) failure.bytecode_versions.emplace_back(util::trim(line));
    }
  } else if (result.exit_code == 5) {
    failure.has_libnvvm =
        std::ranges::find(compiler_.files, "libnvvm", &IdentityFile::role) != compiler_.files.end();
    const auto ptxas = std::ranges::find(compiler_.files, "ptxas", &IdentityFile::role);
    const Answer& answer =
        question(ptxas_, ptxas == compiler_.files.end() ? "ptxas" : ptxas->path, "--version");
    failure.ptxas_problem = answer.problem;
    failure.ptxas_version = parse_version(answer.text, "ptxas");
  }
  Explanation why = explain(failure);
  set(out, why.status, std::move(why.message), std::move(why.hint));
}

void TileirasRunner::take_output(const CompileRequest& request, const Arguments& arguments,
                                 CompileOutcome& out) {
  // A full disk also shows as an output that is missing or cut short after exit 0.
  const auto fail = [&](std::string message) {
    const std::string problem = folder_problem(request.folder);
    if (problem.empty()) return set(out, Status::kFailed, std::move(message));
    set(out, Status::kEnvironment,
        util::format("{}; its job folder cannot be written: {}", message, problem));
  };
  auto code = read_result(request.folder, kOutputName, kLargestOutput);
  if (!code) {
    const bool is_missing = code.error().sys_errno == ENOENT;
    return fail(is_missing ? "tileiras ended without an error but wrote no output"
                           : "the output of tileiras cannot be read: " + code.error().text());
  }
  if (code->empty()) return fail("tileiras ended without an error but its output is empty");
  auto facts = artifact::elf::read_cubin(*code);
  if (!facts) return fail("the output of tileiras is " + facts.error().text());

  const auto found = target::parse_target(facts->found_target);
  if (!found || !target::found_answers_asked(*found, request.target)) {
    return fail(util::format("asked for {}, the code object is for {}", request.target.text,
                             util::escape(facts->found_target)));
  }
  if (facts->find(request.entry) == nullptr) {
    std::vector<std::string> names;
    for (const artifact::KernelFacts& kernel : facts->kernels) names.push_back(util::escape(kernel.symbol));
    fail(util::format("the code object has no entry {}; it has {}", util::escape(request.entry),
                      names.empty() ? "none" : util::listed(names)));
    const std::string near = util::did_you_mean(request.entry, names);
    if (out.status == Status::kFailed) out.hint = near;
    return;
  }
  if (arguments.wants_remarks) {
    auto remarks = read_result(request.folder, kRemarksName, kLargestReport);
    // No file: it had nothing to remark.
    if (!remarks && remarks.error().sys_errno != ENOENT) {
      return fail("the remarks of tileiras cannot be read: " + remarks.error().text());
    }
    if (remarks) out.artifact.report = std::move(*remarks);
  }
  out.artifact.code = std::move(*code);
  out.artifact.facts = std::move(*facts);
  out.status = Status::kCompiled;
}

}  // namespace

base::Result<std::unique_ptr<Runner>> open(const Compiler& compiler) {
  if (!is_unchanged(compiler)) return base::fail(base::ErrorKind::kEnvironment, change_of(compiler));
  // Asking for the version writes nothing, so any folder will do.
  const Answer answer = ask(compiler, compiler.program, "--version", "/", {});
  const std::string shown = util::escape(compiler.program);
  if (!answer.problem.empty()) {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("{} is not a tileiras: {}", shown, answer.problem),
                      std::string(kInstallHint));
  }
  std::string version = parse_version(answer.text, kName);
  if (version.empty()) {
    const std::string_view printed = util::trim(answer.text);
    const std::string first = util::escape(printed.substr(0, std::min<size_t>(printed.find('\n'), 200)));
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("{} is not a tileiras: --version printed \"{}\"", shown, first),
                      std::string(kInstallHint));
  }
  return std::make_unique<TileirasRunner>(compiler, std::move(version));
}

}  // namespace kc::backend::tileiras
