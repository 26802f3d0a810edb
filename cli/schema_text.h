// manifests/kernels.schema.json as it was when kc was built (cmake/embed.cmake makes the definition).
#pragma once

#include <string_view>

namespace kc::cli {

/// The file's bytes; they end with a line feed.
std::string_view schema_text();

}  // namespace kc::cli
