// The describing half of the Loom backend: what backend.h asks of it.
#pragma once

#include <string_view>

#include "backend/backend.h"
#include "base/bytes.h"
#include "base/error.h"

namespace kc::backend::loom {

inline constexpr std::string_view kName = "loom";

Description description();

/// A source called so is Loom bytecode, any other is Loom text.
bool is_bytecode(std::string_view name);

/// That text is UTF-8 outside its comments and bytecode begins as bytecode does. Whether it is Loom is the
/// compiler's to say. ErrorKind::kInput, with line and column.
base::Result<void> check_source(std::string_view name, base::ByteView bytes);

}  // namespace kc::backend::loom
