#include "backend/loom/run/runner.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artifact/elf/elf_facts.h"
#include "backend/loom/loom.h"
#include "backend/loom/run/api.h"
#include "backend/loom/run/explain.h"
#include "backend/loom/run/module_digests.h"
#include "backend/loom/run/profiles.h"
#include "backend/loom/run/report.h"
#include "backend/loom/run/workers.h"
#include "base/digest.h"
#include "util/text.h"

namespace kc::backend::loom {
namespace {

struct Options {
  abi::ReportMode report = abi::kNoReport;
  abi::ProcessorMode mode = abi::kDefaultMode;
};

base::Result<Options> options_of(const Pairs& pairs) {
  Options out;
  for (const auto& [name, value] : pairs) {
    const Description* self = find_description(kName);
    const auto option = std::ranges::find(self->options, name, &Option::name);
    const auto at = option == self->options.end() ? std::vector<std::string>::const_iterator()
                                                  : std::ranges::find(option->values, value);
    if (option == self->options.end() || at == option->values.end()) {
      return base::fail(base::ErrorKind::kInput,
                        util::format("loom has no option {}: {}", util::escape(name), util::escape(value)));
    }
    // The values of both options are in the order of the library's numbers.
    const auto number = static_cast<uint32_t>(at - option->values.begin());
    if (name == "report") out.report = static_cast<abi::ReportMode>(number);
    if (name == "processor_mode") out.mode = static_cast<abi::ProcessorMode>(number);
  }
  return out;
}

class LoomRunner final : public Runner {
 public:
  LoomRunner(std::unique_ptr<LoomApi> api, IndexCache::Limits limits)
      : api_(std::move(api)), profiles_(*api_), indexes_(*api_, limits), workers_(*api_) {}

  CompileOutcome compile(const CompileRequest& request, const util::ProcessHooks& hooks) override;

 private:
  void run(const CompileRequest& request, const Options& options, CompileOutcome& out);
  bool link(const CompileRequest& request, abi::Handle workspace, abi::Handle index, Object& module,
            CompileOutcome& out);
  // Asks has_module() about `module`, whose digest is remembered by `key`. False: there is nothing left to
  // do, everything is said.
  bool ask(const CompileRequest& request, const base::Digest& key, const Object& module, CompileOutcome& out);
  void generate(const GenerateRequest& what, const CompileRequest& request, CompileOutcome& out);
  void take_code(const CompileRequest& request, base::Bytes code, CompileOutcome& out);

  // Reply of a step: its diagnostics are kept; false, with everything said, when it failed.
  bool accept(const CompileRequest& request, const Reply& reply, CompileOutcome& out);
  void fail(const Problem& problem, CompileOutcome& out);
  // False, with everything said, when the library loaded what kc has not identified: then no result counts.
  bool is_still_identified(CompileOutcome& out) const;

