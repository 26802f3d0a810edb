// The exported functions through which a source becomes a code object: index, link, compile, emit. Planning,
// linking, configuration, compiling and emitting are genuine; link_module and compile_artifact are frames
// around them.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/loom_abi/variant.h"
#include "support/loom_bridge/glue.h"

namespace kc::test::bridge {
namespace {

constexpr StringView literal(const char* text) {
  return {text, __builtin_strlen(text)};
}

Status check_link(const Linker* linker, const CoreWorkspace* workspace, const LinkOptions* options,
                  Module** module, Result** result) {
  if (linker == nullptr || workspace == nullptr || options == nullptr || module == nullptr ||
      result == nullptr) {
    return fail(kInvalidArgument, "link arguments are required");
  }
  if (const Status status = check_options(options->header, kLinkOptions, sizeof *options, "link options")) {
    return status;
  }
  const auto* index = static_cast<const CoreIndex*>(options->index);
  if (options->header.next != nullptr)
    return fail(kUnimplemented, "link option extensions are not supported");
  if (options->flags > 7) return fail(kInvalidArgument, "link options contain unknown flags");
  if (options->mode > 1) return fail(kInvalidArgument, "link mode is invalid");
  if (index == nullptr) return fail(kInvalidArgument, "link options require a link index");
  if (index->context != linker->context) {
    return fail(kInvalidArgument, "link index was created with another context");
  }
  if (options->config.flags > 1) return fail(kInvalidArgument, "config policy contains unknown flag bits");
  if (options->root_count != 0 && options->roots == nullptr) {
    return fail(kInvalidArgument, "link options require root symbols");
  }
  return 0;
}

// The genuine step of the real link path: CONFIG/INVALID diagnostics go into `result`.
Status apply_config(const ConfigOptions* options, CoreBlockPool* pool, Handle ir, Allocator allocator,
                    CoreResult* result) {
  CoreConfigArguments arguments{};
  arguments.options = options;
  arguments.ir = ir;
  arguments.result = result;
  arguments.code = literal("CONFIG/INVALID");
  arguments.pool = pool;
  arguments.allocator = allocator;
  return core().loomc_config_apply_text_to_module(&arguments);
}

// One link_module call: what the callbacks of the genuine linker need.
struct Link {
  const LinkOptions* options;
  CoreResult* result;
  CoreSource* source;  // the file that diagnostics are about

