// What of two code objects for the same unit people compare: size, registers, memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"

namespace kc::artifact {

enum class Metric : uint8_t { kRegisters, kLocalMemory, kSpills, kSharedMemory, kCode };
inline constexpr Metric kMetrics[] = {Metric::kRegisters, Metric::kLocalMemory, Metric::kSpills,
                                      Metric::kSharedMemory, Metric::kCode};

/// As in a manifest's limits, JSON and options: `local_memory`.
std::string_view metric_name(Metric metric);
std::optional<Metric> find_metric(std::string_view name);

/// One number for each metric; unset = the code object does not tell (spills of a cubin).
struct Numbers {
  std::optional<uint64_t> registers, local_memory, spills, shared_memory, code;

  std::optional<uint64_t> of(Metric metric) const;
  bool operator==(const Numbers&) const = default;
};
Numbers numbers_of(const KernelFacts& facts, uint64_t code_bytes);

struct Change {
  Metric metric = Metric::kRegisters;
  uint64_t before = 0;
  uint64_t after = 0;
};
/// The metrics that both have and that differ, in the order of kMetrics.
std::vector<Change> changes(const Numbers& before, const Numbers& after);
/// `registers 96 -> 128, local memory 0 -> 48`; empty for none.
std::string text_of(const std::vector<Change>& changes);

}  // namespace kc::artifact
