#include "support/loom_bridge/glue.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "support/loom_abi/variant.h"

namespace kc::test::bridge {
namespace {

Status heap_control(void*, int command, const void* params, void** pointer) {
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

// For owners on the stack: nothing to give back.
Status keep_control(void*, int, const void*, void**) {
  return 0;
}

}  // namespace

Allocator heap() {
  return {nullptr, heap_control};
}

void release_memory(Allocator allocator, void* block) {
  if (block != nullptr && allocator.control != nullptr)
    allocator.control(allocator.self, kFree, nullptr, &block);
}

// The executable has no function of its own for these two, only copies inside the owners' release functions.
// So a temporary owner on the stack is released, which gives the object's reference back.
void release_source(CoreSource* source) {
  if (source == nullptr) return;
  CoreDiagnostic row{};
  row.row.range.source = source;
  CoreResult owner{};
  owner.count = 1;
  owner.allocator = {nullptr, keep_control};
  owner.diagnostics = &row;
  owner.diagnostic_count = 1;
  core().loomc_result_release(&owner);
}

void release_environment(Handle environment) {
  if (environment == nullptr) return;
  CoreProfile owner{};
  owner.count = 1;
  owner.allocator = {nullptr, keep_control};
  owner.environment = environment;
  core().loomc_target_profile_release(&owner);
}

Status fail(Code code, const std::string& message) {
  if (!load_core()) return code;
  // Not iree_status_allocate(), which keeps the pointer.
  constexpr std::string_view kFile = "loom_bridge/glue.cpp";
  return core().iree_status_allocate_copy(code, kFile.data(), kFile.size(), 1, message.data(),
                                          message.size());
}

Status check_options(const Header& header, Type type, size_t size, const char* what) {
  if (header.type != 0 && header.type != type) {
    return fail(kInvalidArgument, std::string(what) + " have an unknown structure type");
  }
  if (header.size != 0 && header.size < size) {
    return fail(kInvalidArgument, std::string(what) + " structure_size is too small");
  }
  return 0;
}

std::string status_text(Status status) {
  const Allocator allocator = heap();
  char* text = nullptr;
  size_t size = 0;
  if (!load_core()) return "UNAVAILABLE; libloomcore.so could not be loaded";
  if (!core().iree_status_to_string(status, &allocator, &text, &size)) return "?";
  std::string copy(text, size);
  std::free(text);
  return copy;
}

void free_status(Status status) {
  if ((status & ~Status{31}) != 0) core().loomc_status_free(status);
}

Linker::Linker(CoreContext* of, Allocator with, StringView name)
    : context(retain(of)), allocator(with), module_name(name.data == nullptr ? "" : name.data, name.size) {}

Linker::~Linker() {
  core().loomc_context_release(context);
}

Module::~Module() {
  core().loomc_module_release(real);
}

Result::~Result() {
  cu_sequences.clear();
  for (CoreResult* part : parts) core().loomc_result_release(part);
}

Result* publish(std::vector<CoreResult*> parts, const Module* module) {
  if (parts.empty() || parts[0] == nullptr) return nullptr;
  auto* result = new Result(std::move(parts));
  for (const CoreResult* part : result->parts) {
    for (size_t i = 0; kVariant.generation < 4 && i < part->diagnostic_count; ++i) {
      const DiagnosticRow4& row = part->diagnostics[i].row;
      result->rows.push_back({row.head, row.range, row.related});
    }
    if (module == nullptr || !module->is_cu_mode) continue;
    for (size_t i = 0; i < part->artifact_count; ++i) {
      const ArtifactRow& row = part->artifacts[i].row;
      if (row.kind == kExecutable) result->cu_sequences.add(row.contents);
    }
  }
  return result;
}

}  // namespace kc::test::bridge
