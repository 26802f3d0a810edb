// What planning must know of each backend.
#pragma once

#include <vector>

#include "manifest/plan.h"

namespace kc::build {

/// Of all backends that kc knows by name, in their order, found or not.
std::vector<manifest::BackendRules> backend_rules();

}  // namespace kc::build
