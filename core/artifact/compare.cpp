#include "artifact/compare.h"

namespace kc::artifact {

std::string_view metric_name(Metric metric) {
  switch (metric) {
    case Metric::kRegisters:
      return "registers";
    case Metric::kLocalMemory:
      return "local_memory";
    case Metric::kSpills:
      return "spills";
    case Metric::kSharedMemory:
      return "shared_memory";
    case Metric::kCode:
      return "code";
  }
  return "code";
}

std::optional<Metric> find_metric(std::string_view name) {
  for (const Metric metric : kMetrics) {
    if (metric_name(metric) == name) return metric;
  }
  return std::nullopt;
}

std::optional<uint64_t> Numbers::of(Metric metric) const {
  switch (metric) {
    case Metric::kRegisters:
      return registers;
    case Metric::kLocalMemory:
      return local_memory;
    case Metric::kSpills:
      return spills;
    case Metric::kSharedMemory:
      return shared_memory;
    case Metric::kCode:
      return code;
  }
  return std::nullopt;
}

Numbers numbers_of(const KernelFacts& facts, uint64_t code_bytes) {
  return {facts.registers, facts.local_memory, facts.spills, facts.shared_memory, code_bytes};
}

std::vector<Change> changes(const Numbers& before, const Numbers& after) {
  std::vector<Change> out;
  for (const Metric metric : kMetrics) {
    const std::optional<uint64_t> a = before.of(metric);
    const std::optional<uint64_t> b = after.of(metric);
    if (a && b && *a != *b) out.push_back({metric, *a, *b});
  }
  return out;
}

std::string text_of(const std::vector<Change>& changes) {
  std::string out;
  for (const Change& change : changes) {
    if (!out.empty()) out += ", ";
    for (const char c : metric_name(change.metric)) out += c == '_' ? ' ' : c;
    out += ' ' + std::to_string(change.before) + " -> " + std::to_string(change.after);
  }
  return out;
}

}  // namespace kc::artifact
