// build/lib/stub/cuda/libcuda.so.1: a stand-in for NVIDIA's driver with its C ABI, for tests on machines
// without one. It runs nothing: it keeps books about contexts, modules and functions, refuses what the real
// one refuses (code of another major or, with a suffix that the cubin's flags do not show, whatever a test
// tells it), and counts. `LD_LIBRARY_PATH=build/lib/stub/cuda KC_STUB_CUDA='device 12.1 GB10; version 12080'
// kc load b.kcb`; what can be told is in ../stub_driver/control.h. build/lib/stub/cuda_without_<symbol>/
// lacks that symbol.
//
// Images must be cubins (ELF, machine 190), otherwise 200. Code for another major or a higher minor than the
// device's loads and is refused with 209 when a function is asked for, as the real driver does; a function
// that the image does not have gives 500. Calls with dead handles, or without a context where one is needed,
// give 400 or 201 and are counted as `misuse`.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "support/stub_driver/control.h"
#include "support/stub_driver/image.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using kc::stub::Call;
using kc::stub::Image;
using kc::stub::StubDevice;

constexpr uint16_t kMachine = 190;  // EM_CUDA
constexpr int kInvalidValue = 1;
constexpr int kNotInitialized = 3;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidImage = 200;
constexpr int kInvalidContext = 201;
constexpr int kNoBinary = 209;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;
constexpr int kErrorLog = 5;  // CU_JIT_ERROR_LOG_BUFFER
constexpr int kErrorLogSize = 6;

struct Context {
  int device = 0;
  bool primary = false;
};
struct Module {
  Image image;
  bool library = false;
  Context* context = nullptr;  // of a module; a library has none
};
struct Function {
  Module* module = nullptr;
  std::string name;
  int dynamic_shared_memory = 0;
};

struct Books {
  std::mutex mutex;
  bool initialized = false;
  std::map<int, int> retained;  // primary contexts, by device
  std::map<int, std::unique_ptr<Context>> primaries;
  std::set<Context*> contexts;  // alive
  std::map<Module*, std::unique_ptr<Module>> modules;
  std::map<Function*, std::unique_ptr<Function>> functions;
};
Books& books() {
  static Books* const all = new Books;
  return *all;
}
// Contexts that the calling thread has pushed.
std::vector<Context*>& current() {
  static auto* const all = new kc::stub::OfThread<std::vector<Context*>>;
  return all->get();
}

int misuse(int code) {
  kc::stub::add("misuse", 1);
  return code;
}

int begin(const char* function, uint32_t image = 0, const char* symbol = nullptr) {
  kc::stub::tell_from_environment("KC_STUB_CUDA");
  return kc::stub::enter({function, image, symbol != nullptr ? symbol : ""});
}

std::vector<StubDevice> devices() {
  return kc::stub::devices({"9.0", "NVIDIA H200"});
}

int sm_of(const StubDevice& device) {
  int major = 0, minor = 0;
  std::sscanf(device.architecture.c_str(), "%d.%d", &major, &minor);
  return 10 * major + minor;
}

uint32_t sm_of(const Image& image) {
  return image.flags >> 8 & 0xFF;
}

bool known(int device) {
  return device >= 0 && static_cast<size_t>(device) < devices().size();
}

void write_jit_log(unsigned count, const int* options, void** values) {
  const std::string text = kc::stub::jit_text();
  char* buffer = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == kErrorLog) buffer = static_cast<char*>(values[i]);
    if (options[i] == kErrorLogSize) size = reinterpret_cast<uintptr_t>(values[i]);
  }
  if (buffer == nullptr || size == 0) return;
  std::snprintf(buffer, size, "%s", text.c_str());
}

int load(void** out, const void* bytes, bool library, const char* call, unsigned count, const int* options,
         void** values) {
  Image image = kc::stub::read_image(bytes);
  int code = begin(call, sm_of(image));
  if (code == 0 && (!image.valid || image.machine != kMachine)) code = kInvalidImage;
  if (code == 0 && !library && current().empty()) code = misuse(kInvalidContext);
  if (code != 0) {
    write_jit_log(count, options, values);
    return code;
  }
  auto module = std::make_unique<Module>();
  module->image = std::move(image);
  module->library = library;
  module->context = library ? nullptr : current().back();
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  *out = module.get();
  all.modules.emplace(module.get(), std::move(module));
  kc::stub::add("modules", 1);
  return 0;
}

int unload(void* handle, bool library, const char* call) {
  if (const int code = begin(call); code != 0) return code;
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  const auto found = all.modules.find(static_cast<Module*>(handle));
  if (found == all.modules.end() || found->second->library != library) return misuse(kInvalidHandle);
  if (!library && !all.contexts.contains(found->second->context)) return misuse(kInvalidContext);
  std::erase_if(all.functions, [&](const auto& entry) { return entry.second->module == found->first; });
  all.modules.erase(found);
  kc::stub::add("modules", -1);
  return 0;
}

