// From resolved kernels to units.
#pragma once

#include <vector>

#include "manifest/plan.h"
#include "manifest/resolve.h"

namespace kc::manifest {

/// Counts before anything is taken: false, and reported, when `kernels` give more than `max_units` (at most
/// kMaxUnits), or would take more memory or time than so many may.
bool check_extent(const std::vector<ResolvedKernel>& kernels, uint64_t max_units, Faults& faults);

/// Appends kernels, limits and units to `plan`, in plan order, for every good kernel. Of the others the
/// specializations and overrides are gone through all the same, for what is wrong in them. Sources whose
/// names hold `{key}` are looked up here.
void expand(const std::vector<ResolvedKernel>& kernels, util::Nanoseconds default_timeout,
            const ResolveContext& context, Plan& plan);

}  // namespace kc::manifest
