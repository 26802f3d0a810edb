// The targets of a kernel, and those that rows and overrides choose among them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "manifest/kernel_parts.h"

namespace kc::manifest {

struct FileDefaults;
struct ResolveContext;

/// Its own, or those of its files that are of its backend's vendor. Sets KernelParts::targets, which stays
/// empty when they are not known.
void resolve_targets(KernelParts& parts, const FileDefaults& defaults, const ResolveContext& context);

/// Finds the targets of one kernel by name, which must outlive it.
class TargetFinder {
 public:
  explicit TargetFinder(const std::vector<const target::Target*>& targets);

  /// The index in the kernel's targets; features may stand in another order.
  std::optional<uint32_t> find(std::string_view text) const;
  /// What a name that is none of them may have meant.
  std::string hint_for(std::string_view text) const;

 private:
  const std::vector<const target::Target*>& targets_;
  std::unordered_map<std::string_view, uint32_t> by_text_;
};

/// Which targets the rows of its table are for. Sets KernelParts::row_targets. False, and reported once for
/// each name, when a row names a target that is none of the kernel's.
bool resolve_row_targets(KernelParts& parts, const TargetFinder& finder, Faults& faults);

}  // namespace kc::manifest