int function_of(void** out, void* handle, bool library, const char* name, const char* call) {
  Books& all = books();
  uint32_t sm = 0;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.modules.find(static_cast<Module*>(handle));
    if (found == all.modules.end() || found->second->library != library) return misuse(kInvalidHandle);
    sm = sm_of(found->second->image);
  }
  if (const int code = begin(call, sm, name); code != 0) return code;
  const std::lock_guard lock(all.mutex);
  if (current().empty() || !all.contexts.contains(current().back())) return misuse(kInvalidContext);
  const auto found = all.modules.find(static_cast<Module*>(handle));
  if (found == all.modules.end()) return misuse(kInvalidHandle);
  const int device = sm_of(devices().at(static_cast<size_t>(current().back()->device)));
  const int code = static_cast<int>(sm);
  if (code / 10 != device / 10 || code > device) return kNoBinary;
  if (!found->second->image.symbols.contains(name)) return kNotFound;
  auto function = std::make_unique<Function>();
  function->module = found->first;
  function->name = name;
  *out = function.get();
  all.functions.emplace(function.get(), std::move(function));
  return 0;
}

}  // namespace

EXPORT int cuInit(unsigned flags) {
  if (const int code = begin("cuInit"); code != 0) return code;
  if (flags != 0) return misuse(kInvalidValue);
  if (devices().empty()) return kNoDevice;
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  all.initialized = true;
  return 0;
}

EXPORT int cuDriverGetVersion(int* version) {
  if (const int code = begin("cuDriverGetVersion"); code != 0) return code;
  *version = kc::stub::version(13000);
  return 0;
}

EXPORT int cuDeviceGetCount(int* count) {
  if (const int code = begin("cuDeviceGetCount"); code != 0) return code;
  if (!books().initialized) return misuse(kNotInitialized);
  *count = static_cast<int>(devices().size());
  return 0;
}

EXPORT int cuDeviceGet(int* device, int ordinal) {
  if (const int code = begin("cuDeviceGet"); code != 0) return code;
  if (!known(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return 0;
}

EXPORT int cuDeviceGetName(char* name, int size, int device) {
  if (const int code = begin("cuDeviceGetName"); code != 0) return code;
  if (!known(device)) return kInvalidDevice;
  std::snprintf(name, static_cast<size_t>(size), "%s", devices()[static_cast<size_t>(device)].name.c_str());
  return 0;
}

EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (const int code = begin("cuDeviceGetAttribute"); code != 0) return code;
  if (!known(device)) return kInvalidDevice;
  const int sm = sm_of(devices()[static_cast<size_t>(device)]);
  switch (attribute) {
    case 75:  // compute capability, major
      *value = sm / 10;
      return 0;
    case 76:
      *value = sm % 10;
      return 0;
    case 8:  // shared memory a block
      *value = 49152;
      return 0;
    case 97:  // the same when asked for
      *value = 232448;
      return 0;
    default:
      return kInvalidValue;
  }
}

EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  if (const int code = begin("cuDeviceTotalMem_v2"); code != 0) return code;
  if (!known(device)) return kInvalidDevice;
  *bytes = size_t{16} << 30;
  return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (const int code = begin("cuDevicePrimaryCtxRetain"); code != 0) return code;
  if (!known(device)) return kInvalidDevice;
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  std::unique_ptr<Context>& primary = all.primaries[device];
  if (primary == nullptr) primary = std::make_unique<Context>(Context{device, true});
  all.contexts.insert(primary.get());
  ++all.retained[device];
  kc::stub::add("primaries", 1);
  *context = primary.get();
  return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  if (const int code = begin("cuDevicePrimaryCtxRelease_v2"); code != 0) return code;
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  if (all.retained[device] == 0) return misuse(kInvalidContext);
  kc::stub::add("primaries", -1);
  if (--all.retained[device] == 0) all.contexts.erase(all.primaries[device].get());
  return 0;
}

EXPORT int cuCtxPushCurrent_v2(void* context) {
  if (const int code = begin("cuCtxPushCurrent_v2"); code != 0) return code;
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  if (!all.contexts.contains(static_cast<Context*>(context))) return misuse(kInvalidContext);
  current().push_back(static_cast<Context*>(context));
  return 0;
}

EXPORT int cuCtxPopCurrent_v2(void** context) {
  if (const int code = begin("cuCtxPopCurrent_v2"); code != 0) return code;
  if (current().empty()) return misuse(kInvalidContext);
  if (context != nullptr) *context = current().back();
  current().pop_back();
  return 0;
}

EXPORT int cuCtxGetCurrent(void** context) {
  if (const int code = begin("cuCtxGetCurrent"); code != 0) return code;
  *context = current().empty() ? nullptr : current().back();
  return 0;
}

