// The part of NVIDIA's CUDA driver API that the loader calls, in declarations of its own: no header of a
// vendor is needed to build. Source: "CUDA Driver API" reference manual, 13.0; names carry the version suffix
// under which the library exports them. tests/unit/loader/driver_headers_test.cpp compares them with cuda.h
// where there is one.
#pragma once

#include <cstddef>

namespace kc::loader::cuda {

using Code = int;      // CUresult
using Device = int;    // CUdevice
using Handle = void*;  // CUcontext, CUmodule, CUlibrary, CUkernel, CUfunction

inline constexpr Code kSuccess = 0;
inline constexpr Code kStubLibrary = 34;  // CUDA_ERROR_STUB_LIBRARY
inline constexpr Code kNoDevice = 100;

// CUdevice_attribute
inline constexpr int kMaxSharedMemoryPerBlock = 8;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kMaxSharedMemoryPerBlockOptIn = 97;

// CUfunction_attribute
inline constexpr int kMaxDynamicSharedSizeBytes = 8;

// CUjit_option: the value of the first is the buffer, that of the second its size in the pointer's bits.
inline constexpr int kErrorLogBuffer = 5;
inline constexpr int kErrorLogBufferSizeBytes = 6;

struct Api {
  Code (*cuInit)(unsigned flags);
  Code (*cuDriverGetVersion)(int* version);
  Code (*cuDeviceGetCount)(int* count);
  Code (*cuDeviceGet)(Device* device, int ordinal);
  Code (*cuDeviceGetName)(char* name, int size, Device device);
  Code (*cuDeviceGetAttribute)(int* value, int attribute, Device device);
  Code (*cuDeviceTotalMem_v2)(size_t* bytes, Device device);
  Code (*cuDevicePrimaryCtxRetain)(Handle* context, Device device);
  Code (*cuDevicePrimaryCtxRelease_v2)(Device device);
  Code (*cuCtxPushCurrent_v2)(Handle context);
  Code (*cuCtxPopCurrent_v2)(Handle* context);
  Code (*cuCtxGetCurrent)(Handle* context);
  Code (*cuCtxGetDevice)(Device* device);
  Code (*cuModuleLoadDataEx)(Handle* module, const void* image, unsigned count, int* options, void** values);
  Code (*cuModuleGetFunction)(Handle* function, Handle module, const char* name);
  Code (*cuModuleUnload)(Handle module);
  Code (*cuFuncSetAttribute)(Handle function, int attribute, int value);
  Code (*cuGetErrorName)(Code error, const char** name);
  Code (*cuGetErrorString)(Code error, const char** text);
  // Since CUDA 12.0; used together or not at all.
  Code (*cuLibraryLoadData)(Handle* library, const void* code, int* options, void** values, unsigned count,
                            int* library_options, void** library_values, unsigned library_count);
  Code (*cuLibraryGetKernel)(Handle* kernel, Handle library, const char* name);
  Code (*cuLibraryUnload)(Handle library);
  Code (*cuKernelGetFunction)(Handle* function, Handle kernel);
};

}  // namespace kc::loader::cuda
