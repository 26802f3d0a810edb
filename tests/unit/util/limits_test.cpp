#include "util/limits.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>

#include "support/temp_folder.h"
#include "util/cgroup.h"
#include "util/pseudo_file.h"

using namespace kc::util;
using kc::test::TempFolder;

TEST_CASE("allowed CPUs follow the affinity mask") {
  CHECK(allowed_cpus() >= 1);
  unsigned with_one = 0;
  std::thread([&] {
    cpu_set_t set;
    REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &set)) continue;
      CPU_ZERO(&set);
      CPU_SET(cpu, &set);
      break;
    }
    REQUIRE(sched_setaffinity(0, sizeof set, &set) == 0);
    with_one = allowed_cpus();
  }).join();
  CHECK(with_one == 1);
}

TEST_CASE("available memory is known and no more than what the machine has") {
  const std::string text = read_pseudo_file("/proc/meminfo").value_or("");
  CHECK(available_memory() > 0);
  CHECK(available_memory() <= named_number(text, "MemTotal").value_or(0) * 1024);
}

TEST_CASE("the limit of open files is raised to the hard one") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit lowered{64, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &lowered) == 0);
  CHECK(open_files_limit() == before.rlim_max);
  rlimit after{};
  CHECK(getrlimit(RLIMIT_NOFILE, &after) == 0);
  CHECK(after.rlim_cur == before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("version 2 groups limit CPUs by the least quota up to the root") {
  const TempFolder root;
  root.write("proc/self/cgroup", "0::/outer/inner\n");
  root.write("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  root.write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  CHECK(cgroup_cpus(root.path()) == 2);  // 1.5, rounded up
  root.write("sys/fs/cgroup/outer/inner/cpu.max", "20000 100000\n");
  CHECK(cgroup_cpus(root.path()) == 1);
  root.write("sys/fs/cgroup/cpu.max", "garbage\n");
  root.write("sys/fs/cgroup/outer/cpu.max", "100 0\n");
  root.write("sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
  CHECK(cgroup_cpus(root.path()) == 4);
}

TEST_CASE("version 1 groups limit CPUs and a quota of -1 is none") {
  const TempFolder root;
  root.write("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/docker/abc\n");
  const std::string folder = "sys/fs/cgroup/cpu,cpuacct/";
  root.write(folder + "cpu.cfs_quota_us", "-1\n");
  root.write(folder + "cpu.cfs_period_us", "100000\n");
  CHECK(cgroup_cpus(root.path()) == std::nullopt);
  root.write(folder + "cpu.cfs_quota_us", "300000\n");  // the path on the host does not exist here
  CHECK(cgroup_cpus(root.path()) == 3);
}

TEST_CASE("a memory group leaves what is unused or page cache") {
  const TempFolder root;
  root.write("proc/self/cgroup", "0::/a\n");
  root.write("sys/fs/cgroup/a/memory.max", "1000\n");
  root.write("sys/fs/cgroup/a/memory.current", "700\n");
  root.write("sys/fs/cgroup/a/memory.stat", "anon 400\ninactive_file 300\n");
  CHECK(cgroup_memory_left(root.path()) == 600);
  root.write("sys/fs/cgroup/a/memory.current", "5000\n");
  CHECK(cgroup_memory_left(root.path()) == 0);
  root.write("sys/fs/cgroup/a/memory.max", "max\n");
  CHECK(cgroup_memory_left(root.path()) == std::nullopt);
}

TEST_CASE("a pids group leaves its limit less what runs") {
  const TempFolder root;
  CHECK(cgroup_pids_left(root.path()) == std::nullopt);
  root.write("proc/self/cgroup", "0::/a\n");
  root.write("sys/fs/cgroup/a/pids.max", "100\n");
  root.write("sys/fs/cgroup/a/pids.current", "40\n");
  CHECK(cgroup_pids_left(root.path()) == 60);
}

TEST_CASE("named numbers are found by their whole name") {
  CHECK(named_number("VmHWM:\t  12 kB\nVm: 3\n", "VmHWM") == 12);
  CHECK(named_number("inactive_file 4\nfile 5", "file") == 5);
  CHECK(named_number("files 5\n", "file") == std::nullopt);
  CHECK(named_number("file\n", "file") == std::nullopt);
  CHECK(named_number("", "file") == std::nullopt);
}

TEST_CASE("a pseudo file is read to its end or its limit") {
  const TempFolder folder;
  const std::string path = folder.write("f", std::string(10'000, 'x'));
  CHECK(read_pseudo_file(path)->size() == 10'000);
  CHECK(read_pseudo_file(path, 5000)->size() == 5000);
  CHECK(read_pseudo_file(folder / "missing") == std::nullopt);
  CHECK(read_pseudo_file(folder.path()) == std::nullopt);
}

TEST_CASE("processes that are left are fewer than the limit unless nothing limits") {
  // As root, or without limits, there is no number; where there is one it is not the whole limit.
  if (const std::optional<uint64_t> left = processes_left()) CHECK(*left < UINT64_MAX);
  rlimit limit{};
  if (getuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    REQUIRE(processes_left().has_value());
    CHECK(*processes_left() < limit.rlim_cur);
  }
}

TEST_CASE("there is room for as many threads as address space and limits allow") {
  CHECK(kc::util::room_for_threads(0, 1U << 20) == 0);
  CHECK(kc::util::room_for_threads(3, 1U << 20) == 3);
  // A process has at most 128 TiB of addresses.
  CHECK(kc::util::room_for_threads(10, size_t{1} << 45) < 4);
  CHECK(kc::util::room_for_threads(1, 1) == 0);  // less than any stack may be
}

TEST_CASE("the limit of address space is nothing or the soft one") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  if (before.rlim_cur == RLIM_INFINITY) {
    CHECK_FALSE(kc::util::address_space_limit());
  } else {
    CHECK(kc::util::address_space_limit() == before.rlim_cur);
  }
  // As much as a sanitizer needs too.
  const rlimit lowered{RLIM_INFINITY - 1, before.rlim_max};
  if (setrlimit(RLIMIT_AS, &lowered) != 0) return;
  CHECK(kc::util::address_space_limit() == RLIM_INFINITY - 1);
  setrlimit(RLIMIT_AS, &before);
}
