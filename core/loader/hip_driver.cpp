#include "loader/hip_driver.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "loader/driver_library.h"
#include "loader/hip_api.h"
#include "loader/refusal.h"

namespace kc::loader {
namespace {

using hip::Api;
using hip::Code;
using hip::Handle;

// HIP_VERSION of hip_version.h: major * 10,000,000 + minor * 100,000 + patch.
std::string version_text(int version) {
  return "HIP " + std::to_string(version / 10'000'000) + "." + std::to_string(version / 100'000 % 100) + "." +
         std::to_string(version % 100'000);
}

class HipDriver final : public Driver {
 public:
  HipDriver(const Api& api, std::string library) : api_(api), library_(std::move(library)) {}

  Result<int> device_count() override {
    if (Result<void> started = start(); !started) {
      if (started.error().status == KC_ERROR_NO_DEVICE) return 0;
      return std::unexpected(std::move(started).error());
    }
    return count_;
  }

  Result<Device> device(int ordinal) override;

  Result<ContextHandle> context(const Device&, kc_context) override {
    KC_TRY(start());
    return nullptr;
  }
  void release_context(const Device&, kc_context) override {}

  Answer<ModuleHandle> load(const Device& device, ContextHandle, base::ByteView image) override {
    const Current current(api_, device.ordinal);
    if (current.code() != hip::kSuccess) return refuse(current.code(), "hipSetDevice");
    Handle module = nullptr;
    const Code code = api_.hipModuleLoadData(&module, image.data());
    if (code != hip::kSuccess) return refuse(code, "hipModuleLoadData");
    return module;
  }

  Answer<FunctionHandle> function(const Device& device, ContextHandle, ModuleHandle module,
                                  const std::string& symbol) override {
    const Current current(api_, device.ordinal);
    if (current.code() != hip::kSuccess) return refuse(current.code(), "hipSetDevice");
    Handle function = nullptr;
    const Code code = api_.hipModuleGetFunction(&function, module, symbol.c_str());
    if (code != hip::kSuccess) return refuse(code, "hipModuleGetFunction");
    return function;
  }

  // HIP has nothing to ask: a launch may use all the shared memory there is. (hipFuncSetAttribute takes the
  // address of a host function that the compiler registered, never a hipFunction_t.)
  Answer<void> request_shared_memory(const Device&, ContextHandle, FunctionHandle, uint32_t) override {
    return {};
  }

  void unload(const Device& device, ContextHandle, ModuleHandle module) override {
    const Current current(api_, device.ordinal);
    api_.hipModuleUnload(module);
  }

 private:
  /// Makes a device the calling thread's current one for as long as it lives.
  class Current {
   public:
    Current(const Api& api, int device) : api_(api), code_(api.hipGetDevice(&before_)) {
      if (code_ == hip::kSuccess && before_ != device) {
        code_ = api.hipSetDevice(device);
        changed_ = code_ == hip::kSuccess;
      }
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() {
      if (changed_) api_.hipSetDevice(before_);
    }
    Code code() const { return code_; }

   private:
    const Api& api_;
    int before_ = 0;
    Code code_;
    bool changed_ = false;
  };

  /// Until it has found a device once.
  Result<void> start();

  Refusal refusal(Code code, const char* call) const {
    Refusal out;
    out.code = code;
    out.call = call;
    if (const char* const name = api_.hipGetErrorName(code)) out.name = plain_text(name);
    if (const char* const text = api_.hipGetErrorString(code)) out.text = plain_text(text);
    return out;
  }
  std::unexpected<Refusal> refuse(Code code, const char* call) const {
    return std::unexpected(refusal(code, call));
  }
  Result<void> checked(Code code, const char* call, std::string_view doing) const {
    if (code == hip::kSuccess) return {};
    return std::unexpected(explain_call(KC_HIP, refusal(code, call), doing, library_));
  }

  const Api api_;
  const std::string library_;
  std::mutex start_;
  bool started_ = false;  // under start_
  int count_ = 0;         // once started
};

Result<void> HipDriver::start() {
  const std::lock_guard lock(start_);
  if (started_) return {};
  if (api_.hipInit != nullptr) KC_TRY(checked(api_.hipInit(0), "hipInit", "start the runtime"));
  int count = 0;
  Code code = api_.hipGetDeviceCount(&count);
  if (code == hip::kSuccess && count <= 0) code = hip::kNoDevice;
  KC_TRY(checked(code, "hipGetDeviceCount", "count the devices"));
  count_ = count;
  started_ = true;
  return {};
}

Result<Device> HipDriver::device(int ordinal) {
  KC_TRY(start());
  if (ordinal < 0 || ordinal >= count_) {
    return fail(KC_ERROR_NO_DEVICE, "there is no hip:" + std::to_string(ordinal) + ": the runtime (" +
                                        library_ + ") has " + std::to_string(count_) +
                                        (count_ == 1 ? " device, hip:0" : " devices, counted from 0"));
  }
  Device out;
  out.api = KC_HIP;
  out.ordinal = ordinal;
  out.library = library_;
  const std::string us = "hip:" + std::to_string(ordinal);
  const std::string doing = "ask about " + us;
  if (api_.hipRuntimeGetVersion != nullptr) {
    KC_TRY(checked(api_.hipRuntimeGetVersion(&out.driver_version), "hipRuntimeGetVersion", doing));
  } else {
    KC_TRY(checked(api_.hipDriverGetVersion(&out.driver_version), "hipDriverGetVersion", doing));
  }
  out.driver_text = version_text(out.driver_version);

  alignas(std::max_align_t) std::array<char, hip::kPropertyBytes> properties{};
  const bool is_new = api_.hipGetDevicePropertiesR0600 != nullptr;
  const hip::PropertyLayout& layout = is_new ? hip::kPropertiesR0600 : hip::kPropertiesR0000;
  KC_TRY(is_new ? checked(api_.hipGetDevicePropertiesR0600(properties.data(), ordinal),
                          "hipGetDevicePropertiesR0600", doing)
                : checked(api_.hipGetDeviceProperties(properties.data(), ordinal), "hipGetDeviceProperties",
                          doing));
  const auto text_at = [&](size_t offset) {
    const char* const begin = properties.data() + offset;
    return plain_text({begin, static_cast<size_t>(std::find(begin, begin + hip::kNameBytes, '\0') - begin)});
  };
  const auto size_at = [&](size_t offset) {
    size_t value = 0;
    std::memcpy(&value, properties.data() + offset, sizeof value);
    return value;
  };
  out.name = text_at(0);
  out.memory = size_at(layout.memory);
  // A block has no more than this, asked for or not.
  out.max_shared_memory = static_cast<uint32_t>(std::min<size_t>(size_at(layout.shared_memory), UINT32_MAX));
  out.max_shared_memory_opt_in = out.max_shared_memory;
  const std::string architecture = text_at(layout.architecture);
  if (!architecture.starts_with("gfx")) {
    return fail(KC_ERROR_DRIVER, us + " (" + out.name +
                                     ") does not say what architecture it has: the runtime (" + library_ +
                                     ", " + out.driver_text +
                                     ") lays its device properties out in a way that this library does not "
                                     "know: a newer libkcload is needed");
  }
  auto target = target::parse_target(architecture);
  if (!target) {
    return fail(KC_ERROR_DRIVER, us + " (" + out.name + ") says that it is " + architecture +
                                     ", which this library does not know: a newer libkcload is needed");
  }
  out.target = std::move(*target);
  return out;
}

}  // namespace

Result<std::unique_ptr<Driver>> open_hip_driver(std::span<const char* const> places) {
  Api api{};
#define SYMBOL(need, name) \
  { #name, Need::need, &api.name }
  const Symbol symbols[] = {
      SYMBOL(kOptional, hipInit),
      SYMBOL(kEither, hipRuntimeGetVersion),
      SYMBOL(kEither, hipDriverGetVersion),
      SYMBOL(kRequired, hipGetDeviceCount),
      SYMBOL(kRequired, hipGetDevice),
      SYMBOL(kRequired, hipSetDevice),
      SYMBOL(kEither, hipGetDevicePropertiesR0600),
      SYMBOL(kEither, hipGetDeviceProperties),
      SYMBOL(kRequired, hipModuleLoadData),
      SYMBOL(kRequired, hipModuleGetFunction),
      SYMBOL(kRequired, hipModuleUnload),
      SYMBOL(kRequired, hipGetErrorName),
      SYMBOL(kRequired, hipGetErrorString),
  };
#undef SYMBOL
  KC_ASSIGN(std::string library,
            open_driver_library("HIP runtime", places, symbols,
                                "install ROCm's HIP runtime, version 5 to 7, and the amdgpu kernel module"));
  return std::make_unique<HipDriver>(api, std::move(library));
}

Result<std::unique_ptr<Driver>> open_hip_driver() {
  return open_hip_driver(kHipPlaces);
}

}  // namespace kc::loader
