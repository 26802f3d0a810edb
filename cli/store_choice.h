// Flags and variables become the store of a command.
#pragma once

#include <string_view>

#include "build/options.h"
#include "cli/command.h"

namespace kc::cli {

/// Of `rw`, `ro`, `off` and `refresh`, which is what options and variables are checked to be.
store::Mode parse_mode(std::string_view text);

build::StoreChoice choose_store(const Common& common, const StoreArguments& arguments);

/// The folder of the store, absolute; ErrorKind::kEnvironment when none is named and HOME is not set.
base::Result<std::string> store_folder(const Common& common, const StoreArguments& arguments);

}  // namespace kc::cli
