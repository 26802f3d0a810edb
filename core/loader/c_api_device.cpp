#include "loader/c_api_device.h"

#include <map>
#include <mutex>
#include <utility>

using kc::loader::fail;
using kc::loader::guarded;
using kc::loader::Result;

kc_device::kc_device(kc::loader::Device from) : device(std::move(from)) {
  info.api = device.api;
  info.ordinal = device.ordinal;
  info.name = device.name.c_str();
  info.target = device.target.text.c_str();
  info.driver_version = device.driver_version;
  info.driver_text = device.driver_text.c_str();
  info.library = device.library.c_str();
  info.memory = device.memory;
  info.max_shared_memory = device.max_shared_memory;
  info.max_shared_memory_opt_in = device.max_shared_memory_opt_in;
}

namespace {

struct Devices {
  std::mutex mutex;
  std::map<std::pair<kc_api, int>, std::unique_ptr<kc_device>> made;
};

// Callers keep pointers into it for as long as the process lives.
Devices& devices() {
  static Devices* const all = new Devices;
  return *all;
}

Result<const kc_device*> device_of(kc_api api, int ordinal) {
  KC_ASSIGN(kc::loader::Driver* const driver, kc::loader::driver(api));
  Devices& all = devices();
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.made.find({api, ordinal});
    if (found != all.made.end()) return found->second.get();
  }
  // Not under the lock: the first question starts the driver, which may take a second. Who comes second
  // drops what it has learnt.
  KC_ASSIGN(kc::loader::Device about, driver->device(ordinal));
  auto made = std::make_unique<kc_device>(std::move(about));
  const std::lock_guard lock(all.mutex);
  return all.made.try_emplace({api, ordinal}, std::move(made)).first->second.get();
}

}  // namespace

extern "C" {

kc_status kc_device_count(kc_api api, int* count, kc_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (count == nullptr) return fail(KC_ERROR_ARGUMENT, "kc_device_count: count is NULL");
    KC_ASSIGN(kc::loader::Driver* const driver, kc::loader::driver(api));
    KC_ASSIGN(*count, driver->device_count());
    return {};
  });
}

kc_status kc_device_get(kc_api api, int ordinal, const kc_device** device, kc_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (device == nullptr) return fail(KC_ERROR_ARGUMENT, "kc_device_get: device is NULL");
    *device = nullptr;
    KC_ASSIGN(*device, device_of(api, ordinal));
    return {};
  });
}

const kc_device_info* kc_device_get_info(const kc_device* device) {
  return device != nullptr ? &device->info : nullptr;
}

}  // extern "C"
