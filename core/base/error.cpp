#include "base/error.h"

#include <cstring>

namespace kc::base {

std::string Place::text() const {
  if (file.empty()) return {};
  std::string out = file;
  if (line == 0) return out;
  out += ':' + std::to_string(line);
  if (column != 0) out += ':' + std::to_string(column);
  return out;
}

// Out of line: inlined into large expressions it makes GCC 12 see uninitialized strings where there are none.
Error::Error(ErrorKind kind_of, std::string what, Place where, std::string cure, int error_number)
    : kind(kind_of),
      message(std::move(what)),
      place(std::move(where)),
      hint(std::move(cure)),
      sys_errno(error_number) {}

std::string Error::text() const {
  std::string out = place.text();
  if (!out.empty()) out += ": ";
  out += message;
  if (!hint.empty()) out += " (" + hint + ")";
  return out;
}

std::unexpected<Error> fail_errno(ErrorKind kind, std::string_view action, std::string_view path,
                                  int error_number) {
  // strerrordesc_np is thread-safe and does not depend on the locale.
  const char* description = strerrordesc_np(error_number);
  Error error;
  error.kind = kind;
  error.message = "cannot " + std::string(action) + " " + std::string(path) + ": " +
                  (description != nullptr ? description : "error " + std::to_string(error_number));
  error.sys_errno = error_number;
  return std::unexpected(std::move(error));
}

}  // namespace kc::base
