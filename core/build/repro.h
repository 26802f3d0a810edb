// What somebody needs to see a failed unit again. Inner to core/build.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "build/prepare.h"
#include "store/store.h"

namespace kc::build {

/// The files of unit `index` of `prepared`, which must still be there, a manifest that compiles it and it
/// alone, and what the compiler printed. `what` is how it ended, one line.
store::Repro repro_of(const Prepared& prepared, size_t index, std::string_view what, std::string_view output);

/// The command that compiles what lies in `folder` again; for a shell.
std::string repro_command(const std::string& folder);

/// Where an input lies below `inputs/`: its identifier, with `%XX` for each byte outside [A-Za-z0-9_.+-/],
/// for parts
/// `.` and `..`, and for slashes that begin it or follow another. Different identifiers have different
/// places, all of them inside, and a manifest means just that file by its path.
std::string repro_path(std::string_view identifier);

}  // namespace kc::build
