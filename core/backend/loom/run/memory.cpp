#include "backend/loom/run/memory.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace kc::backend::loom {
namespace {

thread_local MemoryCount* current = nullptr;

void note(int64_t change) {
  if (current == nullptr) return;
  current->live += change;
  current->peak = std::max(current->peak, current->live);
}

int64_t size_of(void* block) {
  return block == nullptr ? 0 : static_cast<int64_t>(malloc_usable_size(block));
}

abi::Status run(int command, const void* parameters, void** pointer) {
  if (command == abi::kFree) {
    std::free(*pointer);
    *pointer = nullptr;
    return abi::kOk;
  }
  const size_t size = *static_cast<const size_t*>(parameters);
  void* block = nullptr;
  if (command == abi::kMalloc) {
    block = std::malloc(size);
  } else if (command == abi::kCalloc) {
    block = std::calloc(1, size);
  } else if (command == abi::kRealloc) {
    block = std::realloc(*pointer, size);
  } else {
    return abi::kUnimplemented;
  }
  if (block == nullptr && size != 0) return abi::kResourceExhausted;
  *pointer = block;
  return abi::kOk;
}

abi::Status control_shared(void*, int command, const void* parameters, void** pointer) {
  return run(command, parameters, pointer);
}

abi::Status control_counted(void*, int command, const void* parameters, void** pointer) {
  const bool had_block = command == abi::kRealloc || command == abi::kFree;
  const int64_t before = had_block ? size_of(*pointer) : 0;
  const abi::Status status = run(command, parameters, pointer);
  if (status == abi::kOk) note((command == abi::kFree ? 0 : size_of(*pointer)) - before);
  return status;
}

}  // namespace

CountScope::CountScope(MemoryCount& count) : before_(std::exchange(current, &count)) {
  count.peak = count.live;
}

CountScope::~CountScope() {
  current = before_;
}

abi::Allocator counting_allocator() {
  return {nullptr, control_counted};
}

abi::Allocator shared_allocator() {
  return {nullptr, control_shared};
}

}  // namespace kc::backend::loom
