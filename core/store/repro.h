// `v1/repro/<key>/`: what is kept of a failed unit for a person to look at.
#pragma once

#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/error.h"
#include "store/layout.h"
#include "store/store.h"

namespace kc::store {

/// More are of no use: who mends a build looks at its last failures.
inline constexpr size_t kReprosKept = 20;
inline constexpr const char* kReproOutput = "output.txt";

/// Writes the parts of `repro` that are not empty into the folder of `key`, in place of what is there, and
/// removes all but the newest kReprosKept folders. Gives the folder's absolute path. ErrorKind::kInternal,
/// and nothing is written, when an input would lie outside the folder.
base::Result<std::string> write_repro(const Layout& layout, const base::Digest& key, const Repro& repro);

/// Whether `path` is relative, without empty parts, `.` and `..`: it leads to a file below wherever it
/// starts.
bool is_inner_path(std::string_view path);

}  // namespace kc::store
