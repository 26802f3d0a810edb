#include "manifest/expand.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "manifest/matrix.h"
#include "manifest/names.h"
#include "manifest/template.h"

namespace kc::manifest {
namespace {

// A unit is expected to take about 1 KB; a plan of kMaxUnits may take 2 KB each. What is larger (a thousand
// values of a kilobyte in each of a million units) is no plan that somebody means.
constexpr uint64_t kMaxPlanBytes = kMaxUnits * 2048;

// Comparisons of points with excludes: about a second.
constexpr uint64_t kMaxExclusions = 200'000'000;

const SpecializationsDraft kNoSpecializations{};

const SpecializationsDraft& specializations_of(const ResolvedKernel& kernel) {
  return kernel.draft->specializations ? *kernel.draft->specializations : kNoSpecializations;
}

// More than a unit of the kernel takes.
uint64_t unit_bytes(const ResolvedKernel& kernel, const Matrix& matrix) {
  uint64_t bytes = sizeof(Unit) + kernel.sources.size() * sizeof(uint32_t) + kernel.draft->name->text.size();
  // In specialization, in config and, with up to three bytes for one, in two texts.
  bytes += 8 * matrix.largest();
  // `{key}` takes the longest value there is; a path is kept in up to four places.
  size_t longest = matrix.longest_value();
  for (const auto& [key, value] : kernel.config) longest = std::max(longest, value.size());
  const auto text_bytes = [&](const Template& text) {
    return text.text().text.size() + text.keys().size() * longest;
  };
  bytes += text_bytes(*kernel.entry);
  for (const Template& source : kernel.sources) {
    if (!source.is_literal()) bytes += 4 * text_bytes(source) + sizeof(Source);
  }
  for (const auto& pairs : {std::cref(kernel.config), std::cref(kernel.options)}) {
    for (const auto& [key, value] : pairs.get())
      bytes += sizeof(Pairs::value_type) + key.size() + value.size();
  }
  return bytes;
}

// False, and reported, when a specialization has more text than a bundle can hold. Counted before excludes:
// it takes dozens of values of a kilobyte.
bool check_specialization_text(const SpecializationsDraft& draft, Faults& faults) {
  const auto check = [&](uint64_t bytes, YamlPlace place, std::string_view what) {
    if (bytes <= kMaxSpecializationBytes) return true;
    faults.error(
        place,
        util::format("{} has {} bytes of keys and values as written in names of units; at most {} are "
                     "allowed",
                     what, bytes, kMaxSpecializationBytes),
        "fewer keys or shorter values");
    return false;
  };
  bool good = true;
  if (draft.matrix) {
    uint64_t bytes = draft.matrix->size() - 1;  // commas
    for (const Axis& axis : *draft.matrix) {
      size_t longest = 0;
      for (const Text& value : axis.values) {
        longest = std::max(longest, canonical_configuration({{axis.key.text, value.text}}).size());
      }
      bytes += longest;
    }
    good = check(bytes, draft.matrix_place, "the longest specialization of this matrix");
  }
  if (!draft.include) return good;
  for (const Selection& include : *draft.include) {
    const uint64_t bytes = canonical_configuration(sorted_pairs(include.pairs)).size();
    if (!check(bytes, include.place, "this specialization")) good = false;
  }
  return good;
}

// The value of `key` in pairs sorted by key.
const std::string* find(const Pairs& pairs, std::string_view key) {
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), key,
                                   [](const auto& pair, std::string_view name) { return pair.first < name; });
  return at != pairs.end() && at->first == key ? &at->second : nullptr;
}

