// Files of /proc and /sys: their size is not known before they are read, so base::read_file is not for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kc::util {

/// At most the first `limit` bytes; nothing when it cannot be opened or read.
std::optional<std::string> read_pseudo_file(const std::string& path, size_t limit = 64U << 10);

/// The number behind `name` in text of lines like `VmHWM:   1234 kB` or `inactive_file 4096`, as written.
std::optional<uint64_t> named_number(std::string_view text, std::string_view name);

}  // namespace kc::util
