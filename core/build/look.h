// A look at the sources of chosen units before anything is keyed or compiled. Inner to core/build.
#pragma once

#include "build/prepare.h"

namespace kc::build {

/// Sets ChosenUnit::refused where a look at a unit's files shows that no compiler could take it: a file that
/// is not what its name says, an entry that is not there. What a look cannot tell is left to the compiler,
/// whose own diagnostics say more.
void look_at_sources(Prepared& prepared);

}  // namespace kc::build
