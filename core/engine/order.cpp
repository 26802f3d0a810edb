#include "engine/order.h"

#include <algorithm>
#include <numeric>

#include "util/text.h"

namespace kc::engine {
namespace {

// A tileiras compile was measured at about 120 MB; a little more until this manifest's own are known.
constexpr uint64_t kAssumedPeak = 160ULL << 20;
// A job of a child compiler: its thread, the compiler, ptxas, and threads of theirs.
constexpr uint64_t kProcessesEach = 8;
// Pipes, pidfd, files of a job.
constexpr uint64_t kFilesEach = 16;
constexpr uint64_t kFilesReserved = 64;
constexpr unsigned kMaxSlots = 1024;

}  // namespace

std::vector<uint32_t> longest_first(std::span<const std::optional<double>> seconds) {
  std::vector<double> known;
  for (const std::optional<double>& s : seconds) {
    if (s) known.push_back(*s);
  }
  double median = 0;
  if (!known.empty()) {
    const auto middle = known.begin() + static_cast<ptrdiff_t>(known.size() / 2);
    std::nth_element(known.begin(), middle, known.end());
    median = *middle;
  }
  std::vector<uint32_t> order(seconds.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return seconds[a].value_or(median) > seconds[b].value_or(median);
  });
  return order;
}

Slots choose_slots(const SlotLimits& limits) {
  Slots slots;
  slots.count = std::clamp(limits.jobs.value_or(limits.cpus), 1U, kMaxSlots);
  const auto at_most = [&](uint64_t count, std::string_view what) {
    if (count >= slots.count) return;
    slots.count = static_cast<unsigned>(std::max<uint64_t>(count, 1));
    slots.why = util::format("{} for {}", what, util::counted(slots.count, "slot"));
  };
  const uint64_t peak = std::max(limits.peak_bytes, uint64_t{1});
  // An explicit -j is the user's word about memory too, unless compiles were seen to need more than there is.
  if (!limits.jobs || limits.peak_bytes != 0) {
    at_most(limits.free_bytes / (limits.peak_bytes != 0 ? peak : kAssumedPeak), "free memory is enough");
  }
  if (limits.processes_left)
    at_most(*limits.processes_left / kProcessesEach, "the process limit leaves room");
  if (limits.open_files != 0) {
    at_most((limits.open_files - std::min(limits.open_files, kFilesReserved)) / kFilesEach,
            "the open-file limit leaves room");
  }
  return slots;
}

}  // namespace kc::engine