  const std::unique_ptr<LoomApi> api_;
  Profiles profiles_;
  IndexCache indexes_;
  ModuleDigests modules_;
  Workers workers_;
};

void set(CompileOutcome& out, Explanation why) {
  out.status = why.status;
  out.message = std::move(why.message);
  out.hint = std::move(why.hint);
  out.is_own_answer = why.is_own_answer;
}

void fail(CompileOutcome& out, std::string message, std::string hint = {}) {
  set(out, {Status::kFailed, std::move(message), std::move(hint), true});
}

CompileOutcome LoomRunner::compile(const CompileRequest& request, const util::ProcessHooks&) {
  const auto start = std::chrono::steady_clock::now();
  CompileOutcome out;
  std::string thrown;
  try {
    if (const auto options = options_of(request.options)) {
      run(request, *options, out);
    } else {
      kc::backend::loom::fail(out, options.error().text());
    }
  } catch (const std::exception& exception) {
    thrown = util::format("made the Loom library throw an exception: {}", util::escape(exception.what()));
  } catch (...) {
    thrown = "made the Loom library throw an exception";
  }
  if (!thrown.empty()) {
    out = {};
    out.status = Status::kTainted;
    out.message = std::move(thrown);
  }
  if (out.status != Status::kCompiled) {
    out.artifact.code.clear();
    out.artifact.facts = {};
  }
  out.artifact.compiler = kName;
  out.artifact.compiler_version = api_->version();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

void LoomRunner::fail(const Problem& problem, CompileOutcome& out) {
  Explanation why;
  why.message = util::format("the Loom library failed: {}", util::escape(problem.text));
  if (problem.code == abi::kResourceExhausted) {
    why.message = "the Loom library ran out of memory";
    why.hint = "try a smaller -j";
    why.is_own_answer = false;
  } else if (problem.text.find("structure_size") != std::string::npos) {
    // The call itself is wrong, whatever is compiled.
    why.status = Status::kEnvironment;
    why.message = util::format("the Loom library is not what its symbols say it is ({}): {}", api_->version(),
                               util::escape(problem.text));
    why.is_own_answer = false;
  }
  set(out, std::move(why));
}

bool LoomRunner::is_still_identified(CompileOutcome& out) const {
  auto checked = api_->check_mapped();
  if (checked) return true;
  base::Error& error = checked.error();
  set(out, {Status::kEnvironment, std::move(error.message), std::move(error.hint), false});
  return false;
}

bool LoomRunner::accept(const CompileRequest& request, const Reply& reply, CompileOutcome& out) {
  if (reply.result) api_->take_diagnostics(reply.result.get(), out.artifact.diagnostics);
  if (reply.problem) {
    fail(*reply.problem, out);
    return false;
  }
  if (reply.succeeded) return true;
  add_places(*request.sources, out.artifact.diagnostics);
  set(out, explain(request, out.artifact.diagnostics));
  return false;
}

bool LoomRunner::link(const CompileRequest& request, abi::Handle workspace, abi::Handle index, Object& module,
                      CompileOutcome& out) {
  std::vector<abi::ConfigBinding> bindings;
  bindings.reserve(request.config.size());
  for (const auto& [key, value] : request.config) bindings.push_back({abi::view(key), abi::view(value)});
  const Reply linked = api_->link({workspace, index, request.entry, bindings}, module);
  return is_still_identified(out) && accept(request, linked, out);
}

bool LoomRunner::ask(const CompileRequest& request, const base::Digest& key, const Object& module,
                     CompileOutcome& out) {
  Object source;
  base::ByteView bytecode;
  if (const auto problem = api_->serialize(module.get(), source, bytecode)) {
    fail(*problem, out);
    return false;
  }
  const base::Digest digest = base::sha256(bytecode);
  modules_.add(key, digest);
  if (request.has_module(digest)) return true;
  out.status = Status::kStopped;
  return false;
}

void LoomRunner::run(const CompileRequest& request, const Options& options, CompileOutcome& out) {
  if (!request.sources) return kc::backend::loom::fail(out, "a Loom kernel needs sources");
  const std::shared_ptr<const Profiles::Profile> profile = profiles_.get(request.target, options.mode);
  if (!profile->object) return set(out, profile->refusal);
  const std::shared_ptr<const IndexCache::Index> index = indexes_.get(request.sources);
  out.artifact.diagnostics = index->diagnostics;
  if (index->problem) return fail(*index->problem, out);
  if (!index->object) return set(out, explain(request, out.artifact.diagnostics));

  const base::Digest key = request.has_module ? ModuleDigests::key(request) : base::Digest();
  const std::optional<base::Digest> known = request.has_module ? modules_.find(key) : std::nullopt;
  if (known && !request.has_module(*known)) {
    out.status = Status::kStopped;
    return;
  }
  const Workers::Lease worker = workers_.take();
  if (worker.problem()) return fail(*worker.problem(), out);
  {
    Object module;
    if (link(request, worker.workspace(), index->object.get(), module, out) &&
        (!request.has_module || known || ask(request, key, module, out))) {
      generate({worker.workspace(), module.get(), profile->object.get(), request.entry, options.report},
               request, out);
    }
  }
  out.peak_bytes = worker.peak_bytes();
}

void LoomRunner::generate(const GenerateRequest& what, const CompileRequest& request, CompileOutcome& out) {
  const std::vector<Reply> replies = api_->generate(what);
  if (!is_still_identified(out)) return;
  bool is_good = true;
  for (const Reply& reply : replies) is_good = is_good && accept(request, reply, out);
  const Object& last = replies.back().result;
  std::optional<base::Bytes> report;
  std::optional<base::Bytes> code;
  std::optional<Problem> problem;
  // A report is made on failures too.
  if (last && what.report != abi::kNoReport) {
    problem = api_->take_artifact(last.get(), abi::kReport, abi::kReportFormat, report);
  }
  if (is_good && !problem)
    problem = api_->take_artifact(last.get(), abi::kExecutable, abi::kHsacoFormat, code);
  if (report) out.artifact.report = std::move(*report);
  if (is_good && problem) {
    fail(*problem, out);
  } else if (is_good && !code) {
    kc::backend::loom::fail(out, "the Loom library reported success and gave no code object");
  } else if (is_good) {
    take_code(request, std::move(*code), out);
  }
}

void LoomRunner::take_code(const CompileRequest& request, base::Bytes code, CompileOutcome& out) {
  auto facts = artifact::elf::read_amdgpu(code);
  if (!facts) return kc::backend::loom::fail(out, "the output of Loom is " + facts.error().text());
  const auto found = target::parse_target(facts->found_target);
  if (!found || !target::found_answers_asked(*found, request.target)) {
    return kc::backend::loom::fail(out, util::format("asked for {}, the code object is for {}",
                                                     request.target.text, util::escape(facts->found_target)));
  }
  if (facts->kernels.empty()) {
    return kc::backend::loom::fail(out, "the code object of Loom holds no kernel");
  }
  if (facts->kernels.size() == 1 && !facts->kernels.front().spills) {
    facts->kernels.front().spills = spill_count(out.artifact.report);
  }
  out.artifact.code = std::move(code);
  out.artifact.facts = std::move(*facts);
  out.status = Status::kCompiled;
  out.is_own_answer = true;
}

}  // namespace

base::Result<std::unique_ptr<Runner>> open(const Compiler& compiler, IndexCache::Limits limits) {
  try {
    KC_ASSIGN(Library library, Library::load(compiler));
    KC_ASSIGN(std::unique_ptr<LoomApi> api, LoomApi::open(std::move(library)));
    return std::make_unique<LoomRunner>(std::move(api), limits);
  } catch (const std::exception& exception) {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("the Loom library {} threw an exception: {}",
                                   util::escape(compiler.program), util::escape(exception.what())));
  } catch (...) {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("the Loom library {} threw an exception", util::escape(compiler.program)));
  }
}

}  // namespace kc::backend::loom