  static Status write(void* self, const void* diagnostic) {
    const Link* link = static_cast<Link*>(self);
    return core().loomc_result_add_loom_diagnostic(link->result, link->source, diagnostic, nullptr);
  }
  static CoreSink diagnostics(void* self, const size_t* slot) {
    auto* link = static_cast<Link*>(self);
    const auto* index = static_cast<const CoreIndex*>(link->options->index);
    link->source = *slot < index->slot_count ? index->slots[*slot].source : nullptr;
    return {write, self};
  }
  // Called before each selection of templates, which depends on config values.
  static Status prepare(void* self, CoreBlockPool* pool, Allocator allocator, Handle* ir) {
    const Link* link = static_cast<Link*>(self);
    const Status status = apply_config(&link->options->config, pool, *ir, allocator, link->result);
    return status != 0 || link->result->state == 0 ? status : Status{kInvalidArgument};
  }
};

Status materialize(Link* link, const Linker* linker, CoreWorkspace* workspace, CoreLinked* linked) {
  const LinkOptions* options = link->options;
  CorePlanOptions plan{};
  plan.mode = options->mode;
  plan.root_count = options->root_count;
  plan.roots = options->roots;
  plan.exported_roots = (options->flags & 1) != 0;
  plan.unresolved_policy = options->flags >> 1 & 1;
  plan.check_policy = options->flags >> 2 & 1;
  plan.provider_count = options->provider_count;
  plan.providers = options->providers;

  CoreContext* context = linker->context;
  CoreLinkEnvironment environment{};
  environment.ir_context = context->ir;
  environment.pool = &workspace->pool;
  if (context->environment != nullptr) {
    environment.low_table = core().low_table;
    environment.low_environment = context->environment + kLowEnvironment;
  }
  environment.diagnostics = Link::diagnostics;
  environment.prepare = Link::prepare;
  environment.user_data = link;
  environment.allocator = linker->allocator;

  StringView name = options->module_name;
  if (name.size == 0) name = {linker->module_name.data(), linker->module_name.size()};
  if (name.size == 0) name = literal("linked");
  const Handle modules = static_cast<const CoreIndex*>(options->index)->modules;
  return core().loom_link_index_materialize(modules, &plan, &environment, name, linked);
}

bool is_text(const CoreSource* source) {
  if (source->format == kBytecode) return false;
  return source->format == kText || source->contents.size < 4 ||
         std::memcmp(source->contents.data, "LOOM", 4) != 0;
}

// Lets diagnostics of later stages quote the files. A file whose name the linked module does not know took no
// part; of files with equal names the first is quoted.
Status keep_sources(const CoreIndex* index, CoreModule* module) {
  if (module->context->source_retention != 0) return 0;  // METADATA_ONLY
  size_t name_count = 0;
  std::memcpy(&name_count, static_cast<char*>(module->ir) + kSourceNameCount, sizeof name_count);
  std::vector<bool> missing(name_count, true);
  for (size_t i = 0; i < index->slot_count; ++i) {
    const CoreSource* source = index->slots[i].source;
    uint16_t id = 0;
    if (source == nullptr || !is_text(source) || source->identifier.size == 0) continue;
    if (const Status status = core().loom_module_register_source(module->ir, source->identifier, &id))
      return status;
    if (id >= missing.size() || !missing[id]) continue;
    missing[id] = false;
    const StringView text = {reinterpret_cast<const char*>(source->contents.data), source->contents.size};
    if (const Status status =
            core().loom_source_storage_insert(&module->sources, id, source->identifier, text)) {
      return status;
    }
  }
  return 0;
}

Status make_module(const Linker* linker, CoreWorkspace* workspace, Handle ir, CoreModule** module) {
  if (const Status status = allocate(linker->allocator, module)) return status;
  (*module)->context = retain(linker->context);
  (*module)->workspace = retain(workspace);
  (*module)->ir = ir;
  (*module)->sources.ir = ir;
  (*module)->sources.allocator = linker->allocator;
  (*module)->arena.pool = &workspace->pool;
  (*module)->config_arena = &(*module)->arena;
  return 0;
}

// Errors of the input become diagnostics, as in compile_module; others stay statuses.
Status report_failure(CoreResult* result, Status status) {
  constexpr uint32_t kInputErrors = 1U << kInvalidArgument | 1U << kNotFound | 1U << kAlreadyExists |
                                    1U << kFailedPrecondition | 1U << kOutOfRange | 1U << kUnimplemented |
                                    1U << kIncompatible;  // kAlreadyExists: two definitions
  if ((kInputErrors >> (status & 31) & 1) == 0) return status;
  if (result->diagnostic_count == 0) {
    return core().loomc_result_fail_status_diagnostic_consume(result, nullptr, kError, literal("LINK/PLAN"),
                                                              status);
  }
  free_status(status);
  result->state = 1;
  return 0;
}

// Remembers whether a specialization is for a profile in CU mode.
void note_profile(Module* module, Handle profile) {
  if (kVariant.processor_mode != 0 && is_cu_profile(profile)) module->is_cu_mode = true;
}

Status check_artifact(Handle compiler, Handle workspace, Handle program, const Module* module,
                      const ArtifactOptions* options, Result** result) {
  if (compiler == nullptr || workspace == nullptr || module == nullptr || options == nullptr ||
      result == nullptr) {
    return fail(kInvalidArgument, "compile artifact arguments are required");
  }
  if (const Status status =
          check_options(options->header, kArtifactOptions, sizeof *options, "compile artifact options")) {
    return status;
  }
  if ((options->artifact_flags & ~8U) != 0) {
    return fail(kInvalidArgument, "compile artifact options contain unknown artifact flags");
  }
  if (options->profile == nullptr) {
    return fail(kInvalidArgument, "compile artifact options require a target profile");
  }
  if (options->root_count != 0 && options->roots == nullptr) {
    return fail(kInvalidArgument, "compile artifact options require root symbols");
  }
  if (options->excluded_count != 0) return fail(kUnimplemented, "this test library has no excluded roots");
  if (program == nullptr) return fail(kUnimplemented, "this test library needs a pass program");
  return 0;
}

// The configuration of compile_artifact. *failed is set when there is nothing to compile.
Status configure(const ArtifactOptions* options, CoreWorkspace* workspace, Module* module,
                 Allocator allocator, CoreResult** failed) {
  if (options->config == nullptr) return 0;
  CoreResult* part = nullptr;
  if (const Status status = allocate(allocator, &part)) return status;
  const Status status = apply_config(options->config, &workspace->pool, module->real->ir, allocator, part);
  if (status == 0 && part->state != 0) {
    *failed = part;
  } else {
    core().loomc_result_release(part);
  }
  return status;
}

}  // namespace
}  // namespace kc::test::bridge

