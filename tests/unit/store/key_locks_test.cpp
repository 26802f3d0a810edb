#include "store/key_locks.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

using Answer = KeyLocks::Answer;

base::FileDescriptor open_file(const fs::path& path) {
  auto fd = base::open_at(AT_FDCWD, path, O_RDWR | O_CREAT, 0600);
  REQUIRE(fd.has_value());
  return std::move(*fd);
}

TEST_CASE("the byte of a key is its first 62 bits") {
  base::Digest key;
  key.bytes[0] = 0x80;
  key.bytes[7] = 0x07;
  CHECK(lock_offset(key) == (1ULL << 61) + 1);
  key.bytes.fill(0xff);
  CHECK(lock_offset(key) == kProbeOffset - 1);
}

TEST_CASE("two descriptions of one lock file exclude each other by key") {
  const TemporaryFolder folder;
  KeyLocks a(open_file(folder / "locks")), b(open_file(folder / "locks"));
  CHECK(a.try_lock(key_of("1")) == Answer::kHeld);
  CHECK(b.try_lock(key_of("1")) == Answer::kBusy);
  CHECK(b.try_lock(key_of("2")) == Answer::kHeld);
  CHECK(a.try_lock(key_of("2")) == Answer::kBusy);
  a.unlock(key_of("1"));
  CHECK(b.try_lock(key_of("1")) == Answer::kHeld);
  CHECK(fs::file_size(folder / "locks") == 0);
}

TEST_CASE("one object gives a key to one of many threads at a time") {
  const TemporaryFolder folder;
  KeyLocks locks(open_file(folder / "locks"));
  std::atomic<int> inside{0}, overlaps{0}, turns{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        if (locks.try_lock(key_of("k")) != Answer::kHeld) continue;
        if (inside.fetch_add(1) != 0) ++overlaps;
        ++turns;
        std::this_thread::yield();
        inside.fetch_sub(1);
        locks.unlock(key_of("k"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(overlaps == 0);
  CHECK(turns > 0);
  CHECK(locks.try_lock(key_of("k")) == Answer::kHeld);
  CHECK(locks.try_lock(key_of("k")) == Answer::kBusy);
}

TEST_CASE("the lock of a killed process is free again") {
  const TemporaryFolder folder;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int fd = open((folder / "locks").c_str(), O_RDWR | O_CREAT, 0600);
    KeyLocks locks{base::FileDescriptor(fd)};
    const char answer = locks.try_lock(key_of("k")) == Answer::kHeld ? 'y' : 'n';
    if (write(ready[1], &answer, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char answer = 0;
  REQUIRE(read(ready[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  KeyLocks locks(open_file(folder / "locks"));
  CHECK(locks.try_lock(key_of("k")) == Answer::kBusy);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(locks.try_lock(key_of("k")) == Answer::kHeld);
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("a descriptor that cannot be locked says unavailable") {
  KeyLocks locks{base::FileDescriptor()};
  CHECK(locks.try_lock(key_of("k")) == Answer::kUnavailable);
  CHECK(locks.try_lock(key_of("k")) == Answer::kUnavailable);
}

}  // namespace
}  // namespace kc::store::test
