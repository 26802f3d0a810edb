// What this process may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kc::util {

/// min(CPUs in the affinity mask, cgroup v2 or v1 CPU quota rounded up), at least 1.
unsigned allowed_cpus();
/// Bytes that can be taken without swapping: min(MemAvailable, what the memory cgroup leaves). The largest
/// number when neither is known.
uint64_t available_memory();
/// How many more processes (threads count) can be started: what RLIMIT_NPROC leaves this user (no limit for
/// root) and what the pids cgroup leaves; nothing when neither limits.
std::optional<uint64_t> processes_left();
/// Soft RLIMIT_NOFILE, after raising it to the hard one. 0 when the kernel does not say.
uint64_t open_files_limit();

/// How many threads with stacks of `stack_bytes` there is room for now, at most `wanted`: as many are made,
/// all at once, and end again.
unsigned room_for_threads(unsigned wanted, size_t stack_bytes);
/// Soft RLIMIT_AS, which a child process begins with too; nothing when there is none.
std::optional<uint64_t> address_space_limit();

}  // namespace kc::util
