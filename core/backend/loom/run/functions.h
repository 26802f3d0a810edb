// The functions of libloomc that kc calls, and objects of the library that release themselves.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>

#include "backend/loom/run/abi.h"

namespace kc::backend::loom {

// F(name, result, parameters...): loomc_<name>, with the same signature in G3 and G4. A library without one
// of them is refused by naming it.
#define KC_LOOM_FUNCTIONS(F)                                                                                 \
  F(status_format, bool, abi::Status, size_t capacity, char* buffer, size_t* size)                           \
  F(status_free, void, abi::Status)                                                                          \
  F(target_environment_create_amdgpu, abi::Status, abi::Allocator, abi::Handle* environment)                 \
  F(target_environment_release, void, abi::Handle)                                                           \
  F(context_create, abi::Status, const abi::ContextOptions*, abi::Allocator, abi::Handle* context)           \
  F(context_release, void, abi::Handle)                                                                      \
  F(compiler_create, abi::Status, abi::Handle context, const void* options, abi::Allocator,                  \
    abi::Handle* compiler)                                                                                   \
  F(compiler_release, void, abi::Handle)                                                                     \
  F(linker_create, abi::Status, abi::Handle context, const void* options, abi::Allocator,                    \
    abi::Handle* linker)                                                                                     \
  F(linker_release, void, abi::Handle)                                                                       \
  F(workspace_create, abi::Status, const void* options, abi::Allocator, abi::Handle* workspace)              \
  F(workspace_trim, void, abi::Handle)                                                                       \
  F(workspace_release, void, abi::Handle)                                                                    \
  F(target_profile_create_amdgpu, abi::Status, abi::Handle environment, const abi::ProfileOptions*,          \
    abi::Allocator, abi::Handle* profile)                                                                    \
  F(target_profile_release, void, abi::Handle)                                                               \
  F(pass_program_create_from_target_pipeline, abi::Status, abi::Handle context, const abi::PipelineOptions*, \
    abi::Allocator, abi::Handle* program, abi::Handle* result)                                               \
  F(pass_program_release, void, abi::Handle)                                                                 \
  F(source_create, abi::Status, const abi::SourceOptions*, abi::Allocator, abi::Handle* source)              \
  F(source_release, void, abi::Handle)                                                                       \
  F(source_identifier, abi::View, abi::Handle)                                                               \
  F(source_contents, abi::View, abi::Handle)                                                                 \
  F(link_index_builder_create, abi::Status, abi::Handle context, const void* options, abi::Allocator,        \
    abi::Handle* builder)                                                                                    \
  F(link_index_builder_add_source, abi::Status, abi::Handle builder, abi::Handle source,                     \
    const abi::IndexSourceOptions*, uint64_t* slot)                                                          \
  F(link_index_builder_finish, abi::Status, abi::Handle builder, abi::Handle* index, abi::Handle* result)    \
  F(link_index_builder_release, void, abi::Handle)                                                           \
  F(link_index_release, void, abi::Handle)                                                                   \
  F(link_module, abi::Status, abi::Handle linker, abi::Handle workspace, const abi::LinkOptions*,            \
    abi::Handle* module, abi::Handle* result)                                                                \
  F(module_serialize_to_source, abi::Status, abi::Handle module, const abi::SerializeOptions*,               \
    abi::Allocator, abi::Handle* source)                                                                     \
  F(module_release, void, abi::Handle)                                                                       \
  F(result_state, uint32_t, abi::Handle)                                                                     \
  F(result_diagnostic_count, size_t, abi::Handle)                                                            \
  F(result_diagnostic_at, const void*, abi::Handle, size_t index)                                            \
  F(result_artifact_count, size_t, abi::Handle)                                                              \
  F(result_artifact_at, const abi::Artifact*, abi::Handle, size_t index)                                     \
  F(result_release, void, abi::Handle)                                                                       \
  F(byte_sequence_clone, abi::Status, abi::Handle sequence, abi::Allocator, abi::View* bytes)                \
  F(allocator_free, void, abi::Allocator, void* block)

struct Functions {
#define KC_LOOM_POINTER(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
  KC_LOOM_FUNCTIONS(KC_LOOM_POINTER)
#undef KC_LOOM_POINTER
};

/// An object of the library, released with this one. Move-only. While an exception is under way nothing is
/// released: one that comes out of the library leaves its objects in a state that nobody knows, and the
/// process ends soon.
class Object {
 public:
  Object() = default;
  explicit Object(void (*release)(abi::Handle)) : release_(release) {}
  Object(abi::Handle handle, void (*release)(abi::Handle)) : handle_(handle), release_(release) {}
  ~Object() { reset(); }
  Object(Object&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), release_(other.release_) {}
  Object& operator=(Object&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
      release_ = other.release_;
    }
    return *this;
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  abi::Handle get() const { return handle_; }
  /// Where a function of the library is to put a new object.
  abi::Handle* out() {
    reset();
    return &handle_;
  }
  explicit operator bool() const { return handle_ != nullptr; }
  void reset() {
    if (handle_ != nullptr && std::uncaught_exceptions() == 0) release_(handle_);
    handle_ = nullptr;
  }

 private:
  abi::Handle handle_ = nullptr;
  void (*release_)(abi::Handle) = nullptr;
};

}  // namespace kc::backend::loom
