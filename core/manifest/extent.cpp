// Counts what kernels would give before anything is taken.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "manifest/expand.h"
#include "manifest/matrix.h"
#include "manifest/names.h"
#include "manifest/specializations.h"

namespace kc::manifest {
namespace {

// For each unit that a plan may have; the figures in brackets are for kMaxUnits.

// A unit is expected to take about 1 KB; one of a full plan may take 2 KB. What is larger (a thousand values
// of a kilobyte in each of a million units) is no plan that somebody means.
constexpr uint64_t kBytesPerUnit = 2048;

// Comparisons of points with excludes (about a second).
constexpr uint64_t kExclusionsPerUnit = 200;

// Of units and specializations with overrides, each of which looks up keys by name (about two seconds).
constexpr uint64_t kOverridingsPerUnit = 50;

uint64_t string_bytes(size_t size) {
  constexpr size_t kInPlace = 15;
  return size > kInPlace ? size + 1 : 0;
}

uint64_t pair_bytes(size_t key, size_t value) {
  return sizeof(Pairs::value_type) + string_bytes(key) + string_bytes(value);
}

// A pair of a specialization: in itself, in the configuration and, with up to three bytes for one, in two
// texts.
uint64_t specialized_bytes(size_t key, size_t value) {
  return 2 * (pair_bytes(key, value) + key + 3 * value + 2);
}

// As in canonical text with a comma behind it.
uint64_t canonical_bytes(const std::string& key, const std::string& value) {
  return canonical_configuration({{key, value}}).size() + 1;
}
uint64_t canonical_bytes(const std::vector<NamedText>& pairs) {
  uint64_t bytes = 0;
  for (const NamedText& pair : pairs) bytes += canonical_bytes(pair.key.text, pair.value.text);
  return bytes;
}

struct Extent {
  bool fits = true;  // false: a specialization is too large, and reported
  uint64_t specializations = 0;
  uint64_t units = 0;
  uint64_t bytes = 0;
  uint64_t exclusions = 0;
  uint64_t overridings = 0;
};

/// Of one kernel. What is not fit is reported once.
class Counter {
 public:
  Counter(const KernelParts& parts, uint64_t max_units, Faults& faults)
      : parts_(parts),
        draft_(specializations_of(parts)),
        matrix_(draft_),
        max_units_(max_units),
        faults_(faults) {}

  Extent count() {
    const uint64_t includes = draft_.include ? draft_.include->size() : 0;
    const uint64_t targets = parts_.targets.size();
    const bool is_alone = !parts_.draft->specializations;
    uint64_t restricted = 0;
    const uint64_t rows = parts_.rows == nullptr ? 0 : parts_.rows->size();
    for (uint64_t i = 0; i < rows; ++i) {
      if (parts_.row_targets[i] != KernelParts::kAllTargets) ++restricted;
    }
    out_.specializations = is_alone ? 1 : matrix_.points() + includes + rows;
    // At most a million targets: no overflow.
    out_.units = (out_.specializations - restricted) * targets + restricted;
    if (out_.units > max_units_) return out_;
    check_texts();
    count_bytes();
    out_.exclusions = (matrix_.points() + includes) * matrix_.excludes();
    out_.overridings = (out_.specializations + out_.units) * parts_.overrides.size();
    return out_;
  }

 private:
  // A bundle holds so much of one specialization. Counted before excludes: it takes dozens of values of a
  // kilobyte.
  void check_text(uint64_t bytes_and_comma, YamlPlace place, std::string_view what) {
    const uint64_t bytes = bytes_and_comma == 0 ? 0 : bytes_and_comma - 1;
    if (bytes <= kMaxSpecializationBytes) return;
    faults_.error(
        place,
        util::format("{} has {} bytes of keys and values as written in names of units; at most {} are "
                     "allowed",
                     what, bytes, kMaxSpecializationBytes),
        "fewer keys or shorter values");
    out_.fits = false;
  }

  void check_texts() {
    if (draft_.matrix) {
      uint64_t bytes = 0;
      for (const Axis& axis : *draft_.matrix) {
        uint64_t longest = 0;
        for (const Text& value : axis.values) {
          longest = std::max(longest, canonical_bytes(axis.key.text, value.text));
        }
        bytes += longest;
      }
      check_text(bytes, draft_.matrix_place, "the longest specialization of this matrix");
    }
    if (draft_.include) {
      for (const Selection& include : *draft_.include) {
        check_text(canonical_bytes(include.pairs), include.place, "this specialization");
      }
    }
    if (parts_.rows == nullptr) return;
    for (const TableRow& row : *parts_.rows) {
      check_text(canonical_bytes(row.selection.pairs), row.selection.place, "this specialization");
    }
  }

  void count_bytes() {
    const uint64_t targets = parts_.targets.size();
    if (draft_.matrix) {
      uint64_t point = 0;
      for (const Axis& axis : *draft_.matrix) {
        size_t value = 0;
        for (const Text& text : axis.values) value = std::max(value, text.text.size());
        longest_ = std::max(longest_, value);
        point += specialized_bytes(axis.key.text.size(), value);
      }
      out_.bytes += matrix_.points() * targets * point;
    }
    if (draft_.include) {
      for (const Selection& include : *draft_.include) out_.bytes += targets * bytes_of(include);
    }
    if (parts_.rows != nullptr) {
      for (size_t i = 0; i < parts_.rows->size(); ++i) {
        const TableRow& row = (*parts_.rows)[i];
        uint64_t bytes = bytes_of(row.selection);
        for (const NamedText& pair : row.when) bytes += pair.key.text.size() + 3 * pair.value.text.size() + 2;
        out_.bytes += bytes * (parts_.row_targets[i] == KernelParts::kAllTargets ? targets : 1);
      }
    }
    out_.bytes += out_.units * fixed_bytes() + kernel_bytes();
  }