// `config` with the specialization's values over it.
Pairs merged(const Pairs& config, const Pairs& specialization) {
  Pairs out = specialization;
  for (const auto& pair : config) {
    if (find(specialization, pair.first) == nullptr) out.push_back(pair);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Expands one kernel.
class Expander {
 public:
  Expander(const ResolvedKernel& kernel, SourceTable& sources, Plan& plan, Faults& faults)
      : kernel_(kernel),
        draft_(*kernel.draft),
        sources_(sources),
        plan_(plan),
        faults_(faults),
        missing_(kernel.sources.size()) {}

  void expand() {
    index_ = static_cast<uint32_t>(plan_.kernels.size() - 1);
    const SpecializationsDraft& specializations = specializations_of(kernel_);
    if (!draft_.specializations) {
      add({});
    } else {
      const uint64_t left = Matrix(specializations).visit([this](const Pairs& pairs) { add(pairs); });
      if (specializations.matrix && left == 0) {
        faults_.error(specializations.matrix_place, "the excludes leave nothing of this matrix");
      }
    }
    report_missing();
    if (specializations.default_selection) mark_default(*specializations.default_selection);
  }

 private:
  void add(const Pairs& specialization) {
    Unit unit;
    unit.kernel = index_;
    unit.specialization = specialization;
    unit.specialization_text = canonical_configuration(specialization);
    if (kernel_.backend->takes_configuration) unit.config = merged(kernel_.config, specialization);
    unit.options = kernel_.options;
    if (draft_.symbol) unit.symbol = draft_.symbol->text;
    unit.is_default = specialization.empty();
    const auto value_of = [&](const std::string& key) -> std::string_view {
      const std::string* value = find(specialization, key);
      return value != nullptr ? *value : *find(kernel_.config, key);
    };
    unit.entry = kernel_.entry->replace(value_of);
    if (!is_symbol(unit.entry)) bad_entry(unit.entry);
    unit.sources.reserve(kernel_.sources.size());
    for (size_t i = 0; i < kernel_.sources.size(); ++i) {
      const std::string path = kernel_.sources[i].replace(value_of);
      const SourceTable::Entry& entry = sources_.add(path, faults_.located(kernel_.sources[i].text().place));
      if (entry.fault.empty()) {
        unit.sources.push_back(entry.index);
      } else {
        missing_[i].emplace(path, entry.fault);
      }
    }
    for (const target::Target* target : kernel_.targets) {
      unit.target = *target;
      unit.name = unit_name(draft_.name->text, unit.specialization_text, target->text);
      plan_.units.push_back(unit);
    }
  }

  void bad_entry(const std::string& entry) {
    if (std::exchange(entry_reported_, true)) return;
    faults_.error(draft_.entry ? draft_.entry->place : draft_.place, in_quotes(entry) + " cannot be an entry",
                  "1 to 1024 bytes without blanks");
  }

  // One error for each source as written, however many files it names.
  void report_missing() {
    for (size_t i = 0; i < missing_.size(); ++i) {
      if (missing_[i].empty() || kernel_.sources[i].is_literal()) continue;  // literal ones were reported
      const auto& [path, fault] = *missing_[i].begin();
      const YamlPlace place = kernel_.sources[i].text().place;
      if (missing_[i].size() == 1) {
        faults_.error(place, fault, faults_.wants_hints() ? sources_.hint_for(path) : "");
        continue;
      }
      std::vector<std::string> names;
      for (const auto& missing : missing_[i]) names.push_back(in_quotes(missing.first));
      faults_.error(place,
                    util::format("{} of the files that {} names cannot be used: {}", names.size(),
                                 in_quotes(kernel_.sources[i].text().text), util::listed(names)),
                    fault);
    }
  }

  void mark_default(const Selection& selection) {
    // The units of one specialization stand together, one a target.
    const size_t step = kernel_.targets.size();
    std::vector<size_t> found;
    for (size_t i = first_unit_; i < plan_.units.size(); i += step) {
      const bool matches =
          std::all_of(selection.pairs.begin(), selection.pairs.end(), [&](const NamedText& pair) {
            const std::string* value = find(plan_.units[i].specialization, pair.key.text);
            return value != nullptr && *value == pair.value.text;
          });
      if (matches) found.push_back(i);
    }
    if (found.size() == 1) {
      for (size_t i = 0; i < step; ++i) plan_.units[found[0] + i].is_default = true;
    } else if (found.empty()) {
      faults_.error(selection.place, "\"default\" matches no specialization");
    } else {
      faults_.error(selection.place,
                    util::format("\"default\" matches {} specializations, among them {} and {}", found.size(),
                                 in_quotes(plan_.units[found[0]].specialization_text),
                                 in_quotes(plan_.units[found[1]].specialization_text)),
                    "name more keys");
    }
  }

  const ResolvedKernel& kernel_;
  const KernelDraft& draft_;
  SourceTable& sources_;
  Plan& plan_;
  Faults& faults_;
  std::vector<std::map<std::string, std::string>> missing_;  // a source: unusable path -> fault
  size_t first_unit_ = plan_.units.size();
  uint32_t index_ = 0;
  bool entry_reported_ = false;
};

}  // namespace

bool check_extent(const std::vector<ResolvedKernel>& kernels, Faults& faults) {
  uint64_t units = 0;
  uint64_t bytes = 0;
  uint64_t exclusions = 0;
  bool fits = true;
  for (const ResolvedKernel& kernel : kernels) {
    if (!kernel.is_good) continue;
    const SpecializationsDraft& draft = specializations_of(kernel);
    if (!check_specialization_text(draft, faults)) {
      fits = false;
      continue;
    }
    const Matrix matrix(draft);
    const YamlPlace place = draft.matrix ? draft.matrix_place : kernel.draft->place;
    const uint64_t specializations = kernel.draft->specializations ? matrix.points() + matrix.includes() : 1;
    // At most a million targets and as many bytes a unit as 8 MiB of text give: no overflow.
    const uint64_t here = std::min(specializations * kernel.targets.size(), kMaxUnits * 1'000'000);
    if (here > kMaxUnits) {
      faults.error(place,
                   util::format("the kernel {} has {}{} units; a plan may have {}",
                                in_quotes(kernel.draft->name->text),
                                matrix.points() > kMaxUnits * 1'000 ? "more than " : "", here, kMaxUnits),
                   "counted before excludes");
      return false;
    }
    units += here;
    bytes += here * unit_bytes(kernel, matrix);
    exclusions += (matrix.points() + matrix.includes()) * matrix.excludes();
    if (units > kMaxUnits) {
      faults.error(place,
                   util::format("with the kernel {} the plan has more than {} units",
                                in_quotes(kernel.draft->name->text), kMaxUnits),
                   "counted before excludes");
      return false;
    }
    if (bytes > kMaxPlanBytes) {
      faults.error(place,
                   util::format("with the kernel {} the plan would take more than {} of memory",
                                in_quotes(kernel.draft->name->text), util::size_text(kMaxPlanBytes)),
                   "fewer units, or fewer and shorter values in each");
      return false;
    }
    if (exclusions > kMaxExclusions) {
      faults.error(
          place,
          util::format(
              "with the kernel {} the excludes must be compared with more than {} points of matrices",
              in_quotes(kernel.draft->name->text), kMaxExclusions),
          "leave values out of the matrix instead");
      return false;
    }
  }
  return fits;
}

void expand(const std::vector<ResolvedKernel>& kernels, util::Nanoseconds default_timeout,
            SourceTable& sources, Plan& plan, Faults& faults) {
  for (const ResolvedKernel& kernel : kernels) {
    if (!kernel.is_good) continue;
    const KernelDraft& draft = *kernel.draft;
    Kernel out;
    out.name = draft.name->text;
    out.backend = kernel.backend->name;
    out.place = faults.located(draft.place);
    if (draft.metadata) out.metadata = *draft.metadata;
    if (draft.limits) out.limits = draft.limits->limits;
    out.timeout = draft.timeout ? *draft.timeout : default_timeout;
    plan.kernels.push_back(std::move(out));
    Expander(kernel, sources, plan, faults).expand();
  }
}

}  // namespace kc::manifest
