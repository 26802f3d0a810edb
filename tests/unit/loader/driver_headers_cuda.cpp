// Compiled only where there is a cuda.h.
#include <cuda.h>

#include "loader/cuda_api.h"
#include "unit/loader/driver_abi.h"

namespace kc::loader::testing {

// The header renames functions to the names with a version suffix, under which the library exports them.
#define SAME(name) static_assert(SameCall<decltype(cuda::Api::name), decltype(&::name)>::value, #name)
SAME(cuInit);
SAME(cuDriverGetVersion);
SAME(cuDeviceGetCount);
SAME(cuDeviceGet);
SAME(cuDeviceGetName);
SAME(cuDeviceGetAttribute);
SAME(cuDeviceTotalMem_v2);
SAME(cuDevicePrimaryCtxRetain);
SAME(cuDevicePrimaryCtxRelease_v2);
SAME(cuCtxPushCurrent_v2);
SAME(cuCtxPopCurrent_v2);
SAME(cuCtxGetCurrent);
SAME(cuCtxGetDevice);
SAME(cuModuleLoadDataEx);
SAME(cuModuleGetFunction);
SAME(cuModuleUnload);
SAME(cuFuncSetAttribute);
SAME(cuGetErrorName);
SAME(cuGetErrorString);
#if CUDA_VERSION >= 12000
SAME(cuLibraryLoadData);
SAME(cuLibraryGetKernel);
SAME(cuLibraryUnload);
SAME(cuKernelGetFunction);
#endif
#undef SAME

static_assert(cuda::kSuccess == CUDA_SUCCESS);
static_assert(cuda::kStubLibrary == CUDA_ERROR_STUB_LIBRARY);
static_assert(cuda::kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(cuda::kMaxSharedMemoryPerBlock == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
static_assert(cuda::kComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(cuda::kComputeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(cuda::kMaxSharedMemoryPerBlockOptIn == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(cuda::kMaxDynamicSharedSizeBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(cuda::kErrorLogBuffer == CU_JIT_ERROR_LOG_BUFFER);
static_assert(cuda::kErrorLogBufferSizeBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);

}  // namespace kc::loader::testing
