// The commands of kc store that look at single entries and move them.
#include "cli/options_parts.h"

namespace kc::cli {

void add_entry_commands(CLI::App&, Arguments&, Commands&) {}

}  // namespace kc::cli
