// In which order misses are compiled, and how many at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kc::engine {

/// Indices of `seconds` (of earlier compiles; nothing = unknown), longest first. Unknown ones count as the
/// median of the known; equal ones keep their order.
std::vector<uint32_t> longest_first(std::span<const std::optional<double>> seconds);

/// How long small answers may wait to be heard together: `most_seconds`, or less where more than
/// `most_answers` would come in that time from `slots` compiles of `seconds` each. In whole milliseconds,
/// since poll() knows no others; 0 when so many come within one.
std::chrono::milliseconds quiet_time(uint32_t slots, double seconds, double most_seconds,
                                     double most_answers);

struct SlotLimits {
  std::optional<unsigned> jobs;  // -j
  unsigned cpus = 1;             // allowed, quota included
  uint64_t free_bytes = 0;
  uint64_t peak_bytes = 0;  // that one job was seen to need, 0 = unknown
  std::optional<uint64_t> processes_left;
  uint64_t open_files = 0;
  bool children = true;                   // a job is a program of its own; false: all compile in the engine
  std::optional<uint64_t> address_space;  // of one process, nothing = no limit
};
struct Slots {
  unsigned count = 1;
  std::string why;  // what made them fewer than asked for or than there are CPUs; empty otherwise
};
Slots choose_slots(const SlotLimits& limits);

}  // namespace kc::engine
