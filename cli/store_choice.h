// Flags and variables become the store of a command.
#pragma once

#include "build/options.h"
#include "cli/command.h"

namespace kc::cli {

build::StoreChoice choose_store(const Common& common, const StoreArguments& arguments);

/// The folder of the store, absolute; ErrorKind::kEnvironment when none is named and HOME is not set.
base::Result<std::string> store_folder(const Common& common, const StoreArguments& arguments);

}  // namespace kc::cli
