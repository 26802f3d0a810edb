// `overrides` of a kernel: what they may say, and what they make of a unit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "manifest/kernel_parts.h"
#include "manifest/plan.h"
#include "manifest/specializations.h"
#include "manifest/targets.h"

namespace kc::manifest {

struct ResolveContext;

/// Checks each override against the targets, the specializations and the options of its kernel, all of which
/// are known. Sets KernelParts::overrides; false, and reported, when any is at fault.
bool resolve_overrides(KernelParts& parts, const SpecializationKeys& keys, const TargetFinder& targets,
                       Faults& faults);

/// Reports limits that the code objects of the backend do not tell.
void check_limits(const LimitsDraft& limits, const BackendRules& backend, Faults& faults);

/// Fields that are set in `by` replace those of `limits`.
void replace_limits(Limits& limits, const Limits& by);

/// Applies them, unit by unit. Not for concurrent use; the parts must outlive it.
class Overrides {
 public:
  explicit Overrides(const KernelParts& parts) : parts_(parts), has_matched_(parts.overrides.size()) {}

  /// Goes on with the units of this specialization, its pairs sorted by key.
  void select(const Pairs& specialization);

  /// Of a unit of the selected specialization. What is not set is as the kernel has it.
  struct Effect {
    bool skip = false;
    std::optional<util::Nanoseconds> timeout;
    Limits limits;                                 // fields that are set replace those of the kernel
    const ResolvedOverride* options_of = nullptr;  // the last that sets options
  };
  Effect apply(uint32_t target);
  /// Sets in `options` what those that match a unit of the selected specialization say.
  void set_options(uint32_t target, Pairs& options) const;

  /// Reports those that have matched no unit so far.
  void report_unmatched(Faults& faults) const;

 private:
  bool is_for(uint32_t index, uint32_t target) const {
    return parts_.overrides[index].target.value_or(target) == target;
  }

  const KernelParts& parts_;
  std::vector<bool> has_matched_;
  std::vector<uint32_t> selected_;  // their conditions on the specialization hold
};

}  // namespace kc::manifest
