#include "loader/driver.h"

#include <mutex>

namespace kc::loader {
namespace {

struct Slot {
  std::mutex mutex;
  std::unique_ptr<Driver> driver;
};

// Never destroyed: kernels may be released while the process ends.
Slot& slot_of(kc_api api) {
  static Slot* const slots = new Slot[2];
  return slots[api == KC_CUDA ? 0 : 1];
}

}  // namespace

Result<Driver*> driver(kc_api api) {
  if (api != KC_CUDA && api != KC_HIP) {
    return fail(KC_ERROR_ARGUMENT, "there is no driver API " + std::to_string(static_cast<int>(api)) +
                                       ": KC_CUDA is 1, KC_HIP is 2");
  }
  Slot& slot = slot_of(api);
  const std::lock_guard lock(slot.mutex);
  if (slot.driver == nullptr) {
    KC_ASSIGN(slot.driver, api == KC_CUDA ? open_cuda_driver() : open_hip_driver());
  }
  return slot.driver.get();
}

}  // namespace kc::loader
