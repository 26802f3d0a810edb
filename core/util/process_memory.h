// How much memory a child and what it started take.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace kc::util {

/// Sum of the resident peaks (VmHWM, bytes) of `leader` and its living descendants; 0 when none can be read.
uint64_t tree_peak_bytes(pid_t leader);

}  // namespace kc::util
