// Paths that manifests, lists and tables write: relative to the file that names them.
#pragma once

#include <string>
#include <string_view>

namespace kc::manifest {

/// `a/./b/../c` -> `a/c`, without looking at the disk; leading `..` of a relative path stay.
std::string normal_path(std::string_view path);

/// What a file is called: `path`, written in a file whose folder is `base`, lexically normal and relative to
/// the top manifest's folder; an absolute one stays absolute. `base` is relative to the top manifest's folder
/// (may be empty) or absolute.
std::string identifier_of(std::string_view base, std::string_view path);

/// The base of what the file of this identifier names.
std::string base_of(std::string_view identifier);

/// The path as opened; `folder` is the top manifest's, as opened.
std::string opened_path(const std::string& folder, const std::string& identifier);

/// Behind "... is an absolute path": what allows them.
inline constexpr std::string_view kAbsoluteNeeds =
    "absolute paths need `allow_absolute_paths: true` in the top manifest";

/// Why something cannot be named so by a file in which absolute paths are allowed or not; empty when it can.
/// `what` is `the source`, `the table`...
std::string path_fault(std::string_view what, std::string_view path, bool allow_absolute);

/// A hint about a file that is not there, by its path as opened: the nearest name in its folder, or that
/// there is no such folder; may be empty.
std::string hint_for_missing(const std::string& opened);

}  // namespace kc::manifest
