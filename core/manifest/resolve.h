// A kernel with everything that follows from several of its fields, and from the manifest's: backend,
// targets, options, the use of its configuration.
#pragma once

#include <vector>

#include "manifest/draft.h"
#include "manifest/plan.h"
#include "manifest/source_table.h"
#include "manifest/template.h"

namespace kc::manifest {

struct ResolvedKernel {
  const KernelDraft* draft = nullptr;
  const BackendRules* backend = nullptr;
  std::vector<const target::Target*> targets;  // in the order written
  std::vector<Template> sources;
  std::optional<Template> entry;
  Pairs options;         // all of the backend's, sorted
  Pairs config;          // of `config`, sorted
  bool is_good = false;  // no fault in it so far: it can be expanded
};

/// What does not change from kernel to kernel. Drafts and rules must outlive what is resolved with it.
struct ResolveContext {
  const std::vector<BackendRules>& backends;
  const Slot<std::vector<TargetDraft>>& default_targets;
  SourceTable& sources;
  Faults& faults;
};

ResolvedKernel resolve_kernel(const KernelDraft& draft, const ResolveContext& context);

/// Default targets that no kernel takes: a warning each.
void warn_of_unused_targets(const Slot<std::vector<TargetDraft>>& default_targets,
                            const std::vector<ResolvedKernel>& kernels, Faults& faults);

}  // namespace kc::manifest
