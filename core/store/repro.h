// `v1/repro/<key>/`: what is kept of a failed unit for a person to look at.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "store/layout.h"

namespace kc::store {

/// More are of no use: who mends a build looks at its last failures.
inline constexpr size_t kReprosKept = 20;

/// Writes `output.txt` into the folder of `key` and removes all but the newest kReprosKept folders. Gives the
/// file's absolute path.
base::Result<std::string> write_repro(const Layout& layout, const base::Digest& key, base::ByteView output);

}  // namespace kc::store
