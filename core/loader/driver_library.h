// Finds a GPU driver's library and the functions in it. Knows no driver; reads no environment variable itself
// (the dynamic linker looks at LD_LIBRARY_PATH).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "loader/failure.h"

namespace kc::loader {

enum class Need : uint8_t {
  kRequired,
  kOptional,
  kEither,  // of those that stand side by side one is needed
};

/// One function of a driver: `slot` is the address of a function pointer, which open_driver_library() sets.
struct Symbol {
  const char* name;
  Need need;
  void* slot;
};

/// Opens the first of `places` (names that the dynamic linker searches for, or absolute paths) that has all
/// required symbols, sets all slots (to null where an optional one is missing), and gives the path under
/// which the library was found. It stays loaded for as long as the process lives: threads that a driver has
/// started cannot be stopped. On failure all slots are null and nothing stays loaded; KC_ERROR_NO_DRIVER
/// names each place and why it would not do, a missing symbol with the library that lacks it. `product` is
/// what people call it: "NVIDIA driver"; `cure` is what to do.
Result<std::string> open_driver_library(std::string_view product, std::span<const char* const> places,
                                        std::span<const Symbol> symbols, std::string_view cure);

/// Texts that a driver or the dynamic linker gives, made fit for a message: control characters become '?',
/// line breaks stay where `lines`, and white space at the end goes.
std::string plain_text(std::string_view text, bool lines = false);

}  // namespace kc::loader
