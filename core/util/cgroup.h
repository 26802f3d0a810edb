// What the control groups of this process leave it, version 2 or 1: the least over its group and all above.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kc::util {

/// `root` stands before `/proc` and `/sys`; only tests give one. Nothing where no group sets a limit.
/// CPU quota in whole CPUs, rounded up.
std::optional<uint64_t> cgroup_cpus(const std::string& root = {});
/// Bytes below the memory limit, page cache that can be given up at once counted as free.
std::optional<uint64_t> cgroup_memory_left(const std::string& root = {});
/// Processes and threads below the limit of the pids controller.
std::optional<uint64_t> cgroup_pids_left(const std::string& root = {});

}  // namespace kc::util
