#include "backend/loom/run/api.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/loom/loom.h"
#include "util/text.h"

namespace kc::backend::loom {
namespace {

// A compiler that repeats itself must not fill the store.
constexpr size_t kMostDiagnostics = 1000;
constexpr size_t kLongestMessage = 4096;
constexpr size_t kLongestName = 4096;  // of a file
constexpr size_t kMostRelated = 16;    // places of one diagnostic
// The largest code objects of real kernels are some MiB, a detailed report some hundred KiB.
constexpr size_t kLargestArtifact = 256U << 20;
// Errors of one lowering that are told before the library gives up.
constexpr uint32_t kMostLoweringErrors = 20;
// Named in a module, not in its code.
constexpr std::string_view kModuleName = "kernel";

std::string text_of(const abi::View& view, size_t most) {
  if (view.data == nullptr) return {};
  return std::string(view.data, std::min(view.size, most));
}

bool is_called(const abi::View& view, std::string_view name) {
  return view.data != nullptr && std::string_view(view.data, view.size) == name;
}

artifact::Severity severity_of(uint32_t severity) {
  switch (severity) {
    case abi::kNote:
      return artifact::Severity::kNote;
    case abi::kWarning:
      return artifact::Severity::kWarning;
    default:
      return artifact::Severity::kError;
  }
}

}  // namespace

LoomApi::LoomApi(Library library) : library_(std::move(library)) {}

std::optional<Problem> LoomApi::problem_of(abi::Status status) const {
  const abi::Code code = abi::code_of(status);
  if (code == abi::kOk) return std::nullopt;
  size_t size = 0;
  f().status_format(status, 0, nullptr, &size);
  std::string text(std::min(size, kLongestMessage) + 1, '\0');
  f().status_format(status, text.size(), text.data(), &size);
  f().status_free(status);
  text.resize(std::strlen(text.c_str()));
  // `file.c:123: INVALID_ARGUMENT; the message`: where in the library is of no use to anybody here.
  const size_t semicolon = text.find("; ");
  if (semicolon != std::string::npos && semicolon + 2 < text.size()) text.erase(0, semicolon + 2);
  text.erase(std::min(text.find('\n'), text.size()));
  return Problem{code, text.empty() ? util::format("status {}", static_cast<uint32_t>(code)) : text};
}

Reply LoomApi::reply(abi::Status status, Object result) const {
  Reply out;
  out.problem = problem_of(status);
  if (out.problem) return out;
  if (!result) {
    out.problem = Problem{abi::kInternal, "the library gave neither a result nor an error"};
    return out;
  }
  out.succeeded = f().result_state(result.get()) == 0;
  out.result = std::move(result);
  return out;
}

std::optional<Problem> LoomApi::make_profile(const abi::ProfileOptions& options, Object& profile) const {
  profile = object(f().target_profile_release);
  return problem_of(
      f().target_profile_create_amdgpu(environment(), &options, shared_allocator(), profile.out()));
}

std::optional<Problem> LoomApi::make_workspace(Object& workspace) const {
  workspace = object(f().workspace_release);
  return problem_of(f().workspace_create(nullptr, counting_allocator(), workspace.out()));
}

Reply LoomApi::make_index(std::span<const Source> files, Object& index) const {
  index = object(f().link_index_release);
  Object builder = object(f().link_index_builder_release);
  Reply failed;
  failed.problem =
      problem_of(f().link_index_builder_create(context_.get(), nullptr, shared_allocator(), builder.out()));
  if (failed.problem) return failed;
  for (const Source& file : files) {
    abi::SourceOptions options;
    options.header = {abi::kSourceType, sizeof options, nullptr};
    options.format = is_bytecode(file.identifier) ? abi::kBytecode : abi::kText;
    options.identifier = abi::view(file.identifier);
    options.contents = abi::view(base::as_text(file.bytes));
    options.storage = abi::kBorrowed;
    Object source = object(f().source_release);
    failed.problem = problem_of(f().source_create(&options, shared_allocator(), source.out()));
    if (failed.problem) return failed;
    const abi::IndexSourceOptions place{options.identifier,
                                        file.role == Role::kLibrary ? abi::kLibrary : abi::kRoot};
    failed.problem =
        problem_of(f().link_index_builder_add_source(builder.get(), source.get(), &place, nullptr));
    if (failed.problem) return failed;
  }
  Object result = object(f().result_release);
  const abi::Status status = f().link_index_builder_finish(builder.get(), index.out(), result.out());
  return reply(status, std::move(result));
}

Reply LoomApi::link(const LinkRequest& request, Object& module) const {
  const abi::View root = abi::view(request.root);
  abi::LinkOptions options;
  options.header = {abi::kLinkType, sizeof options, nullptr};
  options.index = request.index;
  options.module_name = abi::view(kModuleName);
  options.mode = abi::kLink;
  options.roots = &root;
  options.root_count = 1;
  // A function without a body is the code generator's to judge: it names the call.
  options.flags = abi::kAllowUnresolved;
  options.config.bindings = request.config.data();
  options.config.binding_count = request.config.size();
  options.config.flags = abi::kRequireResolved;
  module = object(f().module_release);
  Object result = object(f().result_release);
  const abi::Status status =
      f().link_module(linker_.get(), request.workspace, &options, module.out(), result.out());
  Reply out = reply(status, std::move(result));
  if (out.succeeded && !module) {
    out.problem = Problem{abi::kInternal, "the library linked no module and gave no error"};
    out.succeeded = false;
  }
  return out;
}

std::optional<Problem> LoomApi::serialize(abi::Handle module, Object& source,
                                          base::ByteView& bytecode) const {
  abi::SerializeOptions options;
  options.header = {abi::kSerializeType, sizeof options, nullptr};
  options.format = abi::kBytecode;
  source = object(f().source_release);
  if (auto problem =
          problem_of(f().module_serialize_to_source(module, &options, counting_allocator(), source.out()))) {
    return problem;
  }
  const abi::View bytes = f().source_contents(source.get());
  if (bytes.data == nullptr || bytes.size == 0)
    return Problem{abi::kInternal, "the linked module has no bytecode"};
  bytecode = base::as_bytes({bytes.data, bytes.size});
  return std::nullopt;
}

void LoomApi::set_place(const abi::SourceRange& range, artifact::Diagnostic& out) const {
  if (range.source != nullptr) out.file = text_of(f().source_identifier(range.source), kLongestName);
  out.line = range.start_line;
  out.column = range.start_column;
}

void LoomApi::take_diagnostic(const void* row, std::vector<artifact::Diagnostic>& out) const {
  const auto& head = *static_cast<const abi::DiagnosticHead*>(row);
  const Row rest = row_of(row);
  artifact::Diagnostic diagnostic;
  diagnostic.severity = severity_of(head.severity);
  diagnostic.code = text_of(head.code, artifact::kMaxName);
  diagnostic.message = text_of(head.message, kLongestMessage);
  set_place(*rest.range, diagnostic);
  out.push_back(std::move(diagnostic));
  const size_t shown = rest.related == nullptr ? 0 : std::min(rest.related_count, kMostRelated);
  for (size_t i = 0; i < shown; ++i) {
    artifact::Diagnostic note;
    note.severity = artifact::Severity::kNote;
    note.message = text_of(rest.related[i].label, kLongestMessage);
    set_place(rest.related[i].range, note);
    out.push_back(std::move(note));
  }
  const size_t omitted = rest.omitted_count + (rest.related_count - shown);
  if (shown > 0 && omitted > 0) {
    out.push_back(
        {artifact::Severity::kNote, {}, util::format("{} more", util::counted(omitted, "place")), {}, 0, 0});
  }
}

void LoomApi::take_diagnostics(abi::Handle result, std::vector<artifact::Diagnostic>& out) const {
  const size_t count = f().result_diagnostic_count(result);
  for (size_t i = 0; i < count && out.size() < kMostDiagnostics; ++i) {
    if (const void* row = f().result_diagnostic_at(result, i)) take_diagnostic(row, out);
  }
}

std::optional<Problem> LoomApi::take_artifact(abi::Handle result, abi::ArtifactKind kind,
                                              std::string_view format,
                                              std::optional<base::Bytes>& out) const {
  const size_t count = f().result_artifact_count(result);
  for (size_t i = 0; i < count; ++i) {
    const abi::Artifact* row = f().result_artifact_at(result, i);
    if (row == nullptr || row->kind != kind || !is_called(row->format, format)) continue;
    abi::View bytes;
    if (auto problem = problem_of(f().byte_sequence_clone(row->contents, counting_allocator(), &bytes))) {
      return problem;
    }
    std::optional<Problem> problem;
    if (bytes.size > kLargestArtifact || (bytes.data == nullptr && bytes.size != 0)) {
      problem = Problem{abi::kInternal, util::format("an artifact of {} bytes", bytes.size)};
    } else {
      const base::ByteView view = base::as_bytes({bytes.data, bytes.size});
      out.emplace(view.begin(), view.end());
    }
    f().allocator_free(counting_allocator(), const_cast<char*>(bytes.data));
    return problem;
  }
  return std::nullopt;
}

base::Result<void> LoomApi::check_mapped() const {
  const uint64_t loads = objects_loaded();
  if (loads == loads_checked_.load(std::memory_order_relaxed)) return {};
  KC_TRY(library_.check_mapped());
  loads_checked_.store(loads, std::memory_order_relaxed);
  return {};
}

base::Result<void> LoomApi::checked(const std::optional<Problem>& problem, std::string_view what) const {
  if (!problem) return {};
  return base::fail(
      base::ErrorKind::kEnvironment,
      util::format("the Loom library ({}) cannot make {}: {}", version(), what, util::escape(problem->text)));
}

base::Result<void> LoomApi::make_shared_objects() {
  const abi::Allocator allocator = shared_allocator();
  environment_ = object(f().target_environment_release);
  KC_TRY(checked(problem_of(f().target_environment_create_amdgpu(allocator, environment_.out())),
                 "its target environment"));
  abi::ContextTargetOptions target;
  target.header = {abi::kContextTargetType, sizeof target, nullptr};
  target.environment = environment_.get();
  abi::ContextOptions context;
  context.header = {abi::kContextType, sizeof context, &target};
  context.source_retention = abi::kNamesAndPlaces;  // quoting a source's lines is not the library's part here
  context_ = object(f().context_release);
  KC_TRY(checked(problem_of(f().context_create(&context, allocator, context_.out())), "its context"));
  compiler_ = object(f().compiler_release);
  KC_TRY(checked(problem_of(f().compiler_create(context_.get(), nullptr, allocator, compiler_.out())),
                 "its compiler"));
  // Modules and the results of links come from the linker's allocator.
  linker_ = object(f().linker_release);
  KC_TRY(checked(problem_of(f().linker_create(context_.get(), nullptr, counting_allocator(), linker_.out())),
                 "its linker"));
  abi::PipelineOptions pipeline;
  pipeline.header = {abi::kPipelineType, sizeof pipeline, nullptr};
  pipeline.max_errors = kMostLoweringErrors;
  program_ = object(f().pass_program_release);
  Object result = object(f().result_release);
  const abi::Status status = f().pass_program_create_from_target_pipeline(
      context_.get(), &pipeline, allocator, program_.out(), result.out());
  const Reply made = reply(status, std::move(result));
  KC_TRY(checked(made.problem, "its pass program"));
  if (!made.succeeded || !program_) {
    std::vector<artifact::Diagnostic> said;
    take_diagnostics(made.result.get(), said);
    return checked(Problem{abi::kInternal, said.empty() ? "it does not say why" : said.front().message},
                   "its pass program");
  }
  return {};
}

base::Result<void> LoomApi::probe() {
  const std::string_view text = probe_text();
  const std::vector<Source> files = {{"probe.loom", Role::kSource, base::Bytes(text.begin(), text.end())}};
  Object index;
  const Reply answer = make_index(files, index);
  KC_TRY(checked(answer.problem, "an index"));
  const void* row = answer.succeeded ? nullptr : f().result_diagnostic_at(answer.result.get(), 0);
  return check_diagnostic(library_.generation(), row, kProbeLine);
}

base::Result<std::unique_ptr<LoomApi>> LoomApi::open(Library library) {
  const Generation generation = library.generation();
  std::unique_ptr<LoomApi> out =
      generation == Generation::kG4 ? make_g4(std::move(library)) : make_g3(std::move(library));
  KC_TRY(out->make_shared_objects());
  KC_TRY(out->probe());
  KC_TRY(out->check_mapped());
  return out;
}

}  // namespace kc::backend::loom
