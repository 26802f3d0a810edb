// What build, plan, pack and their like are asked to do, flags and variables merged.
#pragma once

#include "base/error.h"
#include "build/options.h"
#include "cli/command.h"

namespace kc::cli {

/// ErrorKind::kEnvironment when the path of this program cannot be had.
base::Result<build::Options> build_options(const Common& common, const BuildArguments& arguments);

}  // namespace kc::cli
