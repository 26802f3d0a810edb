// A kernel with everything that follows from several of its fields, and from the files that it is in:
// backend, targets, options, the use of its configuration.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "manifest/defaults.h"
#include "manifest/draft.h"
#include "manifest/kernel_parts.h"
#include "manifest/modules.h"
#include "manifest/plan.h"
#include "manifest/source_lists.h"
#include "manifest/source_table.h"
#include "manifest/table.h"
#include "manifest/template.h"

namespace kc::manifest {

/// What a kernel has from its file, and that file from those that include it where it has none itself.
struct FileDefaults {
  std::string base;  // the file's folder relative to the top manifest's: empty, or `sub/dir`
  /// The targets of the file or of the nearest includer that has some; null = no file has.
  const Slot<std::vector<TargetDraft>>* targets = nullptr;
  /// Of all files from this one outwards, the nearest first; of one option or key the first counts.
  std::vector<DefaultsDraft::BackendOptions> options;
  std::vector<NamedText> config;
  /// The nearest list of libraries, and the folder that its paths are relative to.
  std::vector<Text> libraries;
  std::string libraries_base;
  bool is_faulty = false;  // what some of these files say was reported and is missing here
  /// All of this by name, made when the first kernel asks; nothing above may change after that.
  mutable std::shared_ptr<DefaultsIndex> index;
};

/// A kernel of the plan.
struct ResolvedKernel {
  std::string name;  // with `{entry}` replaced; empty when it is not known
  YamlPlace place;   // of the name, or of the entry that made it
  std::optional<Template> entry;
  std::shared_ptr<const KernelParts> parts;  // the same for all of one `entries`, which stand together
  bool is_good = false;                      // no fault in it so far: it can be expanded
};

/// What resolving has seen so far: what is looked up once, and counts of what several kernels could make too
/// much of, each of them without being too large itself.
struct ResolveState {
  Modules modules;
  uint64_t rows = 0;     // of the tables of all kernels
  uint64_t cells = 0;    // of these
  uint64_t targets = 0;  // of all kernels
  uint64_t kernels = 0;  // of all `entries`
};

/// What does not change from kernel to kernel. All of it must outlive what is resolved with it.
struct ResolveContext {
  const std::vector<BackendRules>& backends;
  SourceTable& sources;
  SourceLists& lists;
  Tables& tables;
  Faults& faults;
  uint64_t max_units = kMaxUnits;
  std::shared_ptr<ResolveState> state =
      std::make_shared<ResolveState>(ResolveState{Modules(sources, faults)});
};

/// Checks the `defaults` of one file on their own: backends, options and values that exist. A kernel that
/// merges them says nothing about them again.
void check_defaults(const DefaultsDraft& defaults, const ResolveContext& context);

/// One kernel, or with `entries` one for each entry. When the entries are not known for their faults, one
/// without a name.
std::vector<ResolvedKernel> resolve_kernel(const KernelDraft& draft, const FileDefaults& defaults,
                                           const ResolveContext& context);

/// Two kernels of one name, whatever files they are in, are an error that names both places.
void report_names_twice(const std::vector<ResolvedKernel>& kernels, Faults& faults);

/// Default targets that no kernel takes, and offered configuration keys that no kernel declares: a warning
/// each. `files` are the drafts in the order read.
void warn_of_unused_defaults(const std::vector<const ManifestDraft*>& files,
                             const std::vector<ResolvedKernel>& kernels, Faults& faults);

}  // namespace kc::manifest
