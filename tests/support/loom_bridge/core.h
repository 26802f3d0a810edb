// The genuine code: an official Loom executable, loaded as libloomcore.so, its functions called at the
// addresses that its symbol table names, its objects read as its machine code lays them out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/loom_abi/abi.h"

namespace kc::test::bridge {

using namespace loom;

// ---- Objects. Every one starts with an atomic 32-bit count and, at 8, the allocator it was made with. ----

struct CoreSource {
  uint32_t count;
  uint32_t pad0;
  Allocator allocator;
  uint32_t format;
  uint32_t pad1;
  StringView identifier;
  ByteSpan contents;
  uint32_t storage;
  uint32_t pad2;
  void* release;
  void* user_data;
};
struct CoreDiagnostic {
  DiagnosticRow4 row;  // what callers of G4 see
  void* storage;
};
struct CoreArtifact {
  ArtifactRow row;
  uint8_t storage[40];
};
struct CoreResult {
  uint32_t count;
  uint8_t state;
  uint8_t source_retention;
  uint8_t pad[2];
  Allocator allocator;
  uint64_t unused;
  CoreDiagnostic* diagnostics;
  size_t diagnostic_count;
  size_t diagnostic_capacity;
  CoreArtifact* artifacts;
  size_t artifact_count;
  size_t artifact_capacity;
};
struct CoreContext {
  uint32_t count;
  uint8_t source_retention;
  uint8_t pad[3];
  Allocator allocator;
  uint8_t ir[0x740];
  uint8_t* environment;
};
struct CoreProfile {
  uint32_t count;
  uint32_t pad;
  Allocator allocator;
  Handle environment;
  void* rest[5];
};
struct CoreCompiler {
  uint32_t count;
  uint32_t pad;
  Allocator allocator;
  Handle context;
};
struct CoreBlockPool {
  size_t block_size;
  size_t usable_size;
  Allocator allocator;
  uint64_t mutex;
  uint64_t head;
  uint64_t rest[4];
};
struct CoreWorkspace {
  uint32_t count;
  uint32_t pad;
  Allocator allocator;
  uint64_t unused;
  CoreBlockPool pool;
};
struct CoreArena {
  CoreBlockPool* pool;
  uint64_t rest[6];
};
struct CoreSourceStorage {
  Handle ir;
  Handle entries;
  size_t entry_count;
  Allocator allocator;
  size_t capacity;
};
struct CoreModule {
  uint32_t count;
  uint32_t pad0;
  Allocator allocator;
  CoreContext* context;
  CoreWorkspace* workspace;
  Handle ir;
  CoreSourceStorage sources;
  CoreArena arena;
  Handle config_rows[2];
  CoreArena* config_arena;
  uint64_t rest[5];
};
struct CoreSlot {
  CoreSource* source;
  Handle rest[3];
};
struct CoreIndex {
  uint32_t count;
  uint32_t pad;
  Allocator allocator;
  CoreContext* context;
  Handle pool;
  Handle modules;
  CoreSlot* slots;
  size_t slot_count;
};

// ---- What the linker below loomc_link_module takes and gives -----------------------------------------

struct CorePlanOptions {
  uint32_t mode;
  uint32_t pad0;
  size_t root_count;
  const StringView* roots;
  bool exported_roots;
  uint8_t pad1[3];
  uint32_t unresolved_policy;
  uint32_t check_policy;
  uint32_t pad2;
  Handle strip[2];
  Handle templates[2];
  Handle facets[2];
  uint32_t facet_policy;
  uint32_t pad3;
  size_t provider_count;
  const size_t* providers;
  Handle symbols[2];
  uint64_t flag;
};
struct CoreSink {
  Status (*write)(void* user_data, const void* diagnostic);
  void* user_data;
};
struct CoreLinkEnvironment {
  Handle ir_context;
  CoreBlockPool* pool;
  Handle low_table;
  Handle low_environment;
  CoreSink (*diagnostics)(void* user_data, const size_t* slot);
  Status (*prepare)(void* user_data, CoreBlockPool* pool, Allocator allocator, Handle* ir);
  void* user_data;
  Allocator allocator;
};
struct CoreLinked {
  Handle plan;
  Handle ir;
  Handle rest[17];
};
struct CoreConfigArguments {
  const ConfigOptions* options;
  Handle ir;
  Handle resolver[2];
  Handle reserved[2];
  CoreResult* result;
  StringView code;
  CoreBlockPool* pool;
  Allocator allocator;
};
inline constexpr size_t kLowEnvironment = 0x3498;  // in a target environment
inline constexpr size_t kSourceNameCount = 0x2f8;  // in an IR module

static_assert(sizeof(CoreSource) == 88 && sizeof(CoreDiagnostic) == 144 && sizeof(CoreArtifact) == 88);
static_assert(sizeof(CoreResult) == 80 && sizeof(CoreWorkspace) == 0x70 && sizeof(CoreConfigArguments) == 96);
static_assert(offsetof(CoreContext, environment) == 0x758 && sizeof(CoreModule) == 0xd8);
static_assert(offsetof(CoreModule, arena) == 0x60 && offsetof(CoreIndex, slots) == 0x30);
static_assert(sizeof(CorePlanOptions) == 0x88 && offsetof(CorePlanOptions, providers) == 0x68);
static_assert(sizeof(CoreLinkEnvironment) == 0x48 && sizeof(CoreLinked) == 0x98);

// ---- Functions ---------------------------------------------------------------------------------------

// clang-format off
#define KC_CORE_FUNCTIONS(F)                                                                                         \
  F(Status, iree_status_allocate_copy, int code, const char* file, size_t file_size, uint32_t line,                  \
    const char* text, size_t size)                                                                                   \
  F(bool, iree_status_to_string, Status, const Allocator*, char** text, size_t* size)                                \
  F(void, iree_arena_block_pool_trim, CoreBlockPool*)                                                                \
  F(void, loomc_status_free, Status)                                                                                 \
  F(Status, loomc_target_environment_create_from_provider_set, Handle providers, Allocator, Handle*)                 \
  F(Status, loomc_context_create, const void* options, Allocator, Handle*)                                           \
  F(void, loomc_context_release, Handle)                                                                             \
  F(Status, loomc_target_profile_create_amdgpu, Handle, const ProfileOptions*, Allocator, Handle*)                   \
  F(Status, loomc_target_profile_select, Handle, StringView, Allocator, Handle*)                                     \
  F(void, loomc_target_profile_release, Handle)                                                                      \
  F(Status, loomc_pass_program_create_from_target_pipeline, Handle, const void*, Allocator, Handle*, CoreResult**)   \
  F(void, loomc_pass_program_release, Handle)                                                                        \
  F(Status, loomc_source_create, const SourceOptions*, Allocator, CoreSource**)                                      \
  F(Status, loomc_link_index_builder_create, Handle, const void*, Allocator, Handle*)                                \
  F(Status, loomc_link_index_builder_reserve_source_slot, Handle, const void*, uint64_t*)                            \
  F(Status, loomc_link_index_builder_fill_source_slot, Handle, uint64_t, CoreSource*)                                \
  F(Status, loomc_link_index_builder_finish, Handle, Handle*, CoreResult**)                                          \
  F(void, loomc_link_index_builder_release, Handle)                                                                  \
  F(void, loomc_link_index_release, Handle)                                                                          \
  F(Status, loomc_module_deserialize_from_source, Handle, Handle, CoreSource*, const void*, Allocator, CoreModule**, \
    CoreResult**)                                                                                                    \
  F(Status, loomc_module_serialize_to_source, CoreModule*, const void*, Allocator, CoreSource**)                     \
  F(void, loomc_module_release, CoreModule*)                                                                         \
  F(Status, loom_link_index_materialize, Handle, const CorePlanOptions*, const CoreLinkEnvironment*, StringView,     \
    CoreLinked*)                                                                                                     \
  F(void, loom_link_index_materialization_deinitialize, CoreLinked*)                                                 \
  F(Status, loom_module_register_source, Handle, StringView name, uint16_t* id)                                      \
  F(Status, loom_source_storage_insert, CoreSourceStorage*, uint32_t id, StringView name, StringView text)           \
  F(Status, loomc_config_apply_text_to_module, CoreConfigArguments*)                                                 \
  F(Status, loomc_compile_module, Handle, Handle, Handle, CoreModule*, const CompileOptions*, Allocator,             \
    CoreResult**)                                                                                                    \
  F(Status, loomc_emit_module, Handle, Handle, CoreModule*, const EmitOptions*, Allocator, CoreResult**)             \
  F(Status, loomc_byte_sequence_clone, Handle, Allocator, ByteSpan*)                                                 \
  F(Status, loomc_result_add_loom_diagnostic, CoreResult*, CoreSource*, const void* diagnostic, Handle)              \
  F(Status, loomc_result_fail_status_diagnostic_consume, CoreResult*, CoreSource*, int severity, StringView code,    \
    Status)                                                                                                          \
  F(void, loomc_result_release, CoreResult*)                                                                         \
  F(void, loomc_workspace_release, Handle)
// clang-format on

struct Core {
#define KC_CORE_MEMBER(result, name, ...) result (*name)(__VA_ARGS__);
  KC_CORE_FUNCTIONS(KC_CORE_MEMBER)
#undef KC_CORE_MEMBER
  Handle amdgpu_providers;
  Handle low_table;
};

/// The table. Whoever holds an object has passed load_core() already.
const Core& core();

/// To be called by every function that takes no object; false: the reason has gone to stderr.
bool load_core();

}  // namespace kc::test::bridge
