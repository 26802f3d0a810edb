// The keys that a file named on the command line needs: `kc gc --keep`, `kc store pin -f`.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "build/needed.h"
#include "cli/command.h"

namespace kc::cli {

class Console;

/// Of a file that starts as a bundle the keys of its units; any other is a manifest, and its units, those for
/// `targets` if there are any, are planned and keyed. What goes wrong is told; the error is the exit code.
std::expected<build::Needed, int> needed_keys(const Common& common, const StoreArguments& store,
                                              const std::string& file,
                                              const std::vector<std::string>& targets, Console& console);

}  // namespace kc::cli
