// What link-time optimisation removed from the executable, or merged into other functions, made anew: counts,
// statuses, linkers, modules, results.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "support/loom_bridge/core.h"
#include "support/loom_bridge/processor_mode.h"

namespace kc::test::bridge {

// ---- Counts and memory -------------------------------------------------------------------------------

/// Of a genuine object or one of ours: the count is always the first word.
template <typename T>
T* retain(T* object) {
  if (object != nullptr) __atomic_fetch_add(reinterpret_cast<uint32_t*>(object), 1, __ATOMIC_RELAXED);
  return object;
}

struct Counted {
  std::atomic<uint32_t> count{1};
};

template <typename T>
void drop(T* object) {
  if (object != nullptr && object->count.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object;
}

/// loomc_allocator_system().
Allocator heap();
void release_memory(Allocator allocator, void* block);

/// A genuine object, all zero but its count and allocator.
template <typename T>
Status allocate(Allocator allocator, T** object) {
  const size_t size = sizeof(T);
  void* block = nullptr;
  if (allocator.control == nullptr) return kInvalidArgument;
  if (const Status status = allocator.control(allocator.self, kCalloc, &size, &block)) return status;
  *object = static_cast<T*>(block);
  (*object)->count = 1;
  (*object)->allocator = allocator;
  return 0;
}

void release_source(CoreSource* source);
void release_environment(Handle environment);

// ---- Statuses ----------------------------------------------------------------------------------------

Status fail(Code code, const std::string& message);
Status check_options(const Header& header, Type type, size_t size, const char* what);
std::string status_text(Status status);
void free_status(Status status);

// ---- Objects of our own ------------------------------------------------------------------------------

struct Linker : Counted {
  Linker(CoreContext* of, Allocator with, StringView name);
  ~Linker();
  CoreContext* context;
  Allocator allocator;
  std::string module_name;
};

struct Module : Counted {
  explicit Module(CoreModule* module) : real(module) {}
  ~Module();
  CoreModule* real;
  bool is_cu_mode = false;  // some specialization asked for it
};

inline CoreModule* real(const Module* module) {
  return module == nullptr ? nullptr : module->real;
}

/// One genuine result, or two (compile and emit) shown as one.
struct Result : Counted {
  explicit Result(std::vector<CoreResult*> results) : parts(std::move(results)) {}
  ~Result();
  uint32_t state() const { return parts.back()->state; }

  std::vector<CoreResult*> parts;
  std::vector<DiagnosticRow3> rows;  // before G4; G2 knows the first 80 bytes
  CuSequences cu_sequences;
};

/// Makes the public result out of genuine ones; `module` (may be null) is what they are about.
Result* publish(std::vector<CoreResult*> parts, const Module* module);

}  // namespace kc::test::bridge
