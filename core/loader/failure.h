// How the loader says what went wrong: a status for programs, a text for people.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "base/error.h"
#include "kc/loader.h"

namespace kc::loader {

struct Failure {
  kc_status status = KC_ERROR_INTERNAL;
  std::string message;
  int driver_code = 0;  // as the driver gave it, 0 when none was asked
};

template <typename T>
using Result = std::expected<T, Failure>;

inline std::unexpected<Failure> fail(kc_status status, std::string message, int driver_code = 0) {
  return std::unexpected(Failure{status, std::move(message), driver_code});
}

/// An error of core/base or core/bundle: kInput is KC_ERROR_IO, kFailed KC_ERROR_DAMAGED, kEnvironment
/// KC_ERROR_IO, kInternal KC_ERROR_INTERNAL.
Failure failure_of(const base::Error& error);

template <typename T>
Result<T> from_base(base::Result<T> result) {
  if (!result) return std::unexpected(failure_of(result.error()));
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return std::move(*result);
  }
}

}  // namespace kc::loader
