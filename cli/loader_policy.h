// From the arguments of a command to what a bundle must be, for kc and kcload.
#pragma once

#include <kc/loader.hpp>
#include <vector>

#include "base/error.h"
#include "bundle/signature.h"
#include "cli/loader_arguments.h"

namespace kc::cli {

/// Those of --key and --key-dir alone, each once.
base::Result<std::vector<bundle::PublicKey>> read_keys(const KeyArguments& arguments);

/// The bundle, open, as the arguments demand it.
base::Result<kcload::Bundle> open_bundle(const PolicyArguments& arguments);

/// An error of the library as the programs tell errors: its first line is the message, at `place`, the others
/// the hint; its kind is the exit code.
base::Error error_of(const kcload::Error& error, const std::string& place);

}  // namespace kc::cli
