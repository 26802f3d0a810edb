// How kc-engine ends.
#pragma once

namespace kc::engine {

/// From now on exit(), whoever calls it, ends the process at once with its code: no handler that was
/// registered before runs. Handlers would take down what other threads are compiling with, and may hang on
/// it.
void end_at_once_on_exit();

/// Ends this process within half a second whatever its threads do, for a call before _exit() that might meet
/// a lock that a hanging compile holds.
void end_soon();

}  // namespace kc::engine