EXPORT int cuCtxGetDevice(int* device) {
  if (const int code = begin("cuCtxGetDevice"); code != 0) return code;
  if (current().empty()) return misuse(kInvalidContext);
  *device = current().back()->device;
  return 0;
}

EXPORT int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  return load(module, image, false, "cuModuleLoadDataEx", count, options, values);
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  return function_of(function, module, false, name, "cuModuleGetFunction");
}
EXPORT int cuModuleUnload(void* module) {
  return unload(module, false, "cuModuleUnload");
}

EXPORT int cuLibraryLoadData(void** library, const void* code, int* options, void** values, unsigned count,
                             int* /*library_options*/, void** /*library_values*/, unsigned library_count) {
  if (library_count != 0) return misuse(kInvalidValue);
  return load(library, code, true, "cuLibraryLoadData", count, options, values);
}
EXPORT int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return function_of(kernel, library, true, name, "cuLibraryGetKernel");
}
EXPORT int cuLibraryUnload(void* library) {
  return unload(library, true, "cuLibraryUnload");
}
EXPORT int cuKernelGetFunction(void** function, void* kernel) {
  if (const int code = begin("cuKernelGetFunction"); code != 0) return code;
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  if (!all.functions.contains(static_cast<Function*>(kernel))) return misuse(kInvalidHandle);
  if (current().empty()) return misuse(kInvalidContext);
  *function = kernel;
  return 0;
}

EXPORT int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (const int code = begin("cuFuncSetAttribute"); code != 0) return code;
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  const auto found = all.functions.find(static_cast<Function*>(function));
  if (found == all.functions.end()) return misuse(kInvalidHandle);
  if (attribute != 8 || value < 0 || value > 232448) return kInvalidValue;
  found->second->dynamic_shared_memory = value;
  return 0;
}

EXPORT int cuGetErrorName(int error, const char** name) {
  static const std::map<int, const char*> kNames = {
      {0, "CUDA_SUCCESS"},
      {1, "CUDA_ERROR_INVALID_VALUE"},
      {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {34, "CUDA_ERROR_STUB_LIBRARY"},
      {100, "CUDA_ERROR_NO_DEVICE"},
      {101, "CUDA_ERROR_INVALID_DEVICE"},
      {200, "CUDA_ERROR_INVALID_IMAGE"},
      {201, "CUDA_ERROR_INVALID_CONTEXT"},
      {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {218, "CUDA_ERROR_INVALID_PTX"},
      {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"},
      {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {300, "CUDA_ERROR_INVALID_SOURCE"},
      {301, "CUDA_ERROR_FILE_NOT_FOUND"},
      {500, "CUDA_ERROR_NOT_FOUND"},
      {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
      {999, "CUDA_ERROR_UNKNOWN"},
  };
  if (const int code = begin("cuGetErrorName"); code != 0) return code;
  const auto found = kNames.find(error);
  *name = found != kNames.end() ? found->second : nullptr;
  return found != kNames.end() ? 0 : kInvalidValue;
}

EXPORT int cuGetErrorString(int error, const char** text) {
  static const std::map<int, const char*> kTexts = {
      {2, "out of memory"},
      {100, "no CUDA-capable device is detected"},
      {200, "device kernel image is invalid"},
      {209, "no kernel image is available for execution on the device"},
      {221, "PTX JIT compiler library not found"},
      {222, "the provided PTX was compiled with an unsupported toolchain."},
      {300, "device kernel image is invalid"},
      {500, "named symbol not found"},
      {803, "system has unsupported display driver / cuda driver combination"},
      {999, "unknown error"},
  };
  if (const int code = begin("cuGetErrorString"); code != 0) return code;
  static std::mutex mutex;
  static std::set<std::string>* const told = new std::set<std::string>;
  if (const std::string words = kc::stub::text_of(error); !words.empty()) {
    const std::lock_guard lock(mutex);
    *text = told->insert(words).first->c_str();
    return 0;
  }
  const auto found = kTexts.find(error);
  *text = found != kTexts.end() ? found->second : nullptr;
  return found != kTexts.end() ? 0 : kInvalidValue;
}

EXPORT void kc_stub_reset() {
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  all.retained.clear();
  all.contexts.clear();
  all.functions.clear();
  all.modules.clear();
  current().clear();
  kc::stub::forget();
}

/// For tests: a context of its own, as cuCtxCreate makes them, not current; and its end.
EXPORT void* kc_stub_create_context(int device) {
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  Context* const context = new Context{device, false};
  all.contexts.insert(context);
  return context;
}
EXPORT void kc_stub_destroy_context(void* context) {
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  all.contexts.erase(static_cast<Context*>(context));
  delete static_cast<Context*>(context);
}
/// What launches of the function may ask for beyond the default, bytes; -1: no such function.
EXPORT int kc_stub_dynamic_shared_memory(void* function) {
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  const auto found = all.functions.find(static_cast<Function*>(function));
  return found != all.functions.end() ? found->second->dynamic_shared_memory : -1;
}
