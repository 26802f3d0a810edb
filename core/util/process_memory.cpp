#include "util/process_memory.h"

#include <fcntl.h>

#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "util/pseudo_file.h"
#include "util/text.h"

namespace kc::util {
namespace {

// A compiler starts a handful of processes; one that runs away must not make each sample slower.
constexpr size_t kMostProcesses = 256;

}  // namespace

uint64_t tree_peak_bytes(pid_t leader) {
  uint64_t sum = 0;
  std::vector<std::string> found = {std::to_string(leader)};
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string folder = "/proc/" + found[i];
    const std::string status = read_pseudo_file(folder + "/status").value_or("");
    sum += named_number(status, "VmHWM").value_or(0) * 1024;
    // A child is listed with the thread that started it.
    const base::Result<std::vector<std::string>> threads = base::list_directory(AT_FDCWD, folder + "/task");
    if (!threads) continue;
    for (const std::string& thread : *threads) {
      const std::optional<std::string> children = read_pseudo_file(folder + "/task/" + thread + "/children");
      for (const std::string& child : split(trim(children.value_or("")), ' ')) {
        if (!child.empty() && found.size() < kMostProcesses) found.push_back(child);
      }
    }
  }
  return sum;
}

}  // namespace kc::util
