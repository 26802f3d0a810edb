#include "manifest/expand.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "manifest/configuration.h"
#include "manifest/files.h"
#include "manifest/names.h"
#include "manifest/options.h"
#include "manifest/overrides.h"
#include "manifest/specializations.h"

namespace kc::manifest {
namespace {

/// Plan::limits, of equal ones one. The first are none at all.
class LimitsTable {
 public:
  explicit LimitsTable(std::vector<Limits>& limits) : limits_(limits) { add({}); }

  uint32_t add(const Limits& limits) {
    const auto [found, is_new] = indices_.try_emplace(
        {limits.registers, limits.local_memory, limits.spills, limits.shared_memory, limits.code},
        static_cast<uint32_t>(limits_.size()));
    if (is_new) limits_.push_back(limits);
    return found->second;
  }

 private:
  std::vector<Limits>& limits_;
  std::map<std::array<std::optional<uint64_t>, 5>, uint32_t> indices_;
};

/// Expands the kernels that share their parts, one after the other.
class Expander {
 public:
  Expander(const KernelParts& parts, util::Nanoseconds default_timeout, const ResolveContext& context,
           LimitsTable& limits, Plan& plan)
      : parts_(parts),
        draft_(*parts.draft),
        context_(context),
        faults_(context.faults),
        plan_(plan),
        specializations_(parts),
        overrides_(parts),
        rules_(*parts.backend),
        config_(parts, context),
        limits_table_(limits),
        timeout_(draft_.timeout ? *draft_.timeout : default_timeout),
        missing_(parts.sources.size()) {
    if (draft_.limits) limits_ = draft_.limits->limits;
    limits_index_ = limits_table_.add(limits_);
    all_targets_.resize(parts.targets.size());
    for (uint32_t i = 0; i < all_targets_.size(); ++i) all_targets_[i] = i;
  }

  /// Checks are made with the first kernel: the others say the same.
  void expand(const ResolvedKernel& kernel) {
    if (!is_first_ && !kernel.is_good) return;
    kernel_ = &kernel;
    if (kernel.is_good) add_kernel();
    const uint64_t left = specializations_.visit([this](const Specialization& one) { add(one); });
    if (std::exchange(is_first_, false)) report(left);
  }

 private:
  void add_kernel() {
    Kernel out;
    out.name = kernel_->name;
    out.backend = parts_.backend->name;
    out.place = faults_.located(kernel_->place);
    if (draft_.metadata) out.metadata = *draft_.metadata;
    out.skip_unsupported = draft_.skip_unsupported.value.value_or(false);
    if (parts_.libraries != nullptr) {
      for (const KernelFile& file : parts_.libraries->files) out.libraries.push_back(file.index);
    }
    out.depends = parts_.depends;
    if (draft_.parameters) {
      for (const ParameterDraft& parameter : *draft_.parameters) {
        out.parameters.push_back({parameter.name.text, parameter.constant, parameter.words});
      }
    }
    plan_.kernels.push_back(std::move(out));
  }

  void add(const Specialization& specialization) {
    overrides_.select(specialization.pairs);
    Pairs options = parts_.options;
    if (!parts_.varied_options.empty()) {
      for (const auto& [key, value] : specialization.pairs) {
        if (is_option_key(key)) set_option(options, option_name(key), value);
      }
    }
    Unit unit;
    if (kernel_->is_good) unit = unit_of(specialization);
    unit.is_default = is_default(specialization);
    size_t units = 0;
    for (const uint32_t index : specialization.targets != nullptr ? *specialization.targets : all_targets_) {
      const Overrides::Effect effect = overrides_.apply(index);
      if (effect.skip) continue;
      ++units;
      unit.options = options;
      if (effect.options_of != nullptr) overrides_.set_options(index, unit.options);
      if (is_first_ && !parts_.has_one_set_of_options) {
        check_options(unit.options, options, effect, specialization, index);
      }
      if (!kernel_->is_good) continue;
      unit.target = *parts_.targets[index];
      unit.name = unit_name(kernel_->name, unit.specialization_text, unit.target.text);
      unit.timeout = effect.timeout.value_or(timeout_);
      unit.limits = limits_of(effect);
      unit.selection = selection(specialization, index);
      plan_.units.push_back(unit);
    }
    units_ += units;
    if (unit.is_default) default_units_ += units;
  }

