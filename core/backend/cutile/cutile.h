// cuTile Python sources: exported to Tile IR bytecode first, then compiled by tileiras.
#pragma once

#include <string_view>

#include "backend/backend.h"

namespace kc::backend::cutile {

inline constexpr std::string_view kName = "cutile";

Description description();

}  // namespace kc::backend::cutile
