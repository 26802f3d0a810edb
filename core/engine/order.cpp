#include "engine/order.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "util/text.h"

namespace kc::engine {
namespace {

// What a job takes of the machine.
struct Needs {
  uint64_t peak;       // bytes, until this manifest's own are known
  uint64_t processes;  // and threads
  uint64_t files;
};
// A tileiras compile was measured at about 120 MB. Its thread, the compiler, ptxas, and threads of theirs.
// Pipes, pidfd, files of the job.
constexpr Needs kOfChild{160ULL << 20, 8, 16};
// A Loom compile was measured at 40 MB at most. Its thread; a second one where it runs alone, in an engine of
// its own. A library may open a file.
constexpr Needs kInProcess{40ULL << 20, 2, 2};

// Address space of a compiling thread besides what it compiles: its stack (executor.h: 8 MiB) and the heap
// that glibc reserves for it (64 MiB, found in a piece of twice that).
constexpr uint64_t kAddressEach = (8ULL + 128) << 20;
// Of an engine before its first thread, with a compiler's library loaded.
constexpr uint64_t kAddressReserved = 192ULL << 20;
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

std::chrono::milliseconds quiet_time(uint32_t slots, double seconds, double most_seconds,
                                     double most_answers) {
  return std::chrono::floor<std::chrono::milliseconds>(
      std::chrono::duration<double>(std::min(most_seconds, most_answers * seconds / slots)));
}

Slots choose_slots(const SlotLimits& limits) {
  Slots slots;
  slots.count = std::clamp(limits.jobs.value_or(limits.cpus), 1U, kMaxSlots);
  const auto at_most = [&](uint64_t count, std::string_view what) {
    if (count >= slots.count) return;
    slots.count = static_cast<unsigned>(std::max<uint64_t>(count, 1));
    slots.why = util::format("{} for {}", what, util::counted(slots.count, "slot"));
  };
  const Needs& needs = limits.children ? kOfChild : kInProcess;
  const uint64_t peak = limits.peak_bytes != 0 ? limits.peak_bytes : needs.peak;
  // An explicit -j is the user's word about memory too, unless compiles were seen to need more than there is.
  if (!limits.jobs || limits.peak_bytes != 0) {
    at_most(limits.free_bytes / peak, "free memory is enough");
  }
  if (limits.processes_left)
    at_most(*limits.processes_left / needs.processes, "the process limit leaves room");
  if (limits.open_files != 0) {
    at_most((limits.open_files - std::min(limits.open_files, kFilesReserved)) / needs.files,
            "the open-file limit leaves room");
  }
  if (limits.address_space) {
    const uint64_t left = *limits.address_space - std::min(*limits.address_space, kAddressReserved);
    at_most(left / (kAddressEach + (limits.children ? 0 : peak)), "the address-space limit leaves room");
  }
  return slots;
}

}  // namespace kc::engine
