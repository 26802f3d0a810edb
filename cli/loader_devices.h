// The GPUs that an argument names.
#pragma once

#include <kc/loader.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "util/json.h"

namespace kc::cli {

class Console;

/// "cuda:0"
std::string name_of(const kcload::Device& device);
/// The event `device`.
util::Json device_json(const kcload::Device& device);

/// Each once, in the order of `names`: `cuda:N`, `hip:N`, `cuda` and `hip` (all of them); without names all
/// that there are. ErrorKind::kInput for other names, kEnvironment where there is no driver or no such
/// device, also when there is none at all; what else is wrong with one maker's driver is a warning when the
/// other's has devices.
base::Result<std::vector<kcload::Device>> find_devices(const std::vector<std::string>& names,
                                                       Console& console);

}  // namespace kc::cli
