// What a kernel is resolved to, less its name: the kernels of one `entries` share it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "manifest/defaults.h"
#include "manifest/draft.h"
#include "manifest/modules.h"
#include "manifest/plan.h"
#include "manifest/source_lists.h"
#include "manifest/table.h"
#include "manifest/template.h"

namespace kc::manifest {

struct KernelSource {
  SourceName name;
  std::optional<uint32_t> index;  // in the plan's sources; of a literal name whose file is there
};

struct ResolvedOverride {
  const OverrideDraft* draft = nullptr;
  std::optional<uint32_t> target;            // of its `when`: index into KernelParts::targets
  std::vector<const NamedText*> conditions;  // of its `when`: keys of specializations
};

/// Drafts, rules and tables must outlive it.
struct KernelParts {
  /// In `row_targets`: the row is for all targets.
  static constexpr uint32_t kAllTargets = UINT32_MAX;

  const KernelDraft* draft = nullptr;
  const BackendRules* backend = nullptr;  // null when it is not known
  std::shared_ptr<DefaultsIndex> defaults;
  bool are_defaults_good = true;               // false: nothing may be missed that they could have said
  std::vector<const target::Target*> targets;  // in the order written
  std::vector<KernelSource> sources;
  bool are_sources_good = false;             // all of them are named; files may be missing
  std::optional<Template> entry;             // nothing with `entries`, or when it is at fault
  std::shared_ptr<const FileSet> libraries;  // null: none
  bool are_libraries_good = true;
  std::vector<uint32_t> depends;
  const std::vector<TableRow>* rows = nullptr;  // of its table
  std::vector<uint32_t> row_targets;            // of each row an index into `targets`, or kAllTargets

  Pairs options;            // all of the backend's, sorted; before overrides and `option.` keys
  YamlPlace options_place;  // of what they were made from
  bool are_options_good = false;
  std::unordered_set<std::string> varied_options;  // names, of `option.` keys
  bool has_one_set_of_options = false;             // nothing varies them; the rule between them was checked

  Pairs config;                               // its own, sorted
  std::unordered_set<std::string> used_keys;  // between braces of sources and entry
  /// The keys that reach the compiler. Nothing: all do, or each set of sources has its own.
  std::optional<DeclaredKeys> declared;
  bool declares_by_sources = false;
  bool takes_offered = false;  // keys of `defaults.config`

  std::vector<ResolvedOverride> overrides;
  /// What its specializations, options and overrides say is known: they can be gone through, whatever else is
  /// at fault.
  bool can_visit = false;
  bool is_default_good = true;  // `default` names keys and values that may be
  bool is_good = false;         // no fault in it so far: units can be made

  /// `the kernel "k"`, for messages.
  std::string described() const;
};

}  // namespace kc::manifest
