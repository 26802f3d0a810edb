// The commands that kc and kcload both have. All are written over libkcload's public functions, so they
// answer as a program that ships with the library would be answered.
#pragma once

#include "cli/loader_arguments.h"

namespace kc::cli {

class Console;

/// Each takes its arguments as plain data and gives the exit code.
int check_bundle(const CheckArguments& arguments, Console& console);
int load_bundle(const LoadArguments& arguments, Console& console);

}  // namespace kc::cli
