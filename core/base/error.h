// What can go wrong, as a value. Every fallible function of kc returns Result<T>; no exception crosses a
// folder.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace kc::base {

/// Who has to act on an error. The numbers are kc's exit codes (docs: `kc --help`).
enum class ErrorKind : uint8_t {
  kFailed = 1,       // a unit failed, or a bundle, store or archive is damaged, foreign or incomplete
  kInput = 2,        // usage, manifest, a missing or unreadable input, an unknown name
  kEnvironment = 3,  // no compiler, disk full, output not writable: the machine, not the input
  kInternal = 4,     // a fault of kc itself
};

/// A place in a text file. `line` and `column` count from 1; 0 means unknown.
struct Place {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;

  /// `file:line:column` as far as known; empty when even the file is not.
  std::string text() const;
  bool operator==(const Place&) const = default;
};

/// One error: what, where, why and what to do.
struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;  // what and why, one sentence without a final full stop
  Place place;          // where, when a file is to blame
  std::string hint;     // what to do; may be empty
  int sys_errno = 0;    // the errno behind it, 0 when there is none

  Error() = default;
  Error(ErrorKind kind, std::string message, Place place = {}, std::string hint = {}, int sys_errno = 0);

  /// `place: message (hint)` on one line.
  std::string text() const;
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorKind kind, std::string message, std::string hint = {}) {
  return std::unexpected(Error{kind, std::move(message), {}, std::move(hint), 0});
}
inline std::unexpected<Error> fail_at(ErrorKind kind, Place place, std::string message,
                                      std::string hint = {}) {
  return std::unexpected(Error{kind, std::move(message), std::move(place), std::move(hint), 0});
}
/// "cannot <action> <path>: <strerror>", with `sys_errno` kept.
std::unexpected<Error> fail_errno(ErrorKind kind, std::string_view action, std::string_view path,
                                  int error_number);

}  // namespace kc::base

// Returns from the calling function with the error of `expression`; otherwise discards or binds its value.
#define KC_CONCAT_INNER(a, b) a##b
#define KC_CONCAT(a, b) KC_CONCAT_INNER(a, b)
#define KC_TRY(expression)                                                                               \
  do {                                                                                                   \
    if (auto kc_result = (expression); !kc_result) return std::unexpected(std::move(kc_result).error()); \
  } while (false)
#define KC_ASSIGN(declaration, expression)                                      \
  auto KC_CONCAT(kc_result_, __LINE__) = (expression);                          \
  if (!KC_CONCAT(kc_result_, __LINE__))                                         \
    return std::unexpected(std::move(KC_CONCAT(kc_result_, __LINE__)).error()); \
  declaration = std::move(*KC_CONCAT(kc_result_, __LINE__))
