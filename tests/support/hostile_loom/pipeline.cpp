// The exported functions through which a source becomes a code object: index, link, compile, emit.
#include <memory>

#include "support/hostile_loom/compile.h"
#include "support/hostile_loom/faults.h"
#include "support/hostile_loom/objects.h"

namespace kc::test::hostile {
namespace {

struct Release {
  void operator()(Result* result) const { release(result); }
  void operator()(Module* module) const { release(module); }
};
using ResultPointer = std::unique_ptr<Result, Release>;

IndexFile read_file(Source* source) {
  IndexFile out;
  out.source = Ref(source);
  out.text = std::make_shared<const ModuleText>(read_module(source->identifier, text_of(*source)));
  return out;
}

const ReportOptions* report_options(const EmitOptions* options) {
  for (const Header* next = options == nullptr ? nullptr : options->header.next; next != nullptr;
       next = next->next) {
    if (next->type == kReportOptions) return reinterpret_cast<const ReportOptions*>(next);
  }
  return nullptr;
}

void add_report(const Module& module, const Profile& profile, const EmitOptions* options, Result& result) {
  const ReportOptions* report_wish = report_options(options);
  if (report_wish == nullptr || report_wish->mode == 0) return;
  const std::string text = report(module, profile, result.is_failed);
  result.add(kReport, "loom-compile-report-json", "compile-report.json", {text.begin(), text.end()});
}

Occasion occasion_of(const Module& module, Stage stage, const Profile& profile, Allocator allocator) {
  return {module.files[0], stage, allocator, profile.target, &module.values};
}

Status compile(Module& module, const Profile& profile, Allocator allocator, Result& result) {
  if (module.is_lowered) return fail(kFailedPrecondition, "the module is lowered already");
  if (const Status status = act(occasion_of(module, Stage::kCompile, profile, allocator), result))
    return status;
  if (const auto problem = unresolved_call(module)) result.add(*problem, module.files[0].source.get());
  module.is_lowered = true;
  return 0;
}

Status emit(Module& module, const Profile& profile, const EmitOptions* options, Allocator allocator,
            Result& result) {
  if (options != nullptr) {
    if (const Status status = check_options(options->header, kEmitOptions, sizeof *options, "emit options"))
      return status;
  }
  const Occasion occasion = occasion_of(module, Stage::kEmit, profile, allocator);
  if (const Status status = act(occasion, result)) return status;
  const std::string format = options == nullptr ? "amdgpu-hsaco" : text_of(options->format);
  if (format != "amdgpu-hsaco") {
    result.add({"EMIT/TARGET", "no linked emitter supports artifact format '" + format + "'"}, nullptr);
  }
  if (!result.is_failed) {
    if (auto code = code_object(module, profile, occasion)) {
      result.add(kExecutable, "amdgpu-hsaco", module.export_name, std::move(*code));
    }
  }
  add_report(module, profile, options, result);
  return 0;
}

}  // namespace
}  // namespace kc::test::hostile

using namespace kc::test::hostile;

// ==== Index ===========================================================================================

LOOM_API Status loomc_link_index_builder_create(Context*, const Header* options, Allocator, Builder** out) {
  *out = nullptr;
  if (options != nullptr) {
    if (const Status status = check_options(*options, kBuilderOptions, 32, "link index builder options"))
      return status;
  }
  *out = new Builder;
  return 0;
}
LOOM_API void loomc_link_index_builder_release(Builder* builder) {
  release(builder);
}
LOOM_API Status loomc_link_index_builder_reserve_source_slot(Builder* builder, const IndexSourceOptions*,
                                                             uint64_t* slot) {
  *slot = builder->files.size();
  builder->files.emplace_back();
  return 0;
}
LOOM_API Status loomc_link_index_builder_fill_source_slot(Builder* builder, uint64_t slot, Source* source) {
  if (slot >= builder->files.size()) return fail(kInvalidArgument, "the slot was not reserved");
  builder->files[slot] = read_file(source);
  return 0;
}
LOOM_API Status loomc_link_index_builder_add_source(Builder* builder, Source* source,
                                                    const IndexSourceOptions* options, uint64_t* slot) {
  uint64_t reserved = 0;
  loomc_link_index_builder_reserve_source_slot(builder, options, &reserved);
  if (slot != nullptr) *slot = reserved;
  return loomc_link_index_builder_fill_source_slot(builder, reserved, source);
}
LOOM_API Status loomc_link_index_builder_finish(Builder* builder, Index** index, Result** result) {
  *index = nullptr;
  *result = nullptr;
  ResultPointer made(new Result);
  for (const IndexFile& file : builder->files) {
    if (file.text == nullptr) return fail(kFailedPrecondition, "a reserved slot was not filled");
    if (const Status status = act({file, Stage::kIndex}, *made)) return status;
    if (file.text->problem) made->add(*file.text->problem, file.source.get());
  }
  if (!made->is_failed) {
    *index = new Index;
    (*index)->files = builder->files;
  }
  *result = made.release()->finish();
  return 0;
}

