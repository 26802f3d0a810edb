// The part of AMD's HIP runtime that the loader calls, in declarations of its own. Source: "HIP Runtime API"
// reference, 5.2 to 7.0. tests/unit/loader/driver_headers_test.cpp compares them with hip_runtime_api.h where
// there is one.
#pragma once

#include <cstddef>

namespace kc::loader::hip {

using Code = int;      // hipError_t
using Handle = void*;  // hipModule_t, hipFunction_t

inline constexpr Code kSuccess = 0;
inline constexpr Code kNoDevice = 100;       // hipErrorNoDevice
inline constexpr Code kInvalidDevice = 101;  // hipErrorInvalidDevice: runtimes up to 5 say it for no device

/// hipDeviceProp_t changed with HIP 6 and its function's name with it: hipGetDevicePropertiesR0600 fills in
/// the new one, hipGetDeviceProperties the old one (the headers rename it). Only these fields are read; both
/// structs begin with the name, 256 bytes.
struct PropertyLayout {
  size_t memory;         // size_t totalGlobalMem
  size_t shared_memory;  // size_t sharedMemPerBlock
  size_t architecture;   // char gcnArchName[256]
  size_t size;
};
inline constexpr PropertyLayout kPropertiesR0600 = {288, 296, 1160, 1472};
inline constexpr PropertyLayout kPropertiesR0000 = {256, 264, 396, 792};
/// What is given to either: room for fields that a later runtime may add.
inline constexpr size_t kPropertyBytes = 4096;
inline constexpr size_t kNameBytes = 256;  // of both texts

struct Api {
  Code (*hipInit)(unsigned flags);  // optional: the runtime does it at the first call
  Code (*hipRuntimeGetVersion)(int* version);
  Code (*hipDriverGetVersion)(int* version);  // one of the two is enough
  Code (*hipGetDeviceCount)(int* count);
  Code (*hipGetDevice)(int* device);
  Code (*hipSetDevice)(int device);
  Code (*hipGetDevicePropertiesR0600)(void* properties, int device);
  Code (*hipGetDeviceProperties)(void* properties, int device);  // one of the two is enough
  Code (*hipModuleLoadData)(Handle* module, const void* image);
  Code (*hipModuleGetFunction)(Handle* function, Handle module, const char* name);
  Code (*hipModuleUnload)(Handle module);
  const char* (*hipGetErrorName)(Code error);
  const char* (*hipGetErrorString)(Code error);
};

}  // namespace kc::loader::hip
