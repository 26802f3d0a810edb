#include "manifest/overrides.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "manifest/options.h"
#include "manifest/resolve.h"

namespace kc::manifest {
namespace {

constexpr std::string_view kTarget = "target";

class OverrideCheck {
 public:
  OverrideCheck(KernelParts& parts, const SpecializationKeys& keys, const TargetFinder& targets,
                Faults& faults)
      : parts_(parts), keys_(keys), targets_(targets), faults_(faults) {}

  bool check(const std::vector<OverrideDraft>& drafts) {
    const size_t before = faults_.count();
    collect_values(drafts);
    for (const OverrideDraft& draft : drafts) {
      ResolvedOverride out;
      out.draft = &draft;
      for (const NamedText& condition : draft.when) {
        if (condition.key.text == kTarget) {
          check_target(condition, out);
        } else if (check_condition(condition)) {
          out.conditions.push_back(&condition);
        }
      }
      check_options(draft);
      if (draft.limits) check_limits(*draft.limits, *parts_.backend, faults_);
      parts_.overrides.push_back(std::move(out));
    }
    return faults_.count() == before;
  }

 private:
  // Of the keys that some `when` names: more is asked of no key.
  void collect_values(const std::vector<OverrideDraft>& drafts) {
    for (const OverrideDraft& draft : drafts) {
      for (const NamedText& condition : draft.when) values_[condition.key.text];
    }
    const auto add = [&](const std::vector<NamedText>& pairs) {
      for (const NamedText& pair : pairs) {
        if (const auto found = values_.find(pair.key.text); found != values_.end()) {
          found->second.insert(pair.value.text);
        }
      }
    };
    const SpecializationsDraft& draft = specializations_of(parts_);
    if (draft.matrix) {
      for (const Axis& axis : *draft.matrix) {
        const auto found = values_.find(axis.key.text);
        if (found == values_.end()) continue;
        for (const Text& value : axis.values) found->second.insert(value.text);
      }
    }
    if (draft.include) {
      for (const Selection& include : *draft.include) add(include.pairs);
    }
    if (parts_.rows == nullptr) return;
    for (const TableRow& row : *parts_.rows) add(row.selection.pairs);
  }

  void check_target(const NamedText& condition, ResolvedOverride& out) {
    out.target = targets_.find(condition.value.text);
    if (out.target) return;
    faults_.error(
        condition.value.place,
        util::format("{} is none of the targets of {}", in_quotes(condition.value.text), parts_.described()),
        faults_.wants_hints() ? targets_.hint_for(condition.value.text) : "");
  }

  bool check_condition(const NamedText& condition) {
    const std::string& key = condition.key.text;
    if (keys_.find(key) == nullptr) {
      faults_.error(condition.key.place,
                    util::format("\"when\" names {}, which no specialization has", in_quotes(key)),
                    hint_for_key(key));
      return false;
    }
    const std::unordered_set<std::string_view>& values = values_[key];
    if (values.contains(condition.value.text)) return true;
    if (is_option_key(key) &&
        !check_option(*parts_.backend, option_name(key), condition.key.place, condition.value, faults_)) {
      return false;
    }
    faults_.error(condition.value.place,
                  util::format("no specialization has the value {} of {}", in_quotes(condition.value.text),
                               in_quotes(key)),
                  hint_for_value(condition.value.text, values));
    return false;
  }

  std::string hint_for_key(const std::string& key) const {
    if (!faults_.wants_hints()) return {};
    std::vector<std::string> names = keys_.sorted_names();
    names.emplace_back(kTarget);
    std::string hint = util::did_you_mean(key, names);
    return hint.empty() ? "it may name " + util::listed(names) : hint;
  }

  std::string hint_for_value(const std::string& value,
                             const std::unordered_set<std::string_view>& values) const {
    // A search through more would cost more than the hint is worth.
    constexpr size_t kMost = 1000;
    if (!faults_.wants_hints() || values.size() > kMost) return {};
    std::vector<std::string> names(values.begin(), values.end());
    std::sort(names.begin(), names.end());
    std::string hint = util::did_you_mean(value, names);
    return hint.empty() ? "it has " + util::listed(names) : hint;
  }

  void check_options(const OverrideDraft& draft) {
    if (!draft.options) return;
    for (const NamedText& pair : *draft.options) {
      const std::string& name = pair.key.text;
      if (!check_option(*parts_.backend, name, pair.key.place, pair.value, faults_)) continue;
      if (!parts_.varied_options.contains(name)) continue;
      faults_.error(
          pair.key.place,
          util::format("this override sets the option {}, which the specializations vary", in_quotes(name)),
          "a unit's name says the value that it has");
    }
  }

  KernelParts& parts_;
  const SpecializationKeys& keys_;
  const TargetFinder& targets_;
  Faults& faults_;
  std::unordered_map<std::string_view, std::unordered_set<std::string_view>> values_;
};

template <typename T>
void replace(std::optional<T>& value, const std::optional<T>& by) {
  if (by) value = by;
}

}  // namespace

void replace_limits(Limits& limits, const Limits& by) {
  replace(limits.registers, by.registers);
  replace(limits.local_memory, by.local_memory);
  replace(limits.spills, by.spills);
  replace(limits.shared_memory, by.shared_memory);
  replace(limits.code, by.code);
}

void check_limits(const LimitsDraft& limits, const BackendRules& backend, Faults& faults) {
  if (!limits.limits.spills || backend.vendor != target::Vendor::kNvidia) return;
  faults.error(limits.spills_place, "\"spills\" is AMD's count: an NVIDIA code object does not tell it",
               "use local_memory, in bytes a thread");
}

bool resolve_overrides(KernelParts& parts, const SpecializationKeys& keys, const TargetFinder& targets,
                       Faults& faults) {
  if (parts.draft->overrides.is_faulty()) return false;
  return !parts.draft->overrides ||
         OverrideCheck(parts, keys, targets, faults).check(*parts.draft->overrides);
}

void Overrides::select(const Pairs& specialization) {
  selected_.clear();
  for (uint32_t i = 0; i < parts_.overrides.size(); ++i) {
    const std::vector<const NamedText*>& conditions = parts_.overrides[i].conditions;
    const bool holds = std::all_of(conditions.begin(), conditions.end(), [&](const NamedText* condition) {
      const std::string* value = find_value(specialization, condition->key.text);
      return value != nullptr && *value == condition->value.text;
    });
    if (holds) selected_.push_back(i);
  }
}

Overrides::Effect Overrides::apply(uint32_t target) {
  Effect out;
  for (const uint32_t i : selected_) {
    if (!is_for(i, target)) continue;
    has_matched_[i] = true;
    const OverrideDraft& draft = *parts_.overrides[i].draft;
    out.skip = out.skip || draft.skip;
    if (draft.timeout) out.timeout = *draft.timeout;
    if (draft.limits) replace_limits(out.limits, draft.limits->limits);
    if (draft.options) out.options_of = &parts_.overrides[i];
  }
  return out;
}

void Overrides::set_options(uint32_t target, Pairs& options) const {
  for (const uint32_t i : selected_) {
    if (!is_for(i, target) || !parts_.overrides[i].draft->options) continue;
    for (const NamedText& pair : *parts_.overrides[i].draft->options) {
      set_option(options, pair.key.text, pair.value.text);
    }
  }
}

void Overrides::report_unmatched(Faults& faults) const {
  for (size_t i = 0; i < has_matched_.size(); ++i) {
    if (has_matched_[i]) continue;
    faults.error(parts_.overrides[i].draft->place,
                 util::format("this override matches no unit of {}", parts_.described()));
  }
}

}  // namespace kc::manifest
