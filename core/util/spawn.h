// Starting a child: the part that run_process and spawn_peer share.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/files.h"
#include "util/process.h"

namespace kc::util {

/// What the child gets besides /dev/null as descriptor 0; nothing else reaches it.
struct ChildDescriptors {
  int out = -1;     // becomes 1
  int err = -1;     // becomes 2
  int socket = -1;  // becomes 3 when not -1
};

/// Starts `spec.program` as the leader of a process group of its own, with all signals at their defaults and
/// none blocked. When it returns, the program runs (exec succeeded) and its group exists.
base::Result<pid_t> spawn(const ProcessSpec& spec, const ChildDescriptors& descriptors);

/// A descriptor that becomes readable when the process ends; none when the kernel has no such thing.
base::FileDescriptor open_pidfd(pid_t pid);

/// SIGKILL to a whole group. Only while its leader is not reaped: later the number may be another's.
void kill_group(pid_t group);

}  // namespace kc::util
