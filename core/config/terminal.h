// What the environment says of terminals (no-color.org, bixense.com/clicolors).
#pragma once

#include <optional>
#include <string>

namespace kc::config {

/// An empty variable counts as unset.
struct Terminal {
  std::optional<std::string> no_color, clicolor_force, term, columns;
};

Terminal read_terminal();

}  // namespace kc::config
