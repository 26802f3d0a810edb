// The commands of kcload alone; those that kc has too are in cli/loader_commands.h.
#pragma once

#include "cli/loader_arguments.h"

namespace kc::cli {

class Console;

/// Each takes its arguments as plain data and gives the exit code.
int list_bundle(const PolicyArguments& arguments, Console& console);
int verify_bundle(const PolicyArguments& arguments, Console& console);

}  // namespace kc::cli
