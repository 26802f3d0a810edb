// The library's compile report: JSON that it makes when the option `report` asks for it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace kc::backend::loom {

/// Values that the register allocator could not keep in registers, for a code object of one kernel:
/// `allocation.spill_count`, of the same name in all generations. The code object does not tell it. Nothing
/// when the report does not say.
std::optional<uint32_t> spill_count(base::ByteView report);

}  // namespace kc::backend::loom
