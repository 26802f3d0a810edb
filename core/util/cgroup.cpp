#include "util/cgroup.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "util/pseudo_file.h"
#include "util/text.h"

namespace kc::util {
namespace {

using Limit = std::optional<uint64_t>;

Limit least(Limit a, Limit b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// A number alone in a file; `max` (version 2: no limit) is nothing.
Limit number_in(const std::string& path) {
  const std::optional<std::string> text = read_pseudo_file(path);
  return text ? parse_number(trim(*text), 0, UINT64_MAX) : std::nullopt;
}

Limit difference(Limit limit, Limit used) {
  if (!limit) return std::nullopt;
  return *limit - std::min(*limit, used.value_or(0));
}

// One mounted hierarchy and this process's place in it.
struct Hierarchy {
  std::string mount;
  std::string path;  // `/` or `/a/b`
  bool version2 = false;
};

// Mount points are the usual ones (systemd, Docker, Podman, Kubernetes), not looked up: a system that has
// them elsewhere gets no limit from here.
std::vector<Hierarchy> hierarchies(const std::string& root, std::string_view controller) {
  std::vector<Hierarchy> found;
  const std::optional<std::string> text = read_pseudo_file(root + "/proc/self/cgroup");
  for (const std::string& line : split(text.value_or(""), '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    const std::string base = root + "/sys/fs/cgroup";
    if (names.empty()) {
      found.push_back({base, path, true});
      found.push_back({base + "/unified", path, true});
      continue;
    }
    const std::vector<std::string> list = split(names, ',');
    if (std::find(list.begin(), list.end(), controller) == list.end()) continue;
    found.push_back({base + "/" + std::string(controller), path, false});
    if (list.size() > 1) found.push_back({base + "/" + names, path, false});
  }
  return found;
}

// The least that `read` says of a group, from this process's own up to the root of each hierarchy. In a
// container the path may be that on the host, of which only the root exists here: what is missing is skipped.
Limit least_over_groups(const std::string& root, std::string_view controller,
                        const std::function<Limit(const std::string& group, bool version2)>& read) {
  Limit result;
  for (const Hierarchy& hierarchy : hierarchies(root, controller)) {
    std::string path = hierarchy.path;
    for (;;) {
      result =
          least(result, read(path == "/" ? hierarchy.mount : hierarchy.mount + path, hierarchy.version2));
      if (path.size() <= 1 || !path.starts_with('/')) break;
      path = base::parent_path(path);
    }
  }
  return result;
}

Limit quota_cpus(std::optional<uint64_t> quota, std::optional<uint64_t> period) {
  if (!quota || !period || *period == 0) return std::nullopt;
  return std::max<uint64_t>(1, *quota / *period + (*quota % *period == 0 ? 0 : 1));
}

}  // namespace

std::optional<uint64_t> cgroup_cpus(const std::string& root) {
  return least_over_groups(root, "cpu", [](const std::string& group, bool version2) -> Limit {
    // Version 1 says -1 for no limit, which is no number here.
    if (!version2)
      return quota_cpus(number_in(group + "/cpu.cfs_quota_us"), number_in(group + "/cpu.cfs_period_us"));
    const std::optional<std::string> text = read_pseudo_file(group + "/cpu.max");  // `QUOTA PERIOD`
    if (!text) return std::nullopt;
    const std::vector<std::string> parts = split(trim(*text), ' ');
    if (parts.size() != 2) return std::nullopt;
    return quota_cpus(parse_number(parts[0], 0, UINT64_MAX), parse_number(parts[1], 0, UINT64_MAX));
  });
}

std::optional<uint64_t> cgroup_memory_left(const std::string& root) {
  return least_over_groups(root, "memory", [](const std::string& group, bool version2) -> Limit {
    const Limit limit = version2 ? least(number_in(group + "/memory.max"), number_in(group + "/memory.high"))
                                 : number_in(group + "/memory.limit_in_bytes");
    if (!limit) return std::nullopt;
    const Limit used = number_in(group + (version2 ? "/memory.current" : "/memory.usage_in_bytes"));
    const std::string statistics = read_pseudo_file(group + "/memory.stat").value_or("");
    const Limit cache = named_number(statistics, version2 ? "inactive_file" : "total_inactive_file");
    return difference(limit, difference(used, cache));
  });
}

std::optional<uint64_t> cgroup_pids_left(const std::string& root) {
  return least_over_groups(root, "pids", [](const std::string& group, bool) {
    return difference(number_in(group + "/pids.max"), number_in(group + "/pids.current"));
  });
}

}  // namespace kc::util
