// Bundles and what differs between two as JSON (docs/json.md is the contract).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bundle/bundle.h"
#include "report/bundle_diff.h"
#include "util/json.h"

namespace kc::report {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Reads `TM=64,name=a%2Cb` into names and decoded values, in their order; empty text has none. Nothing when
/// a part has no name or one of another part, or a `%` is not followed by two hexadecimal digits.
std::optional<Pairs> parse_configuration(std::string_view text);

/// The pairs of a configuration as an object; null when they cannot be read.
util::Json config_json(std::string_view text);
/// The parts of selection data, `m=64;m=128,n=1`, as a list of objects; empty for none, null when they cannot
/// be read.
util::Json selection_json(std::string_view text);
/// Record's metadata `when`; empty for none.
std::string_view selection_of(const bundle::Record& record);

/// `event` is "bundle".
util::Json bundle_json(const bundle::Reader& reader, const Pairs& metadata,
                       const std::vector<bundle::Reader::SignatureBlock>& signatures);
/// `event` is "record"; has every field of the index.
util::Json record_json(const bundle::Record& record);

/// `event` is "bundles": both as a whole.
util::Json bundles_json(const bundle::Reader& before, const bundle::Reader& after);
/// `event` is "added", "removed" or "changed". `failed_on` are the conditions that hold for the unit.
util::Json diff_json(const UnitDiff& diff, const std::vector<std::string>& failed_on);

}  // namespace kc::report