// ==== Link ============================================================================================

LOOM_API Status loomc_link_module(Linker* linker, Workspace* workspace, const LinkOptions* options,
                                  Module** module, Result** result) {
  *module = nullptr;
  *result = nullptr;
  if (const Status status = check_options(options->header, kLinkOptions, sizeof *options, "link options"))
    return status;
  if (options->index == nullptr) return fail(kInvalidArgument, "link options require a link index");
  if (options->root_count != 1 || options->mode != 1) return fail(kUnimplemented, "one root, mode LINK");
  const Exclusive guard(workspace);
  ResultPointer made(new Result);
  std::unique_ptr<Module, Release> linked(new Module);
  linked->workspace = Ref(workspace);
  link_root(*object<Index>(options->index), text_of(options->roots[0]), options->config, *linked, *made);
  if (!linked->files.empty()) {
    const Occasion occasion{linked->files[0], Stage::kLink, linker->allocator, {}, &linked->values};
    if (const Status status = act(occasion, *made)) return status;
  }
  if (!made->is_failed) *module = linked.release();
  *result = made.release()->finish();
  return 0;
}

LOOM_API Status loomc_module_serialize_to_source(const Module* module, const SerializeOptions* options,
                                                 Allocator, Source** out) {
  *out = nullptr;
  if (options == nullptr || options->format != kBytecode) return fail(kUnimplemented, "only bytecode");
  if (const Status status =
          check_options(options->header, kSerializeOptions, sizeof *options, "serialize options")) {
    return status;
  }
  const Exclusive guard(module->workspace.get());
  auto* made = new Source;
  made->identifier = text_of(options->identifier);
  made->format = kBytecode;
  made->contents = serialized(*module);
  *out = made;
  return 0;
}

LOOM_API Status loomc_module_import_cxx(Context*, Workspace*, Source*, const Header*, Allocator,
                                        Module** module, Result** result) {
  *module = nullptr;
  *result = nullptr;
  return fail(kUnimplemented, "C++ import is not part of this test library");
}

// ==== Compile and emit ================================================================================

LOOM_API Status loomc_compile_module(Compiler*, Workspace* workspace, PassProgram*, Module* module,
                                     const CompileOptions* options, Allocator allocator, Result** result) {
  *result = nullptr;
  if (const Status status =
          check_options(options->header, kCompileOptions, sizeof *options, "compile options")) {
    return status;
  }
  const Header* next = options->header.next;
  if (next == nullptr || next->type != kSpecializationOptions || next->next != nullptr) {
    return fail(kUnimplemented, "option extension type is not supported");
  }
  const auto* rows = reinterpret_cast<const SpecializationOptions*>(next);
  if (rows->row_count != 1 || text_of(rows->rows[0].function) != module->root) {
    return fail(kNotFound, "the module has no such function");
  }
  const Exclusive guard(workspace);
  module->profile = Ref(object<Profile>(rows->rows[0].profile));
  ResultPointer made(new Result);
  if (const Status status = compile(*module, *module->profile.get(), allocator, *made)) return status;
  *result = made.release()->finish();
  return 0;
}

LOOM_API Status loomc_emit_module(Environment*, Workspace* workspace, Module* module,
                                  const EmitOptions* options, Allocator allocator, Result** result) {
  *result = nullptr;
  const Exclusive guard(workspace);
  if (!module->is_lowered) return fail(kFailedPrecondition, "the module is not lowered");
  ResultPointer made(new Result);
  if (const Status status = emit(*module, *module->profile.get(), options, allocator, *made)) return status;
  *result = made.release()->finish();
  return 0;
}

LOOM_API Status loomc_compile_artifact(Compiler*, Workspace* workspace, PassProgram*, Module* module,
                                       const ArtifactOptions* options, Allocator allocator, Result** result) {
  *result = nullptr;
  if (const Status status =
          check_options(options->header, kArtifactOptions, sizeof *options, "compile artifact options")) {
    return status;
  }
  if (options->profile == nullptr)
    return fail(kInvalidArgument, "compile artifact options require a target profile");
  if (options->root_count != 1 || text_of(options->roots[0]) != module->root) {
    return fail(kNotFound, "the module has no such function");
  }
  const auto* profile = object<Profile>(options->profile);
  const Exclusive guard(workspace);
  ResultPointer made(new Result);
  if (const Status status = compile(*module, *profile, allocator, *made)) return status;
  if (!made->is_failed) {
    if (const Status status = emit(*module, *profile, options->emit, allocator, *made)) return status;
  }
  *result = made.release()->finish();
  return 0;
}
