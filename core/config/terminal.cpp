#include "config/terminal.h"

#include <cstdlib>

namespace kc::config {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

}  // namespace

Terminal read_terminal() {
  return {variable("NO_COLOR"), variable("CLICOLOR_FORCE"), variable("TERM"), variable("COLUMNS")};
}

}  // namespace kc::config