  uint64_t bytes_of(const Selection& selection) {
    uint64_t bytes = 0;
    for (const NamedText& pair : selection.pairs) {
      longest_ = std::max(longest_, pair.value.text.size());
      bytes += specialized_bytes(pair.key.text.size(), pair.value.text.size());
    }
    return bytes;
  }

  // What each unit has whatever its specialization is.
  uint64_t fixed_bytes() {
    uint64_t bytes = sizeof(Unit) + parts_.sources.size() * sizeof(uint32_t);
    if (parts_.draft->name) bytes += parts_.draft->name->text.size();
    if (parts_.draft->symbol) bytes += parts_.draft->symbol->text.size();
    for (const auto& pair : parts_.options) bytes += pair_bytes(pair.first.size(), pair.second.size());
    for (const auto& pair : parts_.config) {
      longest_ = std::max(longest_, pair.second.size());
      bytes += pair_bytes(pair.first.size(), pair.second.size());
    }
    if (parts_.takes_offered && parts_.declared) {
      const auto taken = parts_.defaults->offered.take(&*parts_.declared);
      for (const auto& pair : *taken) {
        bytes += pair_bytes(pair.first.size(), pair.second.size());
      }
    } else if (parts_.takes_offered) {
      bytes += parts_.defaults->offered.bytes();
    }
    // `{key}` takes the longest value there is; a path is kept in up to four places.
    const auto text_bytes = [&](const Template& text) {
      return text.text().text.size() + text.keys().size() * longest_;
    };
    if (parts_.entry) bytes += text_bytes(*parts_.entry);
    for (const KernelSource& source : parts_.sources) {
      if (!source.name.path.is_literal()) bytes += 4 * text_bytes(source.name.path) + sizeof(Source);
    }
    return bytes;
  }

  uint64_t kernel_bytes() const {
    uint64_t files = parts_.depends.size();
    if (parts_.libraries != nullptr) files += parts_.libraries->files.size();
    uint64_t bytes = sizeof(Kernel) + files * sizeof(uint32_t);
    if (parts_.draft->metadata) {
      for (const auto& pair : *parts_.draft->metadata) {
        bytes += pair_bytes(pair.first.size(), pair.second.size());
      }
    }
    return bytes;
  }

  const KernelParts& parts_;
  const SpecializationsDraft& draft_;
  Matrix matrix_;
  uint64_t max_units_;
  Faults& faults_;
  size_t longest_ = 0;  // value
  Extent out_;
};

}  // namespace

bool check_extent(const std::vector<ResolvedKernel>& kernels, uint64_t max_units, Faults& faults) {
  const uint64_t max_bytes = max_units * kBytesPerUnit;
  const uint64_t max_exclusions = max_units * kExclusionsPerUnit;
  const uint64_t max_overridings = max_units * kOverridingsPerUnit;
  Extent all;
  Extent one;
  const KernelParts* last = nullptr;
  for (const ResolvedKernel& kernel : kernels) {
    const KernelParts& parts = *kernel.parts;
    if (!parts.can_visit) continue;
    if (&parts != last) one = Counter(parts, max_units, faults).count();
    last = &parts;
    if (!one.fits) {
      all.fits = false;
      continue;
    }
    const SpecializationsDraft& draft = specializations_of(parts);
    const YamlPlace place = draft.matrix  ? draft.matrix_place
                            : draft.table ? draft.table->place
                                          : parts.draft->place;
    const std::string name = kernel.name.empty() ? parts.described() : "the kernel " + in_quotes(kernel.name);
    const auto fail = [&](std::string message, std::string hint) {
      faults.error(place, std::move(message), std::move(hint));
      return false;
    };
    const std::string before = draft.table ? "counted before excludes, and rows as often as they are there"
                                           : "counted before excludes";
    if (one.units > max_units) {
      const bool is_uncountable = one.specializations > kMaxUnits * 1'000;
      return fail(
          util::format("{} has {}{} units; a plan may have {}", name, is_uncountable ? "more than " : "",
                       std::min(one.units, kMaxUnits * 1'000'000), max_units),
          before);
    }
    all.units += one.units;
    all.bytes += one.bytes + kernel.name.size();
    all.exclusions += one.exclusions;
    all.overridings += one.overridings;
    if (all.units > max_units) {
      return fail(util::format("with {} the plan has more than {} units", name, max_units), before);
    }
    if (all.bytes > max_bytes) {
      return fail(util::format("with {} the plan would take more than {} of memory", name,
                               util::size_text(max_bytes)),
                  "fewer units, or fewer and shorter values in each");
    }
    if (all.exclusions > max_exclusions) {
      return fail(util::format("with {} the excludes must be compared with more than {} points of matrices",
                               name, max_exclusions),
                  "leave values out of the matrix instead");
    }
    if (all.overridings > max_overridings) {
      return fail(util::format("with {} the overrides must be compared with more than {} units and "
                               "specializations",
                               name, max_overridings),
                  "fewer overrides, each for more units");
    }
  }
  return all.fits;
}

}  // namespace kc::manifest
