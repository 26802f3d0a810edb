// `entries`: the kernels that one draft stands for.
#pragma once

#include <memory>
#include <vector>

#include "manifest/resolve.h"

namespace kc::manifest {

/// One kernel for each entry of `parts`, whose draft has `entries`. Nothing, and reported, when the entries
/// or the names that follow from them are at fault.
std::vector<ResolvedKernel> resolve_entries(const std::shared_ptr<const KernelParts>& parts,
                                            const ResolveContext& context);

}  // namespace kc::manifest
