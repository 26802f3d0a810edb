// libloomc.so that compiles nothing: the C ABI of Loom in full, for tests of what kc does when a compiler
// misbehaves (faults.h has the directives) and for tests that want a compiler that is fast and always there.
//
// An index, a link and a configuration behave as the real ones do for small texts (module_text.h); the code
// object is well-formed, its code depends on the reached files, the values that they read, the root and the
// target. Variants: copies of the file in which the digit behind `kc-hostile-variant=` is another.
//
// Which generation's symbols and rows a library has is loom_abi/variant.h's; G1 and G2 exist to be recognised
// and refused. Thread-safe as the real one is: handles may be shared, a workspace may not.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "support/hostile_loom/compile.h"
#include "support/hostile_loom/objects.h"
#include "support/loom_abi/variant.h"

namespace kc::test::hostile {
namespace {

Status system_control(void*, int command, const void* params, void** pointer) {
  if (command == kFree) {
    std::free(*pointer);
    *pointer = nullptr;
    return 0;
  }
  const size_t size = *static_cast<const size_t*>(params);
  void* block = command == kCalloc    ? std::calloc(1, size)
                : command == kRealloc ? std::realloc(*pointer, size)
                                      : std::malloc(size);
  if (block == nullptr) return kResourceExhausted;
  *pointer = block;
  return 0;
}

const Header* find_extension(const Header* header, Type type) {
  for (; header != nullptr; header = header->next) {
    if (header->type == type) return header;
  }
  return nullptr;
}

// Of a chain that may hold only `types`.
Status refuse_others(const Header* header, std::initializer_list<Type> types) {
  for (; header != nullptr; header = header->next) {
    if (std::ranges::find(types, header->type) == types.end()) {
      return fail(kUnimplemented, "option extension type is not supported");
    }
  }
  return 0;
}

template <typename T>
Status give(T* object, T** out) {
  *out = object;
  return 0;
}

Status read_processor_mode(const ProfileOptions& options, uint32_t& mode) {
  const Header* next = options.header.next;
  if (next == nullptr) return 0;
  if (kVariant.processor_mode == 0) {
    return fail(kUnimplemented, "AMDGPU profile option extensions are not supported");
  }
  if (next->type != kVariant.processor_mode) {
    return fail(kUnimplemented, "unknown AMDGPU profile option extension");
  }
  const auto* execution = reinterpret_cast<const ProcessorModeOptions*>(next);
  mode = execution->mode;
  if (next->size < sizeof *execution || next->next != nullptr || mode > 2) {
    return fail(kInvalidArgument, "invalid AMDGPU profile execution options");
  }
  const std::string target = text_of(options.target);
  if (mode != 0 && !target.starts_with("gfx11") && !target.starts_with("gfx12")) {
    return fail(kUnimplemented, "explicit processor mode requires GFX11/GFX12");
  }
  return 0;
}

// A target's name with its features as the caller chose them, or why not.
Status read_features(const ProfileOptions& options, std::string& target) {
  const bool takes = has_features(target);
  const std::pair<uint32_t, const char*> states[] = {{options.sramecc, ":sramecc"},
                                                     {options.xnack, ":xnack"}};
  for (const auto& [state, name] : states) {
    if (state > 3 || (takes && state == 1)) return fail(kInvalidArgument, "target supports target feature");
    if (!takes && state > 1) return fail(kInvalidArgument, "target does not support target feature");
    if (state > 1) target += name + std::string(state == 3 ? "+" : "-");
  }
  return 0;
}

}  // namespace
}  // namespace kc::test::hostile

using namespace kc::test::hostile;

// ==== Allocators and statuses =========================================================================

LOOM_API Allocator loomc_allocator_system() {
  return {nullptr, system_control};
}
LOOM_API void loomc_allocator_free(Allocator allocator, void* block) {
  if (block != nullptr) allocator.control(allocator.self, kFree, nullptr, &block);
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

// ==== Objects =========================================================================================

#define COUNTED(name, Type)                            \
  LOOM_API void loomc_##name##_retain(Type* object) {  \
    retain(object);                                    \
  }                                                    \
  LOOM_API void loomc_##name##_release(Type* object) { \
    release(object);                                   \
  }
COUNTED(target_environment, Environment)
COUNTED(context, Context)
COUNTED(target_profile, Profile)
COUNTED(pass_program, PassProgram)
COUNTED(compiler, Compiler)
COUNTED(linker, Linker)
COUNTED(workspace, Workspace)
COUNTED(source, Source)
COUNTED(link_index, Index)
COUNTED(result, Result)
#undef COUNTED

LOOM_API void loomc_module_retain(Module* module) {
  retain(module);
}
// Touches the workspace, as the real one does.
LOOM_API void loomc_module_release(Module* module) {
  if (module == nullptr) return;
  const Ref<Workspace> workspace = module->workspace;
  const Exclusive guard(workspace.get());
  release(module);
}

LOOM_API Status loomc_target_environment_create_amdgpu(Allocator, Environment** out) {
  return give(new Environment, out);
}

LOOM_API Status loomc_context_create(const ContextOptions* options, Allocator, Context** out) {
  auto* made = new Context;
  *out = nullptr;
  if (options != nullptr) {
    const size_t size = kVariant.generation >= 4 ? sizeof(ContextOptions) : sizeof(Header);
    Status status = check_options(options->header, kContextOptions, size, "context options");
    if (status == 0) status = refuse_others(options->header.next, {kContextTargetOptions});
    if (status != 0) {
      release(made);
      return status;
    }
    if (const Header* next = find_extension(options->header.next, kContextTargetOptions)) {
      made->environment =
          Ref(object<Environment>(reinterpret_cast<const ContextTargetOptions*>(next)->environment));
    }
  }
  return give(made, out);
}

