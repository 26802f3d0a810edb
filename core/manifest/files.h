// The backend of a kernel, and the files that it is made from.
#pragma once

#include "manifest/draft.h"
#include "manifest/kernel_parts.h"
#include "manifest/plan.h"

namespace kc::manifest {

struct FileDefaults;
struct ResolveContext;

/// The backend of that name; null, and reported, when there is none.
const BackendRules* find_backend(const Text& name, const ResolveContext& context);

/// Sources, and the backend that follows from them or is named. Sets KernelParts::backend, sources,
/// are_sources_good.
void resolve_sources(KernelParts& parts, const FileDefaults& defaults, const ResolveContext& context);

/// Libraries and `depends` of a kernel whose backend is known. Sets KernelParts::libraries,
/// are_libraries_good, depends.
void resolve_further_files(KernelParts& parts, const FileDefaults& defaults, const ResolveContext& context);

/// Reports a file that is a source and a library at once, at the library, or at the source when the library
/// is one of the defaults. False when it is.
bool check_source_is_no_library(const KernelParts& parts, uint32_t index, const Text& source, Faults& faults);

}  // namespace kc::manifest
