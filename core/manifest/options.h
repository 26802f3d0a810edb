// The options of a backend: which there are, what a kernel and its specializations make of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "manifest/defaults.h"
#include "manifest/draft.h"
#include "manifest/plan.h"

namespace kc::manifest {

struct KernelParts;
struct ResolveContext;

/// Null when the backend has it not.
const BackendRules::Option* find_option(const BackendRules& backend, std::string_view name);

/// False, and reported, when the backend has no such option or the option no such value. `place` is that of
/// the name.
bool check_option(const BackendRules& backend, std::string_view name, YamlPlace place, const Text& value,
                  Faults& faults);
/// Likewise of a name without a value.
bool check_option_name(const BackendRules& backend, std::string_view name, YamlPlace place, Faults& faults);

/// Whether `key` is `option.` and something.
bool is_option_key(std::string_view key);
/// What stands behind `option.`; `key` itself without it.
std::string_view option_name(std::string_view key);

/// Sets a value in pairs that have all options of a backend.
void set_option(Pairs& options, std::string_view name, std::string_view value);

/// The options of a kernel before its specializations and overrides: its own over those of its files over
/// those of the backend. Sets KernelParts::options, options_place and are_options_good.
void resolve_options(KernelParts& parts, const ResolveContext& context);

/// Checks keys and values of `option.` in matrix, includes and table rows. Sets KernelParts::varied_options.
void check_varied_options(KernelParts& parts, const ResolveContext& context);

/// The rule between the options of one backend, asked once for each set of values.
class OptionRules {
 public:
  /// `backend` must outlive it.
  explicit OptionRules(const BackendRules& backend) : backend_(backend) {}

  /// What is wrong with `options`, which are all of the backend's, sorted.
  const std::optional<std::string>& fault_of(const Pairs& options);

 private:
  const BackendRules& backend_;
  std::unordered_map<std::string, std::optional<std::string>> faults_;
};

}  // namespace kc::manifest
