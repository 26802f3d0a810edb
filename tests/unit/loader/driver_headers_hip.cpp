// Compiled only where there is a hip/hip_runtime_api.h.
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#include <hip/hip_version.h>

#include <cstddef>

#include "loader/hip_api.h"
#include "unit/loader/driver_abi.h"

namespace kc::loader::testing {

#define SAME(name) static_assert(SameCall<decltype(hip::Api::name), decltype(&::name)>::value, #name)
SAME(hipInit);
SAME(hipRuntimeGetVersion);
SAME(hipDriverGetVersion);
SAME(hipGetDeviceCount);
SAME(hipGetDevice);
SAME(hipSetDevice);
SAME(hipModuleLoadData);
SAME(hipModuleGetFunction);
SAME(hipModuleUnload);
SAME(hipGetErrorName);
SAME(hipGetErrorString);
#undef SAME

// Which of the two layouts the headers have depends on their version.
#if HIP_VERSION_MAJOR >= 6
using Properties = hipDeviceProp_tR0600;
inline constexpr hip::PropertyLayout kOurs = hip::kPropertiesR0600;
static_assert(SameCall<decltype(hip::Api::hipGetDevicePropertiesR0600),
                       decltype(&::hipGetDevicePropertiesR0600)>::value);
#else
using Properties = hipDeviceProp_t;
inline constexpr hip::PropertyLayout kOurs = hip::kPropertiesR0000;
using GetProperties = hipError_t (*)(hipDeviceProp_t*, int);  // overloaded in newer headers
static_assert(SameCall<decltype(hip::Api::hipGetDeviceProperties), GetProperties>::value);
#endif
static_assert(offsetof(Properties, name) == 0);
static_assert(sizeof(Properties::name) == hip::kNameBytes);
static_assert(offsetof(Properties, totalGlobalMem) == kOurs.memory);
static_assert(offsetof(Properties, sharedMemPerBlock) == kOurs.shared_memory);
static_assert(offsetof(Properties, gcnArchName) == kOurs.architecture);
static_assert(sizeof(Properties::gcnArchName) == hip::kNameBytes);
static_assert(sizeof(Properties) == kOurs.size);
static_assert(sizeof(Properties) <= hip::kPropertyBytes);

static_assert(hip::kSuccess == hipSuccess);
static_assert(hip::kNoDevice == hipErrorNoDevice);
static_assert(hip::kInvalidDevice == hipErrorInvalidDevice);

}  // namespace kc::loader::testing
