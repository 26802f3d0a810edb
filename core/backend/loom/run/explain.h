// What a library's diagnostics mean for the user of kc: which one leads, where it is, and what to do. Pure
// functions of data, so that every message can be tested without a library.
#pragma once

#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "backend/loom/run/profiles.h"
#include "backend/run.h"

namespace kc::backend::loom {

/// Gives mistakes of the configuration, which come without a place, that of the key's declaration.
void add_places(const SourceSet& sources, std::vector<artifact::Diagnostic>& diagnostics);

/// Why `request` failed, from the diagnostics of the step that did: the first error leads, those that follow
/// from it are counted.
Explanation explain(const CompileRequest& request, const std::vector<artifact::Diagnostic>& diagnostics);

}  // namespace kc::backend::loom
