// The name that was probably meant: for messages about unknown names.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace kc::base {

/// Index of the candidate at the least edit distance (optimal string alignment: insert, delete, replace, swap
/// of neighbours; the case of ASCII letters is ignored), the first of equals, when that is close enough to be
/// meant: at most a third of the longer one's length, at least 1. Names over 256 bytes have none.
std::optional<size_t> nearest_index(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace kc::base
