// Entries and records of the store as JSON (docs/json.md is the contract).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "store/listing.h"
#include "store/store.h"
#include "util/json.h"

namespace kc::report {

/// The part of a unit's name that is its kernel's.
std::string kernel_of(const std::string& unit);

/// `event` is "entry", of what its header says.
util::Json entry_json(const store::Listed& listed, const store::EntryHeader& header);

/// A record that leads to an entry: its request key and its unit.
using LeadingRecord = std::pair<base::Digest, std::string>;
/// The same with all that a whole entry tells.
util::Json whole_entry_json(const store::Listed& listed, const store::EntryHeader& header,
                            const store::Entry& entry, const std::vector<LeadingRecord>& records);

/// `event` is "record". `has_entry`: what it leads to is there.
util::Json stored_record_json(const store::Listed& listed, const store::Record& record, bool has_entry);

}  // namespace kc::report
