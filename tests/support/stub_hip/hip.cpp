// build/lib/stub/hip/libamdhip64.so.6: a stand-in for AMD's HIP runtime, as ../stub_cuda is one for NVIDIA's
// driver, told by KC_STUB_HIP. `build/lib/stub/hip_without_<symbol>/` lacks that symbol.
//
// Images must be AMD code objects (ELF, machine 224), otherwise 200; a function that the image does not have
// gives 500. What runs on what is for tests to tell (`fail hipModuleLoadData 209 mach 0x41`). The current
// device is each thread's own; a module belongs to the device that was current when it was loaded, and its
// functions are asked for there, otherwise the call is `misuse`.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/stub_driver/control.h"
#include "support/stub_driver/image.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using kc::stub::Image;
using kc::stub::StubDevice;

constexpr uint16_t kMachine = 224;  // EM_AMDGPU
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidImage = 200;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;

struct Module {
  Image image;
  const void* bytes = nullptr;  // the runtime may read them until the module is unloaded
  uint32_t first = 0;
  int device = 0;
};

struct Books {
  std::mutex mutex;
  std::map<Module*, std::unique_ptr<Module>> modules;
  std::map<std::string*, std::pair<std::unique_ptr<std::string>, Module*>> functions;
};
Books& books() {
  static Books* const all = new Books;
  return *all;
}
// The calling thread's device.
int& current() {
  static auto* const all = new kc::stub::OfThread<int>;
  return all->get();
}

int misuse(int code) {
  kc::stub::add("misuse", 1);
  return code;
}

int begin(const char* function, uint32_t image = 0, const char* symbol = nullptr) {
  kc::stub::tell_from_environment("KC_STUB_HIP");
  return kc::stub::enter({function, image, symbol != nullptr ? symbol : ""});
}

std::vector<StubDevice> devices() {
  return kc::stub::devices({"gfx942:sramecc+:xnack-", "AMD Instinct MI300X"});
}

bool known(int device) {
  return device >= 0 && static_cast<size_t>(device) < devices().size();
}

// Both layouts of hipDeviceProp_t: where name, memory, shared memory and architecture stand, and their size.
int properties(void* out, int device, const char* call, size_t memory, size_t shared, size_t architecture,
               size_t size) {
  if (const int code = begin(call); code != 0) return code;
  if (!known(device)) return kInvalidDevice;
  const StubDevice about = devices()[static_cast<size_t>(device)];
  char* const bytes = static_cast<char*>(out);
  std::memset(bytes, 0xA5, size);  // what nobody should read
  std::snprintf(bytes, 256, "%s", about.name.c_str());
  const size_t total = size_t{192} << 30, block = 65536;
  std::memcpy(bytes + memory, &total, sizeof total);
  std::memcpy(bytes + shared, &block, sizeof block);
  std::snprintf(bytes + architecture, 256, "%s", about.architecture.c_str());
  return 0;
}

}  // namespace

EXPORT int hipInit(unsigned /*flags*/) {
  if (const int code = begin("hipInit"); code != 0) return code;
  return devices().empty() ? kNoDevice : 0;
}
EXPORT int hipDriverGetVersion(int* version) {
  if (const int code = begin("hipDriverGetVersion"); code != 0) return code;
  *version = kc::stub::version(60241133);
  return 0;
}
EXPORT int hipRuntimeGetVersion(int* version) {
  if (const int code = begin("hipRuntimeGetVersion"); code != 0) return code;
  *version = kc::stub::version(60241133);
  return 0;
}
EXPORT int hipGetDeviceCount(int* count) {
  if (const int code = begin("hipGetDeviceCount"); code != 0) return code;
  *count = static_cast<int>(devices().size());
  return *count == 0 ? kNoDevice : 0;
}
EXPORT int hipGetDevice(int* device) {
  if (const int code = begin("hipGetDevice"); code != 0) return code;
  *device = current();
  return 0;
}
EXPORT int hipSetDevice(int device) {
  if (const int code = begin("hipSetDevice"); code != 0) return code;
  if (!known(device)) return kInvalidDevice;
  current() = device;
  return 0;
}
EXPORT int hipGetDevicePropertiesR0600(void* out, int device) {
  return properties(out, device, "hipGetDevicePropertiesR0600", 288, 296, 1160, 1472);
}
EXPORT int hipGetDeviceProperties(void* out, int device) {
  return properties(out, device, "hipGetDeviceProperties", 256, 264, 396, 792);
}

