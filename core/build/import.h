// Entries and records from an archive into a store: `kc store import`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "build/trust.h"
#include "store/store.h"

namespace kc::build {

struct ImportReport {
  std::string signer;                                 // the trusted key that signed it; empty: none
  uint64_t entries = 0, records = 0;                  // put
  uint64_t entries_there = 0, records_there = 0;      // were in the store and stay
  uint64_t entries_refused = 0, records_refused = 0;  // damaged, newer or too large
};

/// `options` are those of a store that is written. First the whole archive is read and its signature checked
/// against `trust`; without a trusted one nothing is imported. Then each item is checked by itself and put,
/// with the archive's signer as its origin. `refused` is told of each that is not. What is in the store
/// already stays, unless nobody trusted signed it and somebody signed this archive. ErrorKind::kFailed: no
/// archive, a damaged one, not trusted, or it changed while it was read; kEnvironment: the store cannot be
/// written (what was put until then stays).
base::Result<ImportReport> import_archive(const std::string& path, const Trust& trust,
                                          const store::Options& options,
                                          const std::function<void(const base::Error&)>& refused);

}  // namespace kc::build
