// Which entries and records of a store the user names: by key, by the start of a key, or by unit.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "store/listing.h"

namespace kc::cli {

/// Keys in order, so that what is done with them is done in the same order each time.
struct StoredNames {
  std::set<base::Digest> entries, records;
  std::set<base::Digest> records_by_key;  // of `records` those that a key named
  uint64_t damaged = 0;                   // files whose unit cannot be told, when a unit was asked for
};

/// Each of `names` is a key or at least 6 of its first digits, which must be of one file only, or a unit, a
/// kernel or a glob. One that names nothing is ErrorKind::kInput with the name that was probably meant.
base::Result<StoredNames> find_stored(const store::Listing& listing, const std::vector<std::string>& names);

/// Finds out which of several patterns name nothing, and what was probably meant.
class PatternCheck {
 public:
  explicit PatternCheck(const std::vector<std::string>& patterns)
      : patterns_(patterns), used_(patterns.size()), best_(patterns.size()) {}

  /// Whether one of them names the unit; none at all name every unit.
  bool is_named(const std::string& unit);
  /// ErrorKind::kInput for the first that named nothing so far.
  base::Result<void> finish() const;

 private:
  const std::vector<std::string>& patterns_;
  std::vector<bool> used_;
  std::vector<std::string> best_;  // the nearest name so far
  uint64_t steps_ = 0;             // of work for hints
};

}  // namespace kc::cli
