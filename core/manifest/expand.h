// From resolved kernels to units.
#pragma once

#include <vector>

#include "manifest/plan.h"
#include "manifest/resolve.h"

namespace kc::manifest {

/// Counts before anything is taken: false, and reported, when the good ones of `kernels` give more units, or
/// would take more memory or time, than a plan may.
bool check_extent(const std::vector<ResolvedKernel>& kernels, Faults& faults);

/// Appends kernels and units to `plan`, in plan order, for every good kernel. Sources whose names hold
/// `{key}` are looked up here.
void expand(const std::vector<ResolvedKernel>& kernels, util::Nanoseconds default_timeout,
            SourceTable& sources, Plan& plan, Faults& faults);

}  // namespace kc::manifest