using namespace kc::test::bridge;

// ==== Index (genuine) =================================================================================

LOOM_API Status loomc_link_index_builder_create(Handle context, const void* options, Allocator allocator,
                                                Handle* builder) {
  return core().loomc_link_index_builder_create(context, options, allocator, builder);
}
LOOM_API Status loomc_link_index_builder_reserve_source_slot(Handle builder, const void* options,
                                                             uint64_t* slot) {
  return core().loomc_link_index_builder_reserve_source_slot(builder, options, slot);
}
LOOM_API Status loomc_link_index_builder_fill_source_slot(Handle builder, uint64_t slot, CoreSource* source) {
  return core().loomc_link_index_builder_fill_source_slot(builder, slot, source);
}
LOOM_API Status loomc_link_index_builder_add_source(Handle builder, CoreSource* source, const void* options,
                                                    uint64_t* slot) {
  uint64_t reserved = 0;
  if (const Status status = loomc_link_index_builder_reserve_source_slot(builder, options, &reserved))
    return status;
  if (slot != nullptr) *slot = reserved;
  return loomc_link_index_builder_fill_source_slot(builder, reserved, source);
}
LOOM_API Status loomc_link_index_builder_finish(Handle builder, Handle* index, Result** result) {
  CoreResult* part = nullptr;
  const Status status =
      core().loomc_link_index_builder_finish(builder, index, result == nullptr ? nullptr : &part);
  if (result != nullptr) *result = publish({part}, nullptr);
  return status;
}
LOOM_API void loomc_link_index_builder_release(Handle builder) {
  if (builder != nullptr) core().loomc_link_index_builder_release(builder);
}
LOOM_API void loomc_link_index_release(Handle index) {
  core().loomc_link_index_release(index);
}

// ==== Link ============================================================================================

LOOM_API Status loomc_link_module(Linker* linker, CoreWorkspace* workspace, const LinkOptions* options,
                                  Module** module, Result** result) {
  if (const Status status = check_link(linker, workspace, options, module, result)) return status;
  *module = nullptr;
  *result = nullptr;
  CoreResult* part = nullptr;
  if (const Status status = allocate(linker->allocator, &part)) return status;
  part->source_retention = linker->context->source_retention;

  Link link{options, part, nullptr};
  CoreLinked linked{};
  CoreModule* made = nullptr;
  Status status = materialize(&link, linker, workspace, &linked);
  if (status == 0) {
    status = make_module(linker, workspace, linked.ir, &made);
    if (status == 0) linked.ir = nullptr;  // the module's now
    core().loom_link_index_materialization_deinitialize(&linked);
    if (status == 0) status = keep_sources(static_cast<const CoreIndex*>(options->index), made);
  }
  if (status != 0) status = report_failure(part, status);
  if (made != nullptr && status == 0 && part->state == 0) {
    *module = new Module(made);
  } else {
    core().loomc_module_release(made);
  }
  if (status != 0) {
    core().loomc_result_release(part);
  } else {
    *result = publish({part}, nullptr);
  }
  return status;
}

// ==== Modules (genuine) ===============================================================================

