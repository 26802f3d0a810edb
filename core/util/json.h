// JSON, mostly for output. nlohmann-json is included here only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kc::util {

using Json = nlohmann::ordered_json;

/// One line without the line feed, of printable ASCII; invalid UTF-8 is replaced by U+FFFD. Other characters
/// are `\uXXXX`: untrusted text may hold controls that a terminal obeys, and what readers take for line ends.
inline std::string dump_line(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace kc::util
