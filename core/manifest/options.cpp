#include "manifest/options.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "manifest/kernel_parts.h"
#include "manifest/resolve.h"
#include "manifest/specializations.h"

namespace kc::manifest {
namespace {

// Goes through `option.` keys of one kernel, each key and each value once.
class VariedOptions {
 public:
  VariedOptions(KernelParts& parts, Faults& faults) : parts_(parts), faults_(faults) {}

  void check(const SpecializationsDraft& draft) {
    const size_t before = faults_.count();
    if (draft.matrix) {
      for (const Axis& axis : *draft.matrix) {
        if (!is_option_key(axis.key.text) || !check_name(axis.key)) continue;
        for (const Text& value : axis.values) check_value(axis.key, value);
      }
    }
    if (draft.include) {
      for (const Selection& include : *draft.include) check(include.pairs);
    }
    if (parts_.rows != nullptr) {
      for (const TableRow& row : *parts_.rows) check(row.selection.pairs);
    }
    if (faults_.count() != before) parts_.are_options_good = false;
  }

 private:
  void check(const std::vector<NamedText>& pairs) {
    for (const NamedText& pair : pairs) {
      if (!is_option_key(pair.key.text) || !check_name(pair.key)) continue;
      if (!seen_.insert(pair.key.text + '=' + pair.value.text).second) continue;
      check_value(pair.key, pair.value);
    }
  }

  void check_value(const Text& key, const Text& value) {
    check_option(*parts_.backend, option_name(key.text), key.place, value, faults_);
  }

  // Of a name that the backend has not, one error at the first key is enough.
  bool check_name(const Text& key) {
    const std::string name(option_name(key.text));
    if (unknown_.contains(name)) return false;
    if (!check_option_name(*parts_.backend, name, key.place, faults_)) {
      unknown_.insert(name);
      return false;
    }
    parts_.varied_options.insert(name);
    return true;
  }

  KernelParts& parts_;
  Faults& faults_;
  std::unordered_set<std::string> unknown_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

const BackendRules::Option* find_option(const BackendRules& backend, std::string_view name) {
  const auto found =
      std::find_if(backend.options.begin(), backend.options.end(),
                   [&](const BackendRules::Option& candidate) { return candidate.name == name; });
  return found == backend.options.end() ? nullptr : &*found;
}

bool is_option_key(std::string_view key) {
  return key.starts_with(kOptionPrefix);
}

std::string_view option_name(std::string_view key) {
  return is_option_key(key) ? key.substr(kOptionPrefix.size()) : key;
}

bool check_option_name(const BackendRules& backend, std::string_view name, YamlPlace place, Faults& faults) {
  if (find_option(backend, name) != nullptr) return true;
  std::vector<std::string> names;
  for (const BackendRules::Option& candidate : backend.options) names.push_back(candidate.name);
  std::string hint = util::did_you_mean(name, names);
  if (hint.empty()) hint = "known: " + util::listed(names, names.size());
  faults.error(place, util::format("{} has no option {}", backend.name, in_quotes(name)), std::move(hint));
  return false;
}

bool check_option(const BackendRules& backend, std::string_view name, YamlPlace place, const Text& value,
                  Faults& faults) {
  if (!check_option_name(backend, name, place, faults)) return false;
  const std::vector<std::string>& values = find_option(backend, name)->values;
  if (std::find(values.begin(), values.end(), value.text) != values.end()) return true;
  std::string hint = util::did_you_mean(value.text, values);
  if (hint.empty()) hint = "one of " + util::listed(values, values.size());
  faults.error(value.place,
               util::format("{} is no value of the option {}", in_quotes(value.text), in_quotes(name)),
               std::move(hint));
  return false;
}

void set_option(Pairs& options, std::string_view name, std::string_view value) {
  const auto at = std::lower_bound(options.begin(), options.end(), name,
                                   [](const auto& pair, std::string_view text) { return pair.first < text; });
  if (at != options.end() && at->first == name) at->second = value;
}

void resolve_options(KernelParts& parts, const ResolveContext& context) {
  const BackendRules& backend = *parts.backend;
  const KernelDraft& draft = *parts.draft;
  parts.are_options_good = !draft.options.is_faulty() && parts.are_defaults_good;
  parts.options_place = draft.options ? draft.options_place : draft.place;
  bool has_place = static_cast<bool>(draft.options);
  for (const BackendRules::Option& option : backend.options) {
    const std::string* value = &option.values.front();
    const NamedText* offered = parts.defaults->option(backend.name, option.name);
    if (offered != nullptr) {
      const bool is_known =
          std::find(option.values.begin(), option.values.end(), offered->value.text) != option.values.end();
      if (is_known) {
        value = &offered->value.text;
        if (!std::exchange(has_place, true)) parts.options_place = offered->key.place;
      } else {
        parts.are_options_good = false;
      }
    }
    parts.options.emplace_back(option.name, *value);
  }
  std::sort(parts.options.begin(), parts.options.end());
  if (!draft.options) return;
  for (const NamedText& pair : *draft.options) {
    if (check_option(backend, pair.key.text, pair.key.place, pair.value, context.faults)) {
      set_option(parts.options, pair.key.text, pair.value.text);
    } else {
      parts.are_options_good = false;
    }
  }
}

void check_varied_options(KernelParts& parts, const ResolveContext& context) {
  VariedOptions(parts, context.faults).check(specializations_of(parts));
}

const std::optional<std::string>& OptionRules::fault_of(const Pairs& options) {
  std::string text;
  for (const auto& [name, value] : options) {
    text += value;
    text += '\0';
  }
  const auto [found, is_new] = faults_.try_emplace(std::move(text));
  if (is_new && backend_.check_options) found->second = backend_.check_options(options);
  return found->second;
}

}  // namespace kc::manifest
