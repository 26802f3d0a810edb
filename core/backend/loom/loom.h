// The describing half of the Loom backend: what backend.h asks of it, and what its running half shares.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/search_tools.h"
#include "base/bytes.h"
#include "base/error.h"

namespace kc::backend::loom {

inline constexpr std::string_view kName = "loom";
inline constexpr std::string_view kInstallHint =
    "set KC_LOOM_LIBRARY to libloomc.so, install the Python package hrx_loom into the active environment, or "
    "put the library into the system's library path";

Description description();

/// A source called so is Loom bytecode, any other is Loom text.
bool is_bytecode(std::string_view name);

/// That text is UTF-8 outside its comments, that what it exports and declares has names that a manifest can
/// say, and that bytecode begins as bytecode does. Whether it is Loom is the compiler's to say.
/// ErrorKind::kInput, with line and column.
base::Result<void> check_source(std::string_view name, base::ByteView bytes);

/// Looks in the places of docs/loom.md and takes the first library that can be loaded here. A variable that
/// names it (KC_LOOM_LIBRARY, HRX_LOOM_LIBRARY) is obeyed or an error, never passed over. `earlier` may be
/// null: see find_compiler.
base::Result<Compiler> find(const SearchVariables& variables, const KnownDigest& known,
                            std::vector<SearchStep>* steps, const Compiler* earlier);

// Roles of the files of an identity. Those that a name follows tell files of one part from each other.
inline constexpr std::string_view kLibraryRole = "libloomc";
inline constexpr std::string_view kBesideRole = "beside:";  // in the library's folder
inline constexpr std::string_view kAboveRole = "above:";    // in the folder above
inline constexpr std::string_view kNeededRole =
    "needed:";                                         // DT_NEEDED of the library, or of another such file
inline constexpr std::string_view kLibmRole = "libm";  // its digest is over its build id

/// All files whose content decides what the resolved `library` does: itself; every `libloom*.so*` in its
/// folder and the one above; what these need, without the system's own runtime; the host's libm, which folds
/// constants. ErrorKind::kEnvironment when the library needs what is not there.
base::Result<std::vector<Component>> components_of(const std::string& library);

/// Belongs to the C and C++ runtime, whose identity is not kc's to keep (libm's is): `libc.so.6`.
bool is_system_library(std::string_view file_name);

}  // namespace kc::backend::loom
