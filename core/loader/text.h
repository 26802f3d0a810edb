// Names and lists as messages show them: names come from callers and files, and a message may end in a
// terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kc::loader {

/// In double quotes; a byte that is not printable ASCII becomes \xNN, and what is longer than a line is cut.
std::string in_quotes(std::string_view text);

/// `"a", "b" and "c"`; of more than a few the first, then `and 12 more`.
std::string listed(const std::vector<std::string>& names);

}  // namespace kc::loader
