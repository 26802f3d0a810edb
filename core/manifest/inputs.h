// Reading a file that a manifest names: an include, a list, a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "manifest/fields.h"
#include "manifest/plan.h"

namespace kc::manifest {

/// `error` of base::read_file as a sentence about `what` (`the list "a.txt"`); a missing file gets a hint
/// with the nearest name. Without a place.
base::Error unreadable(base::Error error, const std::string& what, const std::string& opened);

/// The bytes of the file at `opened`, which is appended to `inputs`. Nothing, and reported where `path` is,
/// when it cannot be read. `what` is `the list`, `the table`...
std::optional<base::Bytes> read_input(std::string_view what, const Text& path, const std::string& opened,
                                      uint64_t limit, std::vector<Input>& inputs, Faults& faults);

/// False, and reported at its place, when `text`, of the file of this number, is not UTF-8 or has control
/// bytes other than tabs and line ends.
bool check_text(std::string_view text, uint32_t file, Faults& faults);

/// Without the byte order mark that UTF-8 may begin with.
std::string_view without_mark(std::string_view text);

}  // namespace kc::manifest
