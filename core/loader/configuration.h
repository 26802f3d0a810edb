// A configuration as people give it, made what the index of a bundle holds.
#pragma once

#include <string>
#include <string_view>

#include "loader/failure.h"

namespace kc::loader {

/// The canonical text of `text`: pairs `key=value` joined by commas, in any order. In a value, `%XX` stands
/// for a byte and any byte but `,`, `=` and `%` may stand for itself. KC_ERROR_ARGUMENT says which pair is
/// wrong.
Result<std::string> canonical_configuration(std::string_view text);

}  // namespace kc::loader
