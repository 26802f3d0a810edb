// The configuration of a kernel: that its keys mean something, and which values reach the compiler.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "manifest/kernel_parts.h"
#include "manifest/modules.h"
#include "manifest/plan.h"
#include "manifest/specializations.h"

namespace kc::manifest {

struct ResolveContext;

/// Each `{key}` has a value in every specialization, each constant too, each key is declared or used,
/// `default` names keys that exist. Sets KernelParts::config, used_keys, declared, declares_by_sources and
/// takes_offered.
void check_configuration(KernelParts& parts, const SpecializationKeys& keys, const ResolveContext& context);

/// Makes Unit::config. Not for concurrent use; what it is made with must outlive it.
class UnitConfig {
 public:
  UnitConfig(const KernelParts& parts, const ResolveContext& context);

  /// The values of a unit with this specialization and these sources, sorted by key. When the sources follow
  /// from the specialization, keys that they do not declare are reported here, each once.
  Pairs make(const Pairs& specialization, const std::vector<KernelFile>& sources);

 private:
  // What is the same for all specializations that use one set of sources.
  struct Base {
    std::optional<DeclaredKeys> declared;  // nothing: every key reaches the compiler
    Pairs pairs;                           // of `config` and of what is offered
  };
  const Base& base_of(const std::vector<KernelFile>& sources);
  Base base(std::optional<DeclaredKeys> declared) const;
  void check_declared(const Pairs& pairs, const DeclaredKeys& declared,
                      const std::vector<KernelFile>& sources);

  // Where a key is written first.
  YamlPlace place_of(std::string_view key);

  const KernelParts& parts_;
  const ResolveContext& context_;
  Base fixed_;  // unless they differ by sources
  std::unordered_map<const Modules::Told*, Base> by_sources_;
  std::unordered_set<std::string> reported_;
  std::unordered_map<std::string_view, YamlPlace> places_;  // empty until a key is at fault
  bool warned_ = false;
};

}  // namespace kc::manifest