EXPORT int hipModuleLoadData(void** out, const void* bytes) {
  Image image = kc::stub::read_image(bytes);
  if (const int code = begin("hipModuleLoadData", image.flags & 0xFF); code != 0) return code;
  if (!image.valid || image.machine != kMachine) return kInvalidImage;
  auto module = std::make_unique<Module>();
  module->image = std::move(image);
  module->bytes = bytes;
  std::memcpy(&module->first, bytes, sizeof module->first);
  module->device = current();
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  *out = module.get();
  all.modules.emplace(module.get(), std::move(module));
  kc::stub::add("modules", 1);
  return 0;
}

EXPORT int hipModuleGetFunction(void** out, void* handle, const char* name) {
  Books& all = books();
  uint32_t mach = 0;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.modules.find(static_cast<Module*>(handle));
    if (found == all.modules.end()) return misuse(kInvalidHandle);
    if (found->second->device != current()) return misuse(kInvalidContext);
    // As the runtime does, which keeps no copy: freed bytes are found here (under AddressSanitizer, loudly).
    uint32_t first = 0;
    std::memcpy(&first, found->second->bytes, sizeof first);
    if (first != found->second->first) return misuse(kInvalidImage);
    mach = found->second->image.flags & 0xFF;
  }
  if (const int code = begin("hipModuleGetFunction", mach, name); code != 0) return code;
  const std::lock_guard lock(all.mutex);
  const auto found = all.modules.find(static_cast<Module*>(handle));
  if (found == all.modules.end()) return misuse(kInvalidHandle);
  if (!found->second->image.symbols.contains(std::string(name) + ".kd")) return kNotFound;
  auto function = std::make_unique<std::string>(name);
  std::string* const key = function.get();
  *out = key;
  all.functions.emplace(key, std::pair(std::move(function), found->first));
  return 0;
}

EXPORT int hipModuleUnload(void* handle) {
  if (const int code = begin("hipModuleUnload"); code != 0) return code;
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  const auto found = all.modules.find(static_cast<Module*>(handle));
  if (found == all.modules.end()) return misuse(kInvalidHandle);
  uint32_t first = 0;
  std::memcpy(&first, found->second->bytes, sizeof first);
  if (first != found->second->first) kc::stub::add("misuse", 1);
  std::erase_if(all.functions, [&](const auto& entry) { return entry.second.second == found->first; });
  all.modules.erase(found);
  kc::stub::add("modules", -1);
  return 0;
}

EXPORT void kc_stub_reset() {
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  all.functions.clear();
  all.modules.clear();
  current() = 0;
  kc::stub::forget();
}

EXPORT const char* hipGetErrorName(int error) {
  switch (error) {
    case 2:
      return "hipErrorOutOfMemory";
    case 98:
      return "hipErrorInvalidDeviceFunction";
    case 100:
      return "hipErrorNoDevice";
    case 101:
      return "hipErrorInvalidDevice";
    case 200:
      return "hipErrorInvalidImage";
    case 209:
      return "hipErrorNoBinaryForGpu";
    case 218:
      return "hipErrorInvalidKernelFile";
    case 500:
      return "hipErrorNotFound";
    default:
      return "hipErrorUnknown";
  }
}
EXPORT const char* hipGetErrorString(int error) {
  switch (error) {
    case 2:
      return "out of memory";
    case 100:
      return "no ROCm-capable device is detected";
    case 200:
      return "device kernel image is invalid";
    case 209:
      return "no kernel image is available for execution on the device";
    case 500:
      return "named symbol not found";
    default:
      return "unknown error";
  }
}
