#include "util/limits.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <latch>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "util/cgroup.h"
#include "util/pseudo_file.h"
#include "util/text.h"

namespace kc::util {
namespace {

// CPUs in the affinity mask of this thread; 0 when the kernel does not say.
unsigned affinity_cpus() {
  // cpu_set_t has 1,024; the call fails with EINVAL while the set is smaller than the kernel's.
  constexpr size_t kMostSets = 64;
  for (size_t count = 1; count <= kMostSets; count *= 2) {
    std::vector<cpu_set_t> sets(count);
    const size_t size = count * sizeof(cpu_set_t);
    if (sched_getaffinity(0, size, sets.data()) == 0)
      return static_cast<unsigned>(CPU_COUNT_S(size, sets.data()));
    if (errno != EINVAL) break;
  }
  return 0;
}

// Threads of all processes whose real user is `user`, which is what RLIMIT_NPROC counts.
uint64_t threads_of_user(uid_t user) {
  uint64_t threads = 0;
  const base::Result<std::vector<std::string>> names = base::list_directory(AT_FDCWD, "/proc");
  if (!names) return 0;
  for (const std::string& name : *names) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::optional<std::string> status = read_pseudo_file("/proc/" + name + "/status");
    if (!status || named_number(*status, "Uid") != uint64_t{user}) continue;
    threads += named_number(*status, "Threads").value_or(1);
  }
  return threads;
}

std::optional<uint64_t> user_processes_left() {
  rlimit limit{};
  const uid_t user = getuid();
  if (user == 0 || getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, threads_of_user(user));
}

}  // namespace

unsigned allowed_cpus() {
  uint64_t cpus = affinity_cpus();
  if (cpus == 0) cpus = std::thread::hardware_concurrency();
  cpus = std::min(cpus, cgroup_cpus().value_or(cpus));
  return static_cast<unsigned>(std::max<uint64_t>(1, cpus));
}

uint64_t available_memory() {
  const std::string text = read_pseudo_file("/proc/meminfo").value_or("");
  // Without /proc nothing is known; then memory does not limit.
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
  if (const std::optional<uint64_t> kib = named_number(text, "MemAvailable")) bytes = *kib * 1024;
  return std::min(bytes, cgroup_memory_left().value_or(bytes));
}

std::optional<uint64_t> processes_left() {
  const std::optional<uint64_t> by_user = user_processes_left();
  const std::optional<uint64_t> by_group = cgroup_pids_left();
  if (!by_user || !by_group) return by_user ? by_user : by_group;
  return std::min(*by_user, *by_group);
}

uint64_t open_files_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur;
}

unsigned room_for_threads(unsigned wanted, size_t stack_bytes) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return 0;
  std::vector<pthread_t> threads;
  if (pthread_attr_setstacksize(&attributes, stack_bytes) == 0) {
    std::latch all_made(1);
    const auto wait = [](void* latch) -> void* {
      static_cast<std::latch*>(latch)->wait();
      return nullptr;
    };
    for (unsigned i = 0; i < wanted; ++i) {
      pthread_t thread{};
      if (pthread_create(&thread, &attributes, wait, &all_made) != 0) break;
      threads.push_back(thread);
    }
    all_made.count_down();
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  }
  pthread_attr_destroy(&attributes);
  return static_cast<unsigned>(threads.size());
}

std::optional<uint64_t> address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace kc::util
