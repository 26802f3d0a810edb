// What the loader needs of a GPU driver, behind one interface for CUDA and HIP. Symbols come by dlopen; no
// header of a vendor is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "loader/failure.h"
#include "target/target.h"

namespace kc::loader {

struct Device {
  kc_api api = KC_CUDA;
  int ordinal = 0;
  std::string name;
  target::Target target;
  int driver_version = 0;
  std::string driver_text;                // "CUDA 13.0"
  std::string library;                    // path or name under which the driver library was found
  uint64_t memory = 0;                    // bytes
  uint32_t max_shared_memory = 0;         // bytes a block
  uint32_t max_shared_memory_opt_in = 0;  // bytes a block, when asked for
};

/// What a driver answered when it refused.
struct Refusal {
  int code = 0;      // CUresult, hipError_t
  std::string name;  // CUDA_ERROR_NO_BINARY_FOR_GPU; empty when the driver has none
  std::string text;  // the driver's own words
  std::string log;   // of its loader or JIT compiler, may be empty
  std::string call;  // cuLibraryGetKernel
};
template <typename T>
using Answer = std::expected<T, Refusal>;

/// A CUcontext, or nothing for HIP, that was made current for one device.
using ContextHandle = void*;
using ModuleHandle = void*;    // CUlibrary, CUmodule or hipModule_t: only its driver knows
using FunctionHandle = void*;  // CUfunction or hipFunction_t

/// Thread-safe. Lives as long as the process.
class Driver {
 public:
  virtual ~Driver() = default;

  virtual Result<int> device_count() = 0;
  virtual Result<Device> device(int ordinal) = 0;

  /// The context that a load asks for, retained where it is the primary one. KC_ERROR_ARGUMENT: the current
  /// context is none or that of another device.
  virtual Result<ContextHandle> context(const Device& device, kc_context which) = 0;
  /// Lets go of a primary context that context() gave; nothing else.
  virtual void release_context(const Device& device, kc_context which) = 0;

  // In the following the context is current during the call, and what was current before is so again after
  // it.

  virtual Answer<ModuleHandle> load(const Device& device, ContextHandle context, base::ByteView image) = 0;
  /// Loaded means that this succeeded (BACKENDS.md: loading code of another architecture succeeds too).
  virtual Answer<FunctionHandle> function(const Device& device, ContextHandle context, ModuleHandle module,
                                          const std::string& symbol) = 0;
  /// Requests `bytes` of dynamic shared memory for launches.
  virtual Answer<void> request_shared_memory(const Device& device, ContextHandle context,
                                             FunctionHandle function, uint32_t bytes) = 0;
  /// Errors are swallowed: at the end of a process the driver may be gone before us.
  virtual void unload(const Device& device, ContextHandle context, ModuleHandle module) = 0;
};

/// The driver of an API, its library loaded at the first call. KC_ERROR_NO_DRIVER names each path tried and
/// why it would not do; the next call tries again.
Result<Driver*> driver(kc_api api);

Result<std::unique_ptr<Driver>> open_cuda_driver();
Result<std::unique_ptr<Driver>> open_hip_driver();

}  // namespace kc::loader