  // All that is the same for its targets.
  Unit unit_of(const Specialization& specialization) {
    Unit unit;
    unit.kernel = static_cast<uint32_t>(plan_.kernels.size() - 1);
    unit.specialization = specialization.pairs;
    unit.specialization_text = specialization.text;
    if (draft_.symbol) unit.symbol = draft_.symbol->text;
    const auto value_of = [&](const std::string& key) -> std::string_view {
      const std::string* value = find_value(specialization.pairs, key);
      return value != nullptr ? *value : *find_value(parts_.config, key);
    };
    unit.entry = kernel_->entry->replace(value_of);
    if (!is_symbol(unit.entry)) report_entry(unit.entry);
    unit.sources.reserve(parts_.sources.size());
    std::vector<KernelFile> files;  // for keys that differ by sources
    for (size_t i = 0; i < parts_.sources.size(); ++i) {
      const KernelSource& source = parts_.sources[i];
      if (source.index) {
        unit.sources.push_back(*source.index);
      } else {
        add_source(i, source.name.path.replace(value_of), unit);
      }
      if (parts_.declares_by_sources && unit.sources.size() == i + 1) {
        const Text& text = source.name.path.text();
        files.push_back({unit.sources[i], source.name.path.replace(value_of), text.place});
      }
    }
    // Without all of the sources nobody knows what they declare.
    if (!parts_.declares_by_sources || files.size() == parts_.sources.size()) {
      unit.config = config_.make(specialization.pairs, files);
    }
    return unit;
  }

  void add_source(size_t i, const std::string& path, Unit& unit) {
    const SourceName& name = parts_.sources[i].name;
    const SourceTable::Entry& entry =
        context_.sources.add(name.base, path, faults_.located(name.path.text().place));
    if (!entry.fault.empty()) {
      missing_[i].emplace(path, entry.fault);
      return;
    }
    const uint32_t index = entry.index;
    unit.sources.push_back(index);
    if (!looked_at_.insert(index).second) return;
    check_source_is_no_library(parts_, index, {path, name.path.text().place}, faults_);
  }

  uint32_t limits_of(const Overrides::Effect& effect) {
    if (parts_.overrides.empty()) return limits_index_;
    Limits limits = limits_;
    replace_limits(limits, effect.limits);
    return limits_table_.add(limits);
  }

  std::string selection(const Specialization& specialization, uint32_t target) {
    std::string out = specializations_.selection(specialization, target);
    if (out.size() <= kMaxSelectionBytes) return out;
    if (!std::exchange(is_selection_reported_, true)) {
      faults_.error(
          specializations_of(parts_).table->place,
          util::format(
              "the columns `when.*` say more than {} bytes about one unit, {}", kMaxSelectionBytes,
              in_quotes(unit_name(kernel_->name, specialization.text, parts_.targets[target]->text))),
          "fewer rows of one specialization");
    }
    return {};
  }

  bool is_default(const Specialization& specialization) {
    const SpecializationsDraft& draft = specializations_of(parts_);
    if (!draft.default_selection) return specialization.pairs.empty();
    const std::vector<NamedText>& pairs = draft.default_selection->pairs;
    const bool matches = std::all_of(pairs.begin(), pairs.end(), [&](const NamedText& pair) {
      const std::string* value = find_value(specialization.pairs, pair.key.text);
      return value != nullptr && *value == pair.value.text;
    });
    if (matches && is_first_ && ++defaults_ <= default_texts_.size()) {
      default_texts_[defaults_ - 1] = specialization.text;
    }
    return matches;
  }

  // The rule between options, at the most specific place that brings the fault in.
  void check_options(const Pairs& options, const Pairs& specialized, const Overrides::Effect& effect,
                     const Specialization& specialization, uint32_t target) {
    const std::optional<std::string>& fault = rules_.fault_of(options);
    if (!fault) return;
    YamlPlace place = parts_.options_place;
    if (effect.options_of != nullptr && !rules_.fault_of(specialized)) {
      place = effect.options_of->draft->options_place;
    } else if (!rules_.fault_of(parts_.options)) {
      place = place_of_varied(specialization);
    }
    if (!places_of_options_.insert(place).second) return;
    faults_.error(
        place,
        util::format("{}, as in {}", *fault,
                     in_quotes(unit_name(kernel_->name, specialization.text, parts_.targets[target]->text))));
  }

