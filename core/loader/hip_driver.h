// Where AMD's HIP runtime is looked for.
#pragma once

#include <memory>
#include <span>

#include "loader/driver.h"

namespace kc::loader {

/// The dynamic linker's own search first, newest first, then ROCm's own folder. Never the name without a
/// version: which layouts its functions use cannot be known.
inline constexpr const char* kHipPlaces[] = {"libamdhip64.so.7",
                                             "libamdhip64.so.6",
                                             "libamdhip64.so.5",
                                             "/opt/rocm/lib/libamdhip64.so.7",
                                             "/opt/rocm/lib/libamdhip64.so.6",
                                             "/opt/rocm/lib/libamdhip64.so.5"};

Result<std::unique_ptr<Driver>> open_hip_driver(std::span<const char* const> places);

}  // namespace kc::loader