LOOM_API Status loomc_module_deserialize_from_source(Handle context, Handle workspace, CoreSource* source,
                                                     const void* options, Allocator allocator,
                                                     Module** module, Result** result) {
  CoreModule* made = nullptr;
  CoreResult* part = nullptr;
  const Status status = core().loomc_module_deserialize_from_source(
      context, workspace, source, options, allocator, module == nullptr ? nullptr : &made,
      result == nullptr ? nullptr : &part);
  if (module != nullptr) *module = made == nullptr ? nullptr : new Module(made);
  if (result != nullptr) *result = publish({part}, nullptr);
  return status;
}
LOOM_API Status loomc_module_serialize_to_source(const Module* module, const void* options,
                                                 Allocator allocator, CoreSource** source) {
  return core().loomc_module_serialize_to_source(real(module), options, allocator, source);
}
LOOM_API void loomc_module_release(Module* module) {
  drop(module);
}
LOOM_API Status loomc_module_import_cxx(Handle, Handle, Handle, const Header* options, Allocator, Module**,
                                        Result**) {
  if (options != nullptr && options->size != 0 && options->size < 144) {
    return fail(kInvalidArgument, "C++ import options structure_size is too small");
  }
  return fail(kUnimplemented, "C++ import is not part of this test library");
}

// ==== Compile and emit (genuine) ======================================================================

LOOM_API Status loomc_compile_module(Handle compiler, Handle workspace, Handle program, Module* module,
                                     const CompileOptions* options, Allocator allocator, Result** result) {
  CompileOptions copy;
  if (options != nullptr && options->config_module != nullptr &&
      (options->header.size == 0 || options->header.size >= sizeof copy)) {
    copy = *options;  // the genuine code wants the genuine module
    copy.header.size = sizeof copy;
    copy.config_module = real(static_cast<Module*>(options->config_module));
    options = &copy;
  }
  const Header* next = options == nullptr || module == nullptr ? nullptr : options->header.next;
  for (; next != nullptr; next = next->next) {
    if (next->type != kSpecializationOptions) continue;
    const auto* specializations = reinterpret_cast<const SpecializationOptions*>(next);
    for (size_t i = 0; i < specializations->row_count; ++i)
      note_profile(module, specializations->rows[i].profile);
  }
  CoreResult* part = nullptr;
  const Status status = core().loomc_compile_module(compiler, workspace, program, real(module), options,
                                                    allocator, result == nullptr ? nullptr : &part);
  if (result != nullptr) *result = publish({part}, module);
  return status;
}

LOOM_API Status loomc_emit_module(Handle environment, Handle workspace, Module* module,
                                  const EmitOptions* options, Allocator allocator, Result** result) {
  CoreResult* part = nullptr;
  const Status status = core().loomc_emit_module(environment, workspace, real(module), options, allocator,
                                                 result == nullptr ? nullptr : &part);
  if (result != nullptr) *result = publish({part}, module);
  return status;
}

// ==== compile_artifact: compile_module with a row a root, then emit_module ============================

LOOM_API Status loomc_compile_artifact(Handle compiler, CoreWorkspace* workspace, Handle program,
                                       Module* module, const ArtifactOptions* options, Allocator allocator,
                                       Result** result) {
  if (const Status status = check_artifact(compiler, workspace, program, module, options, result))
    return status;
  *result = nullptr;
  CoreResult* failed = nullptr;
  if (const Status status = configure(options, workspace, module, allocator, &failed)) return status;
  if (failed != nullptr) {
    *result = publish({failed}, module);
    return 0;
  }

  std::vector<Specialization> rows;
  for (size_t i = 0; i < options->root_count; ++i) rows.push_back({options->roots[i], options->profile});
  SpecializationOptions specializations{};
  // The core judges extensions.
  specializations.header = {kSpecializationOptions, 0, sizeof specializations, options->header.next};
  specializations.rows = rows.data();
  specializations.row_count = rows.size();
  CompileOptions compile{};
  compile.header = {kCompileOptions, 0, sizeof compile, &specializations.header};
  compile.artifact_flags = options->artifact_flags;
  note_profile(module, options->profile);

  CoreResult* compiled = nullptr;
  if (const Status status = core().loomc_compile_module(compiler, workspace, program, module->real, &compile,
                                                        allocator, &compiled)) {
    return status;
  }
  std::vector<CoreResult*> parts{compiled};
  if (compiled->state == 0) {
    CoreResult* emitted = nullptr;
    const Handle environment = static_cast<CoreProfile*>(options->profile)->environment;
    if (const Status status = core().loomc_emit_module(environment, workspace, module->real, options->emit,
                                                       allocator, &emitted)) {
      core().loomc_result_release(compiled);
      return status;
    }
    parts.push_back(emitted);
  }
  *result = publish(std::move(parts), module);
  return 0;
}
