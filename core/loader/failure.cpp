#include "loader/failure.h"

#include <cerrno>

namespace kc::loader {

Failure failure_of(const base::Error& error) {
  kc_status status = KC_ERROR_INTERNAL;
  if (error.sys_errno == ENOMEM) return {KC_ERROR_MEMORY, error.text()};
  switch (error.kind) {
    case base::ErrorKind::kFailed:
      status = KC_ERROR_DAMAGED;
      break;
    case base::ErrorKind::kInput:
    case base::ErrorKind::kEnvironment:
      status = KC_ERROR_IO;
      break;
    case base::ErrorKind::kInternal:
      break;
  }
  return {status, error.text()};
}

}  // namespace kc::loader
