// A build or plan from its options to its exit code, told as text or JSON lines.
#pragma once

#include "build/options.h"
#include "cli/build_text.h"
#include "cli/console.h"

namespace kc::cli {

/// `what` is completed with what the console's format asks for.
int run_build(const build::Options& options, Console& console, BuildText::What what);

}  // namespace kc::cli
