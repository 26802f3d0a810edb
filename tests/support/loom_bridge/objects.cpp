// The exported functions about objects: allocators, statuses, environments, contexts, profiles, pass
// programs, workspaces, compilers, linkers, sources, results.
//
// Threads: a handle may be shared as in the real library. Counts are atomic, the tables of processor modes
// have their own mutexes, and core() is filled once. Nothing is leaked per compile; never given back is the
// mapping of libloomcore.so.
#include <algorithm>
#include <cstring>
#include <string>

#include "support/loom_abi/variant.h"
#include "support/loom_bridge/glue.h"

using namespace kc::test::bridge;

// ==== Allocators and statuses (text by the genuine formatter) =========================================

LOOM_API Allocator loomc_allocator_system() {
  return heap();
}
LOOM_API void loomc_allocator_free(Allocator allocator, void* block) {
  release_memory(allocator, block);
}
LOOM_API void loomc_status_free(Status status) {
  free_status(status);
}
LOOM_API int loomc_status_consume_code(Status status) {
  free_status(status);
  return static_cast<int>(status & 31);
}
LOOM_API bool loomc_status_format(Status status, size_t capacity, char* buffer, size_t* size) {
  const std::string text = status_text(status);
  if (size != nullptr) *size = text.size();
  if (buffer != nullptr && capacity != 0) {
    const size_t kept = std::min(text.size(), capacity - 1);
    std::memcpy(buffer, text.data(), kept);
    buffer[kept] = 0;
  }
  return buffer != nullptr && capacity > text.size();
}

// ==== Retain ==========================================================================================

#define KC_RETAIN(object)                                \
  LOOM_API void loomc_##object##_retain(Handle handle) { \
    retain(handle);                                      \
  }
KC_RETAIN(target_environment)
KC_RETAIN(context)
KC_RETAIN(target_profile)
KC_RETAIN(pass_program)
KC_RETAIN(workspace)
KC_RETAIN(compiler)
KC_RETAIN(linker)
KC_RETAIN(source)
KC_RETAIN(link_index)
KC_RETAIN(module)
KC_RETAIN(result)
#undef KC_RETAIN

// ==== Environment, context, profile, pass program (genuine) ===========================================

LOOM_API Status loomc_target_environment_create_amdgpu(Allocator allocator, Handle* environment) {
  if (!load_core()) return kUnavailable;
  return core().loomc_target_environment_create_from_provider_set(core().amdgpu_providers, allocator,
                                                                  environment);
}
LOOM_API void loomc_target_environment_release(Handle environment) {
  release_environment(environment);
}

LOOM_API Status loomc_context_create(const ContextOptions* options, Allocator allocator, Handle* context) {
  if (!load_core()) return kUnavailable;
  ContextOptions wide{};
  if (kVariant.generation < 4 && options != nullptr) {  // options of 24 bytes, without retention
    wide.header = options->header;
    if (wide.header.size >= sizeof(Header)) wide.header.size = sizeof wide;
    options = &wide;
  }
  return core().loomc_context_create(options, allocator, context);
}
LOOM_API void loomc_context_release(Handle context) {
  if (context != nullptr) core().loomc_context_release(context);
}

LOOM_API Status loomc_target_profile_create_amdgpu(Handle environment, const ProfileOptions* options,
                                                   Allocator allocator, Handle* profile) {
  if (kVariant.processor_mode == 0) {
    return core().loomc_target_profile_create_amdgpu(environment, options, allocator, profile);
  }
  ProfileOptions plain;
  uint32_t mode = 0;
  if (options != nullptr && options->header.next != nullptr &&
      (options->header.size == 0 || options->header.size >= sizeof plain)) {
    const auto* execution = reinterpret_cast<const ProcessorModeOptions*>(options->header.next);
    if (execution->header.type != kVariant.processor_mode) {
      return fail(kUnimplemented, "unknown AMDGPU profile option extension");
    }
    mode = execution->mode;
    if (execution->header.size < sizeof *execution || execution->header.next != nullptr || mode > 2) {
      return fail(kInvalidArgument, "invalid AMDGPU profile execution options");
    }
    const std::string_view target(options->target.data, options->target.size);
    if (mode != 0 && !target.starts_with("gfx11") && !target.starts_with("gfx12")) {
      return fail(kUnimplemented, "explicit processor mode requires GFX11/GFX12");
    }
    plain = *options;
    plain.header.next = nullptr;
    options = &plain;
  }
  const Status status = core().loomc_target_profile_create_amdgpu(environment, options, allocator, profile);
  if (status == 0) set_cu_profile(*profile, mode == 1);
  return status;
}
LOOM_API void loomc_target_profile_release(Handle profile) {
  if (profile == nullptr) return;
  if (static_cast<CoreProfile*>(profile)->count == 1) set_cu_profile(profile, false);
  core().loomc_target_profile_release(profile);
}
LOOM_API Status loomc_target_profile_select(Handle environment, StringView key, Allocator allocator,
                                            Handle* profile) {
  return core().loomc_target_profile_select(environment, key, allocator, profile);
}
LOOM_API size_t loomc_hrx_diagnostic_size() {
  return diagnostic_size();
}

LOOM_API Status loomc_pass_program_create_from_target_pipeline(Handle context, const void* options,
                                                               Allocator allocator, Handle* program,
                                                               Result** result) {
  CoreResult* part = nullptr;
  const Status status = core().loomc_pass_program_create_from_target_pipeline(
      context, options, allocator, program, result == nullptr ? nullptr : &part);
  if (result != nullptr) *result = publish({part}, nullptr);
  return status;
}
LOOM_API void loomc_pass_program_release(Handle program) {
  if (program != nullptr) core().loomc_pass_program_release(program);
}

