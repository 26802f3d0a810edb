// Where records lead, read many at a time. Inner to core/store.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "store/layout.h"

namespace kc::store {

struct Leads {
  /// Parallel to the request keys: the content key. Nothing for a record that is missing, damaged, not known
  /// (see below) or not read in time.
  std::vector<std::optional<base::Digest>> content;
  std::string unknown;  // a record that is newer or cannot be read, and why; empty when there is none
};

/// Reads and checks the records of `requests`, which are sorted, on several threads; starts none after
/// `until`.
Leads read_leads(const Layout& layout, const std::vector<base::Digest>& requests,
                 std::optional<std::chrono::steady_clock::time_point> until = std::nullopt);

}  // namespace kc::store
