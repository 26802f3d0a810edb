#include "loader/c_api.h"

namespace kc::loader {

kc_status give_error(kc_error** error, Failure failure) noexcept {
  const kc_status status = failure.status;
  if (error != nullptr) *error = new (std::nothrow) kc_error{std::move(failure)};
  return status;
}

}  // namespace kc::loader

extern "C" {

const char* kc_status_name(kc_status status) {
  switch (status) {
    case KC_OK:
      return "KC_OK";
    case KC_ERROR_ARGUMENT:
      return "KC_ERROR_ARGUMENT";
    case KC_ERROR_MEMORY:
      return "KC_ERROR_MEMORY";
    case KC_ERROR_IO:
      return "KC_ERROR_IO";
    case KC_ERROR_DAMAGED:
      return "KC_ERROR_DAMAGED";
    case KC_ERROR_VERSION:
      return "KC_ERROR_VERSION";
    case KC_ERROR_UNTRUSTED:
      return "KC_ERROR_UNTRUSTED";
    case KC_ERROR_POLICY:
      return "KC_ERROR_POLICY";
    case KC_ERROR_NOT_FOUND:
      return "KC_ERROR_NOT_FOUND";
    case KC_ERROR_NO_CODE:
      return "KC_ERROR_NO_CODE";
    case KC_ERROR_NO_DRIVER:
      return "KC_ERROR_NO_DRIVER";
    case KC_ERROR_NO_DEVICE:
      return "KC_ERROR_NO_DEVICE";
    case KC_ERROR_DRIVER_TOO_OLD:
      return "KC_ERROR_DRIVER_TOO_OLD";
    case KC_ERROR_DRIVER:
      return "KC_ERROR_DRIVER";
    case KC_ERROR_UNLOADED:
      return "KC_ERROR_UNLOADED";
    case KC_ERROR_INTERNAL:
      return "KC_ERROR_INTERNAL";
  }
  return "unknown status";
}

const char* kc_error_message(const kc_error* error) {
  return error != nullptr ? error->failure.message.c_str() : "out of memory";
}

kc_status kc_error_status(const kc_error* error) {
  return error != nullptr ? error->failure.status : KC_ERROR_MEMORY;
}

int kc_error_driver_code(const kc_error* error) {
  return error != nullptr ? error->failure.driver_code : 0;
}

void kc_error_free(kc_error* error) {
  delete error;
}

const char* kc_loader_version(void) {
  return KC_LOADER_VERSION;
}

}  // extern "C"
