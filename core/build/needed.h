// What a manifest or a bundle needs of a store: for pins, `kc gc --keep` and `kc store export -f`.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "base/error.h"
#include "build/listener.h"
#include "build/options.h"
#include "store/roots.h"
#include "store/store.h"

namespace kc::build {

struct Needed {
  store::KeySet keys;
  uint64_t units = 0;
  uint64_t without_record = 0;  // units with two keys whose content key nobody knows yet: their request key
                                // alone is in `keys`
};

/// Plans `options.manifest` and computes the keys of all units that its filters leave; records of `store`,
/// which may be null, lead from request keys to content keys. Compiles nothing. Errors go to `listener`; the
/// returned kind is that of the worst (kEnvironment when a key cannot be computed).
std::expected<Needed, base::ErrorKind> needed_by_manifest(const Options& options, store::Store* store,
                                                          Listener& listener);

/// The content keys of a bundle, and the request keys of those records in the store at `root` that lead to
/// one of them. ErrorKind::kFailed or kInput as bundle::Reader.
base::Result<Needed> needed_by_bundle(const std::string& path, const std::string& root);

}  // namespace kc::build
