// The one place that knows all the others: plan -> look up -> compile -> pack.
#pragma once

#include "build/listener.h"
#include "build/options.h"
#include "util/signals.h"

namespace kc::build {

/// Builds what the options ask for and tells `listener` everything; gives kc's exit code. Signals are left to
/// the caller's `signals`, which a build looks at between units: 128 + n then.
int build(const Options& options, Listener& listener, util::SignalWatch& signals);

/// Plans only: each unit with its key, and whether the store holds its code (kHit) or the answer that there
/// is none and need be none (kSkipped), or not (kPending); kFailed when a look at its sources shows that it
/// cannot be compiled. Compiles nothing.
int plan(const Options& options, Listener& listener);

}  // namespace kc::build
