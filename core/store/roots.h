// Pins: named sets of keys that no collection takes (docs/store-format.md: Pin).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/digest.h"
#include "base/error.h"

namespace kc::store {

/// Keys of entries (content keys) and of records (request keys).
struct KeySet {
  std::unordered_set<base::Digest> entries;
  std::unordered_set<base::Digest> records;

  void add(const KeySet& other);
};

struct Pin {
  std::string name;
  std::string source;  // what it was made from, as the user wrote it: for people
  int64_t time_s = 0;  // when, since the epoch
  KeySet keys;
};

/// Letters, digits, `.`, `_` and `-`, at most 64, the first a letter or digit.
bool is_pin_name(std::string_view name);
/// ErrorKind::kInput for another name.
base::Result<void> check_pin_name(std::string_view name);

/// Puts or replaces a pin; the store is made when it is missing. No collection that has not seen it removes
/// anything after this returned: one that runs is waited for, half a minute at most. ErrorKind::kInput for a
/// name that is none and for more keys than a pin may hold, kEnvironment when it cannot be written.
base::Result<void> write_pin(const std::string& root, const Pin& pin);
/// False when there is none of this name. One that is damaged goes too.
base::Result<bool> remove_pin(const std::string& root, const std::string& name);
/// All pins, sorted by name. A pin that cannot be read, is damaged or of a newer version is an error
/// (ErrorKind::kEnvironment): what it keeps is not known, so nothing may be removed.
base::Result<std::vector<Pin>> read_pins(const std::string& root);
/// The names alone, also of pins that cannot be read.
base::Result<std::vector<std::string>> pin_names(const std::string& root);

/// What a store has of some keys now, and of the entries that their records lead to.
struct Holding {
  uint64_t entries = 0, records = 0;
  uint64_t bytes = 0;    // of both, allocated
  uint64_t missing = 0;  // entries and records that are not there
};
base::Result<Holding> holding(const std::string& root, const KeySet& keys);

/// The request keys of the store's records that lead to one of `entries`. ErrorKind::kEnvironment when a
/// folder or a record cannot be read.
base::Result<std::unordered_set<base::Digest>> records_leading_to(
    const std::string& root, const std::unordered_set<base::Digest>& entries);

}  // namespace kc::store
