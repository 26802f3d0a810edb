// Which units of a bundle the user names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "bundle/bundle.h"

namespace kc::report {

/// Whether one of `patterns` names the record: its unit, its unit without `@target`, its kernel, or a glob
/// over unit or kernel. No patterns name every record.
bool is_named(const bundle::Record& record, const std::vector<std::string>& patterns);

/// Each pattern must name a record of one of `bundles`: else ErrorKind::kInput, with the name that was
/// probably meant, of bundles with very many units one of the first. Reads as far as it must to know.
base::Result<void> check_patterns(const std::vector<std::string>& patterns,
                                  std::span<bundle::Reader* const> bundles);

}  // namespace kc::report
