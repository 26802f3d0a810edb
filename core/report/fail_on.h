// The conditions of `kc diff --fail-on`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "artifact/compare.h"
#include "base/error.h"
#include "report/bundle_diff.h"

namespace kc::report {

/// `registers`, `registers+8`, `code+10%`, `local_memory-64KiB`, `added`, `removed` or `changed`.
struct Condition {
  std::string text;                         // as written
  UnitChange event = UnitChange::kChanged;  // kAdded, kRemoved or kChanged; of conditions without a metric
  std::optional<artifact::Metric> metric;
  bool is_decrease = false;
  bool is_percent = false;
  uint64_t allowed = 0;  // the most that the metric may change by; percent are of the number before

  /// Why it holds for a unit, not escaped (`registers 96 -> 128`); nothing when it does not. One of a metric
  /// holds only when both bundles know the number.
  std::optional<std::string> held_by(const UnitDiff& diff) const;
  /// Whether the unit is in both bundles, and both know the number. Precondition: it has a metric.
  bool can_compare(const UnitDiff& diff) const;
};

/// ErrorKind::kInput for a text that is no condition.
base::Result<Condition> parse_condition(std::string_view text);

}  // namespace kc::report
