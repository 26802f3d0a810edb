// What this process may use.
#pragma once

#include <cstdint>
#include <optional>

namespace kc::util {

/// min(CPUs in the affinity mask, cgroup v2 or v1 CPU quota rounded up), at least 1.
unsigned allowed_cpus();
/// Bytes that can be taken without swapping: min(MemAvailable, what the memory cgroup leaves).
uint64_t available_memory();
/// How many more processes (threads count) RLIMIT_NPROC leaves this user; nothing when unlimited or root.
std::optional<uint64_t> processes_left();
/// Soft RLIMIT_NOFILE, after raising it to the hard one.
uint64_t open_files_limit();

}  // namespace kc::util