LOOM_API Status loomc_target_profile_create_amdgpu(Environment* environment, const ProfileOptions* options,
                                                   Allocator, Profile** out) {
  *out = nullptr;
  if (const Status status =
          check_options(options->header, kProfileOptions, sizeof *options, "profile options")) {
    return status;
  }
  std::string target = text_of(options->target);
  if (!knows_target(target)) return fail(kInvalidArgument, "AMDGPU target '" + target + "' is not supported");
  uint32_t mode = 0;
  if (const Status status = read_processor_mode(*options, mode)) return status;
  if (const Status status = read_features(*options, target)) return status;
  auto* made = new Profile;
  made->environment = Ref(environment);
  made->target = target;
  made->processor_mode = mode;
  return give(made, out);
}

LOOM_API Status loomc_pass_program_create_from_target_pipeline(Context*, const Header* options, Allocator,
                                                               PassProgram** out, Result** result) {
  *out = nullptr;
  if (result != nullptr) *result = nullptr;
  constexpr size_t kSize = 56;
  if (options != nullptr) {
    if (const Status status = check_options(*options, kPipelineOptions, kSize, "target pipeline options"))
      return status;
  }
  if (result != nullptr) *result = (new Result)->finish();
  return give(new PassProgram, out);
}

LOOM_API Status loomc_workspace_create(const Header* options, Allocator, Workspace** out) {
  *out = nullptr;
  if (options != nullptr) {
    if (const Status status = check_options(*options, kWorkspaceOptions, 32, "workspace options"))
      return status;
  }
  return give(new Workspace, out);
}
LOOM_API void loomc_workspace_trim(Workspace* workspace) {
  const Exclusive guard(workspace);
}

LOOM_API Status loomc_compiler_create(Context* context, const Header*, Allocator, Compiler** out) {
  auto* made = new Compiler;
  made->context = Ref(context);
  return give(made, out);
}

LOOM_API Status loomc_linker_create(Context* context, const Header* options, Allocator allocator,
                                    Linker** out) {
  *out = nullptr;
  if (options != nullptr) {
    if (const Status status = check_options(*options, kLinkerOptions, 40, "linker options")) return status;
  }
  auto* made = new Linker;
  made->context = Ref(context);
  made->allocator = allocator;
  return give(made, out);
}

LOOM_API Status loomc_target_selection_create_from_profile(Profile*, Allocator, void** out) {
  *out = nullptr;
  return fail(kUnimplemented, "this library exists to be refused");
}
LOOM_API StringView loomc_amdgpu_target_profile_processor(const Profile* profile) {
  return view_of(profile->target);
}
LOOM_API size_t loomc_hrx_diagnostic_size() {
  return diagnostic_size();
}

// ==== Sources and results =============================================================================

LOOM_API Status loomc_source_create(const SourceOptions* options, Allocator, Source** out) {
  *out = nullptr;
  if (const Status status =
          check_options(options->header, kSourceOptions, sizeof *options, "source options")) {
    return status;
  }
  auto* made = new Source;
  made->identifier = text_of(options->identifier);
  made->format = options->format;
  made->contents.assign(options->contents.data, options->contents.data + options->contents.size);
  return give(made, out);
}
LOOM_API StringView loomc_source_identifier(const Source* source) {
  return source == nullptr ? StringView{} : view_of(source->identifier);
}
LOOM_API ByteSpan loomc_source_contents(const Source* source) {
  return source == nullptr ? ByteSpan{} : ByteSpan{source->contents.data(), source->contents.size()};
}
LOOM_API uint32_t loomc_source_format(const Source* source) {
  return source == nullptr ? 0 : source->format;
}

LOOM_API uint32_t loomc_result_state(const Result* result) {
  return result->is_failed ? 1 : 0;
}
LOOM_API bool loomc_result_succeeded(const Result* result) {
  return result != nullptr && !result->is_failed;
}
LOOM_API size_t loomc_result_diagnostic_count(const Result* result) {
  return result == nullptr ? 0 : result->diagnostics.size();
}
LOOM_API const void* loomc_result_diagnostic_at(const Result* result, size_t index) {
  return index < loomc_result_diagnostic_count(result) ? result->diagnostics[index]->row : nullptr;
}
LOOM_API size_t loomc_result_artifact_count(const Result* result) {
  return result == nullptr ? 0 : result->artifacts.size();
}
LOOM_API const ArtifactRow* loomc_result_artifact_at(const Result* result, size_t index) {
  return index < loomc_result_artifact_count(result) ? &result->artifacts[index]->row : nullptr;
}

LOOM_API Status loomc_byte_sequence_clone(const ByteSequence* sequence, Allocator allocator, ByteSpan* out) {
  const size_t size = sequence->bytes.size();
  const size_t asked = std::max<size_t>(size, 1);
  void* block = nullptr;
  if (const Status status = allocator.control(allocator.self, kMalloc, &asked, &block)) return status;
  std::copy(sequence->bytes.begin(), sequence->bytes.end(), static_cast<uint8_t*>(block));
  *out = {static_cast<const uint8_t*>(block), size};
  return 0;
}