// ==== Workspace, compiler, linker (our constructors of genuine layouts) ===============================

LOOM_API Status loomc_workspace_create(const WorkspaceOptions* options, Allocator allocator,
                                       CoreWorkspace** workspace) {
  if (!load_core()) return kUnavailable;
  if (workspace == nullptr) return fail(kInvalidArgument, "out_workspace must not be NULL");
  *workspace = nullptr;
  size_t block_size = 0x20000;
  if (options != nullptr) {
    if (const Status status =
            check_options(options->header, kWorkspaceOptions, sizeof *options, "workspace options")) {
      return status;
    }
    if (options->block_size != 0) block_size = options->block_size;
  }
  CoreWorkspace* made = nullptr;
  if (const Status status = allocate(allocator, &made)) return status;
  made->pool.block_size = block_size;
  made->pool.usable_size = block_size - 8;
  made->pool.allocator = allocator;
  *workspace = made;
  return 0;
}
LOOM_API void loomc_workspace_trim(CoreWorkspace* workspace) {
  if (workspace != nullptr) core().iree_arena_block_pool_trim(&workspace->pool);
}
LOOM_API void loomc_workspace_release(CoreWorkspace* workspace) {
  if (workspace != nullptr) core().loomc_workspace_release(workspace);
}

LOOM_API Status loomc_compiler_create(Handle context, const void*, Allocator allocator,
                                      CoreCompiler** compiler) {
  if (context == nullptr || compiler == nullptr) {
    return fail(kInvalidArgument, "compiler arguments are required");
  }
  *compiler = nullptr;
  CoreCompiler* made = nullptr;
  if (const Status status = allocate(allocator, &made)) return status;
  made->context = retain(context);
  *compiler = made;
  return 0;
}
LOOM_API void loomc_compiler_release(CoreCompiler* compiler) {
  if (compiler == nullptr || __atomic_sub_fetch(&compiler->count, 1, __ATOMIC_ACQ_REL) != 0) return;
  core().loomc_context_release(compiler->context);
  release_memory(compiler->allocator, compiler);
}

LOOM_API Status loomc_linker_create(CoreContext* context, const LinkerOptions* options, Allocator allocator,
                                    Linker** linker) {
  if (context == nullptr || linker == nullptr) return fail(kInvalidArgument, "linker arguments are required");
  *linker = nullptr;
  if (options != nullptr) {
    if (const Status status =
            check_options(options->header, kLinkerOptions, sizeof *options, "linker options")) {
      return status;
    }
  }
  *linker = new Linker(context, allocator, options == nullptr ? StringView{} : options->module_name);
  return 0;
}
LOOM_API void loomc_linker_release(Linker* linker) {
  drop(linker);
}

// ==== Sources (genuine) ===============================================================================

LOOM_API Status loomc_source_create(const SourceOptions* options, Allocator allocator, CoreSource** source) {
  return load_core() ? core().loomc_source_create(options, allocator, source) : Status{kUnavailable};
}
LOOM_API void loomc_source_release(CoreSource* source) {
  release_source(source);
}
LOOM_API StringView loomc_source_identifier(const CoreSource* source) {
  return source == nullptr ? StringView{} : source->identifier;
}
LOOM_API ByteSpan loomc_source_contents(const CoreSource* source) {
  return source == nullptr ? ByteSpan{} : source->contents;
}
LOOM_API uint32_t loomc_source_format(const CoreSource* source) {
  return source == nullptr ? 0 : source->format;
}

// ==== Results and byte sequences ======================================================================

LOOM_API void loomc_result_release(Result* result) {
  drop(result);
}
LOOM_API uint32_t loomc_result_state(const Result* result) {
  return result->state();
}
LOOM_API bool loomc_result_succeeded(const Result* result) {
  return result != nullptr && result->state() == 0;
}

LOOM_API size_t loomc_result_diagnostic_count(const Result* result) {
  size_t count = 0;
  if (result == nullptr) return count;
  for (const CoreResult* part : result->parts) count += part->diagnostic_count;
  return count;
}
LOOM_API const void* loomc_result_diagnostic_at(const Result* result, size_t index) {
  if (result == nullptr) return nullptr;
  if (kVariant.generation < 4) return index < result->rows.size() ? &result->rows[index] : nullptr;
  for (const CoreResult* part : result->parts) {
    if (index < part->diagnostic_count) return &part->diagnostics[index];
    index -= part->diagnostic_count;
  }
  return nullptr;
}

LOOM_API size_t loomc_result_artifact_count(const Result* result) {
  size_t count = 0;
  if (result == nullptr) return count;
  for (const CoreResult* part : result->parts) count += part->artifact_count;
  return count;
}
LOOM_API const void* loomc_result_artifact_at(const Result* result, size_t index) {
  if (result == nullptr) return nullptr;
  for (const CoreResult* part : result->parts) {
    if (index < part->artifact_count) return &part->artifacts[index];
    index -= part->artifact_count;
  }
  return nullptr;
}

LOOM_API Status loomc_byte_sequence_clone(Handle sequence, Allocator allocator, ByteSpan* span) {
  const Status status = core().loomc_byte_sequence_clone(sequence, allocator, span);
  if (status == 0 && kVariant.processor_mode != 0 && CuSequences::has(sequence)) clear_wgp_mode(*span);
  return status;
}
