// Installs a stand-in for Loom (hostile_loom/) as a library of its own, also as another variant.
#pragma once

#include <string>

#include "base/error.h"

namespace kc::test {

/// Copies the built library into `folder`; gives the path of the copy. A file that is there is replaced by
/// rename, as a package manager does. Another variant (one character) is another file, of another identity,
/// that makes other code from the same input. For example install_hostile_loom(KC_HOSTILE_LOOM
/// "/g4/libloomc.so", folder, '2').
base::Result<std::string> install_hostile_loom(const std::string& library, const std::string& folder,
                                               char variant = '1');

}  // namespace kc::test
