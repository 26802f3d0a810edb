// Processes that tests look for.
#pragma once

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "util/text.h"

namespace kc::test {

// The start of a file of /proc; empty when its process has ended, which streams would throw for.
inline std::string proc_text(pid_t pid, std::string_view name) {
  const base::FileDescriptor fd(::open(util::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string out(16 << 10, '\0');
  const ssize_t got = fd ? ::read(fd.get(), out.data(), out.size()) : 0;
  out.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return out;
}

// Processes for which `wanted` holds, given their number and command line (empty for one that has ended).
inline std::vector<pid_t> processes(const std::function<bool(pid_t, const std::string&)>& wanted) {
  std::vector<pid_t> out;
  DIR* proc = opendir("/proc");
  REQUIRE(proc != nullptr);
  while (const dirent* entry = readdir(proc)) {
    const auto number = util::parse_number(entry->d_name, 1, INT32_MAX);
    if (!number) continue;
    const auto pid = static_cast<pid_t>(*number);
    if (wanted(pid, proc_text(pid, "cmdline"))) out.push_back(pid);
  }
  closedir(proc);
  return out;
}

inline pid_t parent_of(pid_t pid) {
  const std::string stat = proc_text(pid, "stat");
  const size_t name_end = stat.rfind(')');  // then: state and parent
  if (name_end == std::string::npos) return 0;
  const auto words = util::split(std::string_view(stat).substr(name_end + 1), ' ');
  return words.size() > 2 ? static_cast<pid_t>(util::parse_number(words[2], 0, INT32_MAX).value_or(0)) : 0;
}

/// Engines that this process has started and not reaped.
inline std::vector<pid_t> engines() {
  return processes([](pid_t pid, const std::string& line) {
    return line.starts_with(std::string(KC_ENGINE) + '\0') && parent_of(pid) == getpid();
  });
}

}  // namespace kc::test
