#include "loader/cuda_driver.h"

#include <array>
#include <mutex>
#include <optional>

#include "loader/cuda_api.h"
#include "loader/driver_library.h"
#include "loader/refusal.h"

namespace kc::loader {
namespace {

using cuda::Api;
using cuda::Code;
using cuda::Handle;

// What a driver has to say about one image is a few lines; more is cut by the driver itself.
constexpr size_t kLogBytes = 4096;
constexpr int kNameBytes = 256;

std::string version_text(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// What a ModuleHandle of this driver points to. The driver may write the log whenever it loads the image
/// into a context, also later than the call that was given the buffer: so it lives as long as the module.
struct Loaded {
  Handle handle = nullptr;  // CUlibrary or CUmodule
  std::array<char, kLogBytes> log{};
};

class CudaDriver final : public Driver {
 public:
  CudaDriver(const Api& api, std::string library) : api_(api), library_(std::move(library)) {
    has_libraries_ = api.cuLibraryLoadData != nullptr && api.cuLibraryGetKernel != nullptr &&
                     api.cuLibraryUnload != nullptr && api.cuKernelGetFunction != nullptr;
  }

  Result<int> device_count() override {
    if (Result<void> started = start(); !started) {
      if (started.error().status == KC_ERROR_NO_DEVICE) return 0;
      return std::unexpected(std::move(started).error());
    }
    int count = 0;
    KC_TRY(checked(api_.cuDeviceGetCount(&count), "cuDeviceGetCount", "count the devices"));
    return count;
  }

  Result<Device> device(int ordinal) override;

  Result<ContextHandle> context(const Device& device, kc_context which) override {
    KC_TRY(start());
    cuda::Device number = 0;
    KC_TRY(checked(api_.cuDeviceGet(&number, device.ordinal), "cuDeviceGet", "get " + name_of(device)));
    return which == KC_CONTEXT_PRIMARY ? primary_context(device, number) : current_context(device, number);
  }

  void release_context(const Device& device, kc_context which) override {
    cuda::Device number = 0;
    if (which != KC_CONTEXT_PRIMARY || api_.cuDeviceGet(&number, device.ordinal) != cuda::kSuccess) return;
    api_.cuDevicePrimaryCtxRelease_v2(number);
  }

  Answer<ModuleHandle> load(const Device& device, ContextHandle context, base::ByteView image) override;
  Answer<FunctionHandle> function(const Device& device, ContextHandle context, ModuleHandle module,
                                  const std::string& symbol) override;
  Answer<void> request_shared_memory(const Device& device, ContextHandle context, FunctionHandle function,
                                     uint32_t bytes) override;
  void unload(const Device& device, ContextHandle context, ModuleHandle module) override;

 private:
  /// Makes a context current for as long as it lives.
  class Current {
   public:
    Current(const Api& api, ContextHandle context) : api_(api), code_(api.cuCtxPushCurrent_v2(context)) {}
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() {
      Handle popped = nullptr;
      if (code_ == cuda::kSuccess) api_.cuCtxPopCurrent_v2(&popped);
    }
    Code code() const { return code_; }

   private:
    const Api& api_;
    Code code_;
  };

  static std::string name_of(const Device& device) { return "cuda:" + std::to_string(device.ordinal); }

  /// cuInit() until it has succeeded once.
  Result<void> start();
  Result<ContextHandle> primary_context(const Device& device, cuda::Device number);
  Result<ContextHandle> current_context(const Device& device, cuda::Device number);

  Refusal refusal(Code code, const char* call) const;
  std::unexpected<Refusal> refuse(Code code, const char* call, const Loaded* loaded = nullptr) const {
    Refusal out = refusal(code, call);
    if (loaded != nullptr) out.log = plain_text(loaded->log.data(), true);
    return std::unexpected(std::move(out));
  }
  Result<void> checked(Code code, const char* call, std::string_view doing) const {
    if (code == cuda::kSuccess) return {};
    return std::unexpected(explain_call(KC_CUDA, refusal(code, call), doing, library_));
  }

  const Api api_;
  const std::string library_;
  bool has_libraries_ = false;
  std::mutex start_;
  bool started_ = false;  // under start_
};

Result<void> CudaDriver::start() {
  const std::lock_guard lock(start_);
  if (!started_) KC_TRY(checked(api_.cuInit(0), "cuInit", "start the driver"));
  started_ = true;
  return {};
}

Refusal CudaDriver::refusal(Code code, const char* call) const {
  Refusal out;
  out.code = code;
  out.call = call;
  const char* text = nullptr;
  if (api_.cuGetErrorName(code, &text) == cuda::kSuccess && text != nullptr) out.name = plain_text(text);
  text = nullptr;
  if (api_.cuGetErrorString(code, &text) == cuda::kSuccess && text != nullptr) out.text = plain_text(text);
  return out;
}

Result<Device> CudaDriver::device(int ordinal) {
  KC_TRY(start());
  int count = 0;
  KC_TRY(checked(api_.cuDeviceGetCount(&count), "cuDeviceGetCount", "count the devices"));
  if (ordinal < 0 || ordinal >= count) {
    return fail(KC_ERROR_NO_DEVICE, "there is no cuda:" + std::to_string(ordinal) + ": the driver (" +
                                        library_ + ") has " + std::to_string(count) +
                                        (count == 1 ? " device, cuda:0" : " devices, counted from 0"));
  }
  Device out;
  out.api = KC_CUDA;
  out.ordinal = ordinal;
  out.library = library_;
  const std::string doing = "ask about " + name_of(out);
  cuda::Device number = 0;
  KC_TRY(checked(api_.cuDeviceGet(&number, ordinal), "cuDeviceGet", doing));
  std::array<char, kNameBytes> name{};
  KC_TRY(checked(api_.cuDeviceGetName(name.data(), kNameBytes - 1, number), "cuDeviceGetName", doing));
  out.name = plain_text(name.data());
  KC_TRY(checked(api_.cuDriverGetVersion(&out.driver_version), "cuDriverGetVersion", doing));
  out.driver_text = version_text(out.driver_version);
  size_t memory = 0;
  KC_TRY(checked(api_.cuDeviceTotalMem_v2(&memory, number), "cuDeviceTotalMem", doing));
  out.memory = memory;
  int major = 0, minor = 0, shared = 0, opt_in = 0;
  const auto ask = [&](int attribute, int& value) {
    return checked(api_.cuDeviceGetAttribute(&value, attribute, number), "cuDeviceGetAttribute", doing);
  };
  KC_TRY(ask(cuda::kComputeCapabilityMajor, major));
  KC_TRY(ask(cuda::kComputeCapabilityMinor, minor));
  KC_TRY(ask(cuda::kMaxSharedMemoryPerBlock, shared));
  KC_TRY(ask(cuda::kMaxSharedMemoryPerBlockOptIn, opt_in));
  out.max_shared_memory = static_cast<uint32_t>(shared);
  out.max_shared_memory_opt_in = static_cast<uint32_t>(opt_in);
  auto target = target::parse_target("sm_" + std::to_string(major) + std::to_string(minor));
  if (!target) {
    return fail(KC_ERROR_DRIVER, name_of(out) + " (" + out.name + ") has compute capability " +
                                     std::to_string(major) + "." + std::to_string(minor) +
                                     ", which this library does not know: a newer libkcload is needed");
  }
  out.target = std::move(*target);
  return out;
}

Result<ContextHandle> CudaDriver::primary_context(const Device& device, cuda::Device number) {
  Handle context = nullptr;
  KC_TRY(checked(api_.cuDevicePrimaryCtxRetain(&context, number), "cuDevicePrimaryCtxRetain",
                 "get the primary context of " + name_of(device)));
  return context;
}

Result<ContextHandle> CudaDriver::current_context(const Device& device, cuda::Device number) {
  Handle context = nullptr;
  KC_TRY(checked(api_.cuCtxGetCurrent(&context), "cuCtxGetCurrent", "ask for the current context"));
  if (context == nullptr) {
    return fail(KC_ERROR_ARGUMENT,
                "KC_CONTEXT_CURRENT was asked for and the calling thread has no current context: make one "
                "current (cuCtxSetCurrent) or use KC_CONTEXT_PRIMARY");
  }
  cuda::Device owner = 0;
  KC_TRY(checked(api_.cuCtxGetDevice(&owner), "cuCtxGetDevice", "ask for the current context's device"));
  if (owner != number) {
    return fail(KC_ERROR_ARGUMENT, "the calling thread's current context belongs to another device than " +
                                       name_of(device) + " (" + device.name +
                                       "): make one of that device current or use KC_CONTEXT_PRIMARY");
  }
  return context;
}

Answer<ModuleHandle> CudaDriver::load(const Device&, ContextHandle context, base::ByteView image) {
  const Current current(api_, context);
  if (current.code() != cuda::kSuccess) return refuse(current.code(), "cuCtxPushCurrent");
  auto loaded = std::make_unique<Loaded>();
  int options[] = {cuda::kErrorLogBuffer, cuda::kErrorLogBufferSizeBytes};
  // The last byte stays zero, whatever the driver does.
  void* values[] = {loaded->log.data(), reinterpret_cast<void*>(uintptr_t{kLogBytes - 1})};
  if (has_libraries_) {
    const Code code =
        api_.cuLibraryLoadData(&loaded->handle, image.data(), options, values, 2, nullptr, nullptr, 0);
    if (code != cuda::kSuccess) return refuse(code, "cuLibraryLoadData", loaded.get());
  } else {
    const Code code = api_.cuModuleLoadDataEx(&loaded->handle, image.data(), 2, options, values);
    if (code != cuda::kSuccess) return refuse(code, "cuModuleLoadDataEx", loaded.get());
  }
  return loaded.release();
}

Answer<FunctionHandle> CudaDriver::function(const Device&, ContextHandle context, ModuleHandle module,
                                            const std::string& symbol) {
  const Current current(api_, context);
  if (current.code() != cuda::kSuccess) return refuse(current.code(), "cuCtxPushCurrent");
  const auto* const loaded = static_cast<const Loaded*>(module);
  Handle function = nullptr;
  if (has_libraries_) {
    Handle kernel = nullptr;
    Code code = api_.cuLibraryGetKernel(&kernel, loaded->handle, symbol.c_str());
    if (code != cuda::kSuccess) return refuse(code, "cuLibraryGetKernel", loaded);
    code = api_.cuKernelGetFunction(&function, kernel);
    if (code != cuda::kSuccess) return refuse(code, "cuKernelGetFunction", loaded);
  } else {
    const Code code = api_.cuModuleGetFunction(&function, loaded->handle, symbol.c_str());
    if (code != cuda::kSuccess) return refuse(code, "cuModuleGetFunction", loaded);
  }
  return function;
}

Answer<void> CudaDriver::request_shared_memory(const Device&, ContextHandle context, FunctionHandle function,
                                               uint32_t bytes) {
  const Current current(api_, context);
  if (current.code() != cuda::kSuccess) return refuse(current.code(), "cuCtxPushCurrent");
  const Code code =
      api_.cuFuncSetAttribute(function, cuda::kMaxDynamicSharedSizeBytes, static_cast<int>(bytes));
  if (code != cuda::kSuccess) return refuse(code, "cuFuncSetAttribute");
  return {};
}

void CudaDriver::unload(const Device&, ContextHandle context, ModuleHandle module) {
  const std::unique_ptr<Loaded> loaded(static_cast<Loaded*>(module));
  const Current current(api_, context);
  // A module can only be unloaded in its context; a library knows its own.
  if (has_libraries_) {
    api_.cuLibraryUnload(loaded->handle);
  } else if (current.code() == cuda::kSuccess) {
    api_.cuModuleUnload(loaded->handle);
  }
}

}  // namespace

Result<std::unique_ptr<Driver>> open_cuda_driver(std::span<const char* const> places) {
  Api api{};
#define SYMBOL(need, name) \
  { #name, Need::need, &api.name }
  const Symbol symbols[] = {
      SYMBOL(kRequired, cuInit),
      SYMBOL(kRequired, cuDriverGetVersion),
      SYMBOL(kRequired, cuDeviceGetCount),
      SYMBOL(kRequired, cuDeviceGet),
      SYMBOL(kRequired, cuDeviceGetName),
      SYMBOL(kRequired, cuDeviceGetAttribute),
      SYMBOL(kRequired, cuDeviceTotalMem_v2),
      SYMBOL(kRequired, cuDevicePrimaryCtxRetain),
      SYMBOL(kRequired, cuDevicePrimaryCtxRelease_v2),
      SYMBOL(kRequired, cuCtxPushCurrent_v2),
      SYMBOL(kRequired, cuCtxPopCurrent_v2),
      SYMBOL(kRequired, cuCtxGetCurrent),
      SYMBOL(kRequired, cuCtxGetDevice),
      SYMBOL(kRequired, cuModuleLoadDataEx),
      SYMBOL(kRequired, cuModuleGetFunction),
      SYMBOL(kRequired, cuModuleUnload),
      SYMBOL(kRequired, cuFuncSetAttribute),
      SYMBOL(kRequired, cuGetErrorName),
      SYMBOL(kRequired, cuGetErrorString),
      SYMBOL(kOptional, cuLibraryLoadData),
      SYMBOL(kOptional, cuLibraryGetKernel),
      SYMBOL(kOptional, cuLibraryUnload),
      SYMBOL(kOptional, cuKernelGetFunction),
  };
#undef SYMBOL
  KC_ASSIGN(
      std::string library,
      open_driver_library("NVIDIA driver", places, symbols,
                          "install the NVIDIA driver; in a container, start it with the NVIDIA Container "
                          "Toolkit"));
  return std::make_unique<CudaDriver>(api, std::move(library));
}

Result<std::unique_ptr<Driver>> open_cuda_driver() {
  return open_cuda_driver(kCudaPlaces);
}

}  // namespace kc::loader
