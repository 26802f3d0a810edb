// Where NVIDIA's driver is looked for.
#pragma once

#include <memory>
#include <span>

#include "loader/driver.h"

namespace kc::loader {

/// The dynamic linker's own search first, then where WSL and NixOS keep it. Only the name with its version:
/// the one without is the toolkit's link stub.
inline constexpr const char* kCudaPlaces[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
                                              "/run/opengl-driver/lib/libcuda.so.1"};

Result<std::unique_ptr<Driver>> open_cuda_driver(std::span<const char* const> places);

}  // namespace kc::loader
