#include "manifest/resolve.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "manifest/configuration.h"
#include "manifest/entries.h"
#include "manifest/files.h"
#include "manifest/options.h"
#include "manifest/overrides.h"
#include "manifest/specializations.h"
#include "manifest/targets.h"

namespace kc::manifest {
namespace {

// Cells with which tables are refused for their memory in any case; going through those of kMaxUnits takes
// about ten seconds.
constexpr uint64_t kCellsPerUnit = 30;

class Resolver {
 public:
  Resolver(const KernelDraft& draft, const FileDefaults& defaults, const ResolveContext& context)
      : draft_(draft), defaults_(defaults), context_(context), faults_(context.faults) {
    if (defaults.index == nullptr) defaults.index = std::make_shared<DefaultsIndex>(defaults);
    parts_.draft = &draft;
    parts_.defaults = defaults.index;
    parts_.are_defaults_good = !defaults.is_faulty;
  }

  std::shared_ptr<const KernelParts> resolve() {
    const size_t before = faults_.count();
    resolve_sources(parts_, defaults_, context_);
    resolve_entry();
    if (parts_.backend != nullptr) {
      resolve_further_files(parts_, defaults_, context_);
      resolve_options(parts_, context_);
      if (draft_.limits) check_limits(*draft_.limits, *parts_.backend, faults_);
      resolve_targets(parts_, defaults_, context_);
      count_targets();
      check_parameters();
    }
    if (!draft_.specializations.is_faulty() && find_rows()) resolve_specializations();
    if (parts_.backend != nullptr) check_rule_of_options();
    parts_.is_good = !draft_.is_faulty && faults_.count() == before && parts_.can_visit &&
                     parts_.are_sources_good && parts_.are_libraries_good;
    return std::make_shared<KernelParts>(std::move(parts_));
  }

 private:
  void resolve_entry() {
    if (draft_.entries.written) return;
    if (draft_.entry) {
      parts_.entry = Template::parse(*draft_.entry, "\"entry\"", faults_);
    } else if (!draft_.entry.written && draft_.name) {
      parts_.entry = Template::parse(*draft_.name, "\"entry\"", faults_);
    }
  }

  void check_parameters() {
    const BackendRules& backend = *parts_.backend;
    if (backend.takes_parameters && !draft_.parameters.written) {
      faults_.error(draft_.place,
                    util::format("{} lacks \"parameters\", which {} needs", parts_.described(), backend.name),
                    "list the parameters of its function in their order");
    } else if (!backend.takes_parameters && draft_.parameters) {
      faults_.error(draft_.parameters_place,
                    util::format("kernels for {} have no \"parameters\"", backend.name));
    }
  }

  // False when the rows of its table are not known.
  bool find_rows() {
    if (!draft_.specializations || !draft_.specializations->table) return true;
    const Text& table = *draft_.specializations->table;
    parts_.rows = context_.tables.rows(table, defaults_.base, context_.sources.allow_absolute());
    if (parts_.rows == nullptr) return false;
    // A long table that many kernels name is not gone through for each when check_extent() will refuse the
    // kernels before: a row is a unit at least, and a cell takes memory in it.
    ResolveState& state = *context_.state;
    if (state.rows > context_.max_units || state.cells > context_.max_units * kCellsPerUnit) return false;
    state.rows += parts_.rows->size();
    for (const TableRow& row : *parts_.rows) state.cells += row.selection.pairs.size();
    return true;
  }

  // Likewise of a long list of targets, each of which is a unit at least.
  void count_targets() {
    if (context_.state->targets > context_.max_units) parts_.targets = {};
    context_.state->targets += parts_.targets.size();
  }

  void resolve_specializations() {
    const SpecializationKeys keys(parts_);
    if (parts_.backend != nullptr) check_varied_options(parts_, context_);
    check_configuration(parts_, keys, context_);
    // Empty when they are not known, which was reported.
    if (parts_.targets.empty()) return;
    const TargetFinder finder(parts_.targets);
    const bool rows_good = resolve_row_targets(parts_, finder, faults_);
    const bool overrides_good = resolve_overrides(parts_, keys, finder, faults_);
    parts_.can_visit = rows_good && overrides_good && parts_.are_options_good && !draft_.config.is_faulty();
  }

  // When specializations or overrides set options too, the rule is checked of what they make (expand.cpp).
  void check_rule_of_options() {
    if (!parts_.are_options_good || draft_.overrides.is_faulty() || !parts_.varied_options.empty()) return;
    if (draft_.overrides) {
      for (const OverrideDraft& override : *draft_.overrides) {
        if (override.options) return;
      }
    }
    parts_.has_one_set_of_options = true;
    const std::optional<std::string> fault = OptionRules(*parts_.backend).fault_of(parts_.options);
    if (fault) faults_.error(parts_.options_place, *fault);
  }

  const KernelDraft& draft_;
  const FileDefaults& defaults_;
  const ResolveContext& context_;
  Faults& faults_;
  KernelParts parts_;
};

}  // namespace

std::string KernelParts::described() const {
  return draft->name ? "the kernel " + in_quotes(draft->name->text) : std::string("this kernel");
}

std::vector<ResolvedKernel> resolve_kernel(const KernelDraft& draft, const FileDefaults& defaults,
                                           const ResolveContext& context) {
  const std::shared_ptr<const KernelParts> parts = Resolver(draft, defaults, context).resolve();
  std::vector<ResolvedKernel> out;
  if (draft.entries) out = resolve_entries(parts, context);
  // Of too many nothing more is said.
  if (!out.empty() || context.state->kernels > context.max_units) return out;
  ResolvedKernel kernel;
  kernel.place = draft.place;
  kernel.parts = parts;
  if (!draft.entries.written) {
    if (draft.name) kernel.name = draft.name->text;
    kernel.entry = parts->entry;
    kernel.is_good = parts->is_good;
  }
  out.push_back(std::move(kernel));
  return out;
}

void report_names_twice(const std::vector<ResolvedKernel>& kernels, Faults& faults) {
  std::unordered_map<std::string_view, YamlPlace> first;
  first.reserve(kernels.size());
  for (const ResolvedKernel& kernel : kernels) {
    if (kernel.name.empty()) continue;
    const auto [found, is_new] = first.try_emplace(kernel.name, kernel.place);
    if (is_new) continue;
    faults.error(kernel.place, util::format("two kernels are named {}; the first is at {}",
                                            in_quotes(kernel.name), faults.located(found->second).text()));
  }
}

}  // namespace kc::manifest