  // Where the specialization sets its first option.
  YamlPlace place_of_varied(const Specialization& specialization) const {
    const SpecializationsDraft& draft = specializations_of(parts_);
    if (specialization.written == nullptr) {
      for (const Axis& axis : *draft.matrix) {
        if (is_option_key(axis.key.text)) return axis.key.place;
      }
      return draft.matrix_place;
    }
    for (const NamedText& pair : specialization.written->pairs) {
      if (is_option_key(pair.key.text)) return pair.value.place;
    }
    return specialization.written->place;
  }

  void report_entry(const std::string& entry) {
    if (std::exchange(is_entry_reported_, true)) return;
    faults_.error(draft_.entry ? draft_.entry->place : kernel_->place,
                  in_quotes(entry) + " cannot be an entry", "1 to 1024 bytes without blanks");
  }

  void report(uint64_t left_of_matrix) {
    const SpecializationsDraft& draft = specializations_of(parts_);
    const bool is_matrix_empty = draft.matrix && left_of_matrix == 0;
    if (is_matrix_empty) {
      faults_.error(draft.matrix_place, "the excludes leave nothing of this matrix");
    }
    report_missing();
    // That something matches nothing of what is left may follow from it.
    if (is_matrix_empty) return;
    overrides_.report_unmatched(faults_);
    if (units_ == 0) {
      faults_.error(draft_.place, util::format("the overrides leave no unit of {}", parts_.described()));
      return;
    }
    if (draft.default_selection && parts_.is_default_good) report_default(draft.default_selection->place);
  }

  // One error for each source as written, however many files it names.
  void report_missing() {
    for (size_t i = 0; i < missing_.size(); ++i) {
      if (missing_[i].empty()) continue;
      const auto& [path, fault] = *missing_[i].begin();
      const SourceName& name = parts_.sources[i].name;
      const Text& text = name.path.text();
      if (missing_[i].size() == 1) {
        faults_.error(text.place, fault,
                      faults_.wants_hints() ? context_.sources.hint_for(name.base, path) : "");
        continue;
      }
      std::vector<std::string> names;
      for (const auto& missing : missing_[i]) names.push_back(in_quotes(missing.first));
      faults_.error(text.place,
                    util::format("{} of the files that {} names cannot be used: {}", names.size(),
                                 in_quotes(text.text), util::listed(names)),
                    fault);
    }
  }

  void report_default(YamlPlace place) {
    if (defaults_ == 0) {
      faults_.error(place, "\"default\" matches no specialization");
    } else if (defaults_ > 1) {
      faults_.error(place,
                    util::format("\"default\" matches {} specializations, among them {} and {}", defaults_,
                                 in_quotes(default_texts_[0]), in_quotes(default_texts_[1])),
                    "name more keys");
    } else if (default_units_ == 0) {
      faults_.error(place, util::format("\"default\" is {}, of which the overrides leave no unit",
                                        in_quotes(default_texts_[0])));
    }
  }

  const KernelParts& parts_;
  const KernelDraft& draft_;
  const ResolveContext& context_;
  Faults& faults_;
  Plan& plan_;
  Specializations specializations_;
  Overrides overrides_;
  OptionRules rules_;
  UnitConfig config_;
  LimitsTable& limits_table_;
  util::Nanoseconds timeout_;
  Limits limits_;
  uint32_t limits_index_ = 0;
  std::vector<uint32_t> all_targets_;
  std::vector<std::map<std::string, std::string>> missing_;  // a source: unusable path -> fault
  std::unordered_set<uint32_t> looked_at_;                   // sources whose names come from values
  std::set<YamlPlace> places_of_options_;                    // where the rule between options is reported
  const ResolvedKernel* kernel_ = nullptr;
  bool is_first_ = true;
  size_t units_ = 0;
  size_t defaults_ = 0;  // specializations that `default` matches
  size_t default_units_ = 0;
  std::array<std::string, 2> default_texts_;
  bool is_entry_reported_ = false;
  bool is_selection_reported_ = false;
};

}  // namespace

void expand(const std::vector<ResolvedKernel>& kernels, util::Nanoseconds default_timeout,
            const ResolveContext& context, Plan& plan) {
  LimitsTable limits(plan.limits);
  std::unique_ptr<Expander> expander;
  const KernelParts* last = nullptr;
  for (const ResolvedKernel& kernel : kernels) {
    const KernelParts* parts = kernel.parts.get();
    if (!parts->can_visit) continue;
    if (parts != last) {
      expander = std::make_unique<Expander>(*parts, default_timeout, context, limits, plan);
      last = parts;
    }
    expander->expand(kernel);
  }
}

}  // namespace kc::manifest
