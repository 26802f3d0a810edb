// What differs between two bundles, unit by unit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/compare.h"
#include "base/error.h"
#include "bundle/bundle.h"

namespace kc::report {

enum class UnitChange : uint8_t { kAdded, kRemoved, kChanged, kSame };
/// "added", "removed", "changed", "same".
std::string_view change_name(UnitChange change);

/// One thing besides the numbers that differs.
struct Difference {
  std::string_view field;  // as in the JSON of a record: `found_target`
  std::string text;        // for people; may hold text of the bundles that is not escaped
};

struct UnitDiff {
  UnitChange change = UnitChange::kSame;
  std::optional<bundle::Record> before, after;  // one of them unless added or removed
  // Of a changed unit; at least one of them is not empty.
  std::vector<artifact::Change> numbers;
  std::vector<Difference> others;  // `code_digest` among them

  /// The one there is; `after` when there are both.
  const bundle::Record& record() const { return after ? *after : *before; }
  /// `registers 96 -> 76, code 9216 -> 9088, found target sm_90 -> sm_90a`; "code differs" where code of
  /// other bytes has the same numbers; "added" or "removed". Not escaped.
  std::string text() const;
};

/// Compares what a loader and those who tune see of one unit: code, its facts, found target, symbol, default,
/// lowest driver and metadata. Which compiler made equal code, under which key, and where in the file it lies
/// makes no difference.
UnitDiff compare_records(bundle::Record before, bundle::Record after);
/// What differs in how the two were made: `compiler tileiras 13.3.1 -> tileiras 13.4.92, toolkit 13.3
/// -> 13.4`. Empty for no difference; not escaped.
std::string compiler_text(const bundle::Record& before, const bundle::Record& after);

struct DiffCounts {
  uint64_t added = 0, removed = 0, changed = 0, same = 0;
};

/// Gives every unit that `patterns` name (report/unit_filter.h), in the order of bundles, to `each`, until
/// that gives false. One pass over both indexes; of each only the record at hand is in memory. Errors are
/// those of the readers, and ErrorKind::kFailed for an index that is not sorted; `each` has then seen the
/// units before.
base::Result<DiffCounts> diff_bundles(bundle::Reader& before, bundle::Reader& after,
                                      const std::vector<std::string>& patterns,
                                      const std::function<bool(UnitDiff)>& each);

}  // namespace kc::report
