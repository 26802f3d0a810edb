#include "store/gc.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/atomic_file.h"
#include "base/lock.h"
#include "store/collector.h"
#include "store/frozen.h"
#include "store/stats.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

constexpr int64_t kHour = 3600, kDay = 24 * kHour;

GcReport run(const fs::path& root, const GcOptions& options) {
  auto report = collect(root.string(), options);
  if (!report) FAIL(report.error().text());
  return std::move(*report);
}

uint64_t bytes_of(const fs::path& path) {
  struct stat status;
  REQUIRE(lstat(path.c_str(), &status) == 0);
  return counted_bytes(status);
}

// Entries "0" to "count - 1", the first used longest ago, an hour apart.
void fill(const fs::path& root, int count) {
  const auto store = open_store(root);
  for (int i = 0; i < count; ++i) {
    REQUIRE(store->put(sample_entry(std::to_string(i))));
    set_age(path_of(root, key_of(std::to_string(i))), (count - i) * kHour);
  }
}
bool has(const fs::path& root, int i) {
  return fs::exists(path_of(root, key_of(std::to_string(i))));
}

pid_t dead_pid() {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

// Every path below a folder with its size and time.
std::map<std::string, std::pair<uint64_t, int64_t>> picture(const fs::path& root) {
  std::map<std::string, std::pair<uint64_t, int64_t>> out;
  for (const auto& item : fs::recursive_directory_iterator(root)) {
    struct stat status;
    REQUIRE(lstat(item.path().c_str(), &status) == 0);
    out[item.path().string()] = {static_cast<uint64_t>(status.st_size), mtime_ns(status)};
  }
  return out;
}

TEST_CASE("a size limit removes the least recently used and exactly as many as needed") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 10);
  uint64_t newest = 0;
  for (int i = 6; i < 10; ++i) newest += bytes_of(path_of(root, key_of(std::to_string(i))));
  GcOptions options;
  options.max_size = newest;
  options.list_removed = true;
  const GcReport report = run(root, options);
  CHECK(report.entries_before == 10);
  CHECK(report.entries_removed == 6);
  CHECK(report.bytes_before - report.bytes_removed == newest);
  CHECK(report.trouble.empty());
  for (int i = 0; i < 10; ++i) CHECK(has(root, i) == (i >= 6));
  REQUIRE(report.removed.size() == 6);
  CHECK(report.removed[0] == stored_path(Kind::kEntry, key_of("0")));
  CHECK(report.removed[5] == stored_path(Kind::kEntry, key_of("5")));
  CHECK(run(root, options).entries_removed == 0);
  options.max_size = newest - 1;
  CHECK(run(root, options).entries_removed == 1);
  options.max_size = 0;
  CHECK(run(root, options).entries_removed == 3);
}

TEST_CASE("an age limit removes what was not used for longer") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 5);
  GcOptions options;
  options.max_age = std::chrono::hours(3) + std::chrono::minutes(1);
  CHECK(run(root, options).entries_removed == 2);
  CHECK_FALSE(has(root, 1));
  CHECK(has(root, 2));
}

TEST_CASE("without limits no entry is removed") {
  const TemporaryFolder folder;
  fill(folder / "s", 2);
  const GcReport report = run(folder / "s", {});
  CHECK(report.entries_before == 2);
  CHECK(report.entries_removed == 0);
  CHECK(report.removed.empty());
}

TEST_CASE("sizes count allocated blocks when they are more than the size") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 1);
  CHECK(run(root, {}).bytes_before == bytes_of(path_of(root, key_of("0"))));
  struct stat status {};
  status.st_size = 100;
  status.st_blocks = 8;
  CHECK(counted_bytes(status) == 4096);
  status.st_size = 1 << 20;  // sparse or compressed by the file system
  CHECK(counted_bytes(status) == 1U << 20);
}

TEST_CASE("only names of the exact form are removed and no link is followed") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 1);
  const std::string hex = key_of("0").hex();
  const fs::path shard = path_of(root, key_of("0")).parent_path();
  const fs::path outside = folder / "outside";
  fs::create_directory(outside);
  spill(outside / (hex + ".kce"), std::string("not of this store"));
  const std::string wrong_shard = hex.substr(0, 2) == "00" ? "01" : "00";
  fs::create_directories(root / "v1/e" / wrong_shard);
  fs::create_directories(root / "v1/e/zz");
  fs::create_directories(root / "v1/r/aa");
  const std::vector<fs::path> foreign = {shard / "README",
                                         shard / (hex + ".kce.bak"),
                                         shard / (hex + ".kcr"),
                                         shard / ("." + hex + ".kce"),
                                         root / "v1/e" / wrong_shard / (hex + ".kce"),
                                         root / "v1/e/zz" / (hex + ".kce"),
                                         root / "v1/e" / (hex + ".kce"),
                                         root / "v1/r/aa" / (std::string(64, 'a') + ".kce"),
                                         root / "v1/r/aa" / (std::string(64, 'b') + ".kcr"),
                                         root / "v1/tmp/notes",
                                         root / "v1/tmp/new-x",
                                         root / "v1/state/notes",
                                         root / "v1/stats.d/notes",
                                         root / "important.txt"};
  for (const fs::path& path : foreign) {
    spill(path, std::string("keep"));
    set_age(path, 1000 * kDay);
  }
  // A link with the exact name, a folder with one, and a job folder's name on a file.
  const std::string linked = hex.substr(0, 63) + (hex[63] == '0' ? "1" : "0") + ".kce";
  fs::create_symlink(outside / (hex + ".kce"), shard / linked);
  set_age(shard / linked, 1000 * kDay);
  const fs::path job = root / "v1/tmp/job-1-0123456789abcdef";
  spill(job, std::string("keep"));
  set_age(job, 1000 * kDay);
  const fs::path link = root / "v1/tmp/job-2-0123456789abcdef";
  fs::create_directory_symlink(outside, link);
  set_age(link, 1000 * kDay);

  GcOptions options;
  options.max_size = 0;
  options.max_age = std::chrono::seconds(0);
  const GcReport report = run(root, options);
  CHECK(report.entries_removed == 1);
  CHECK(report.temporaries_removed == 0);
  CHECK_FALSE(has(root, 0));
  for (const fs::path& path : foreign) {
    CAPTURE(path.string());
    CHECK(fs::exists(path));
  }
  CHECK(fs::is_symlink(shard / linked));
  CHECK(fs::exists(job));
  CHECK(fs::is_symlink(link));
  CHECK(fs::exists(outside / (hex + ".kce")));
}

TEST_CASE("a dry run names what would go and changes nothing") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 3);
  const std::string temporary = new_file_name();
  spill(root / "v1/tmp" / temporary, std::string("x"));
  set_age(root / "v1/tmp" / temporary, 2 * kHour);
  fs::remove(root / "v1/gc.lock");
  const auto before = picture(root);
  GcOptions options;
  options.max_size = 0;
  options.dry_run = true;
  const GcReport report = run(root, options);
  CHECK(report.entries_removed == 3);
  CHECK(report.temporaries_removed == 1);
  CHECK(report.removed.size() == 4);
  CHECK(report.removed.back() == "tmp/" + temporary);
  CHECK(picture(root) == before);
}

TEST_CASE("leftovers go when they are old enough and not before") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  open_store(root);
  const fs::path tmp = root / "v1/tmp";
  const std::string dead = std::to_string(dead_pid()), random = "-0123456789abcdef";
  struct Case {
    std::string name;
    bool folder;
    int64_t age;
    bool stays;
  };
  const std::vector<Case> cases = {
      {"new-" + dead + "-0" + random, false, kHour + 60, false},
      {"new-" + dead + "-1" + random, false, kHour - 60, true},
      {"bad-" + key_of("a").hex() + random, false, kDay + 60, false},
      {"bad-" + key_of("b").hex() + random, false, kDay - 60, true},
      {"failed-" + key_of("a").hex(), false, 90, false},
      {"failed-" + key_of("b").hex(), false, 30, true},
      {"job-" + dead + random, true, kHour + 60, false},
      {"job-" + dead + "-1123456789abcdef", true, kHour - 60, true},
      {"job-" + std::to_string(getpid()) + random, true, 100 * kDay, true},
  };
  for (const Case& one : cases) {
    if (one.folder) {
      fs::create_directories(tmp / one.name / "inner");
      spill(tmp / one.name / "inner/file", std::string("x"));
    } else {
      spill(tmp / one.name, std::string("x"));
    }
    set_age(tmp / one.name, one.age);
  }
  const GcReport report = run(root, {});
  CHECK(report.temporaries_removed == 4);
  CHECK(report.trouble.empty());
  for (const Case& one : cases) {
    CAPTURE(one.name);
    CHECK(fs::exists(tmp / one.name) == one.stays);
  }
}

TEST_CASE("states unused for 90 days go") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  for (const char* name : {"old", "young"}) REQUIRE(store->save_state(key_of(name), base::as_bytes("x")));
  set_age(root / "v1/state" / key_of("old").hex(), 91 * kDay);
  set_age(root / "v1/state" / key_of("young").hex(), 89 * kDay);
  CHECK(run(root, {}).states_removed == 1);
  CHECK_FALSE(fs::exists(root / "v1/state" / key_of("old").hex()));
  CHECK(fs::exists(root / "v1/state" / key_of("young").hex()));
}

TEST_CASE("while another collection runs nothing is done") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 2);
  GcOptions options;
  options.max_size = 0;
  {
    const auto fd = base::open_at(AT_FDCWD, root / "v1/gc.lock", O_RDWR | O_CREAT, 0600);
    REQUIRE(fd.has_value());
    REQUIRE(base::try_lock_byte(fd->get(), 0).value());
    CHECK(run(root, options).busy);
    CHECK(has(root, 0));
  }
  CHECK_FALSE(run(root, options).busy);
  CHECK_FALSE(has(root, 0));
}

TEST_CASE("a store that is not there is empty and is not made") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  CHECK(run(root, {}).entries_before == 0);
  CHECK(stats(root.string()).value().entries == 0);
  CHECK(verify(root.string()).value().entries == 0);
  CHECK_FALSE(fs::exists(root));
}

TEST_CASE("collection refuses a root that others can write") {
  const TemporaryFolder folder;
  fill(folder / "s", 1);
  fs::permissions(folder / "s", fs::perms(0777));
  CHECK_FALSE(collect((folder / "s").string(), {}).has_value());
  CHECK_FALSE(stats((folder / "s").string()).has_value());
  CHECK_FALSE(verify((folder / "s").string()).has_value());
}

TEST_CASE("verify names every damaged and every newer entry and changes nothing") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 12);
  base::Bytes bytes = slurp(path_of(root, key_of("3")));
  bytes.back() ^= 1;
  spill(path_of(root, key_of("3")), bytes);
  spill(path_of(root, key_of("4")), slurp(path_of(root, key_of("5"))));
  spill(path_of(root, key_of("6")), build_header(kEntryMagic, kVersion + 1, 0, base::Bytes(9), 0));
  fs::remove(path_of(root, key_of("7")));
  fs::create_directory(path_of(root, key_of("7")));
  const auto before = picture(root);
  const auto report = verify(root.string());
  REQUIRE(report.has_value());
  CHECK(report->entries == 12);
  CHECK(report->damaged.size() == 3);
  REQUIRE(report->newer.size() == 1);
  CHECK(report->newer[0].starts_with(stored_path(Kind::kEntry, key_of("6")) + ": "));
  const auto& damaged = report->damaged;
  for (const char* name : {"3", "4", "7"}) {
    CHECK(std::any_of(damaged.begin(), damaged.end(), [&](const std::string& text) {
      return text.starts_with(stored_path(Kind::kEntry, key_of(name)));
    }));
  }
  CHECK(picture(root) == before);
}

TEST_CASE("stats count what is there and what was done") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 3);
  {
    const auto store = open_store(root);
    Entry other = sample_entry("amd");
    other.backend = "loom";
    other.target = "gfx1151";
    REQUIRE(store->put(other));
    CHECK(store->get(key_of("0")).has_value());
    CHECK_FALSE(store->get(key_of("none")));
    REQUIRE(store->save_state(key_of("state"), base::as_bytes("x")));
    spill(path_of(root, key_of("1")), std::string("garbage"));
    CHECK_FALSE(store->get(key_of("1")));
    store->remember_failure(key_of("f"), base::as_bytes("x"));
    spill(path_of(root, key_of("2")), std::string("garbage"));
  }
  const auto out = stats(root.string());
  REQUIRE(out.has_value());
  CHECK(out->entries == 3);
  CHECK(out->bytes > 0);
  CHECK(out->states == 1);
  CHECK(out->quarantined == 1);
  CHECK(out->temporaries == 1);
  CHECK(out->by_backend_target ==
        std::map<std::string, uint64_t>{{"loom gfx1151", 1}, {"tileiras sm_90", 1}});
  CHECK(out->compile_seconds == 3.0);
  CHECK(out->oldest_s <= out->newest_s);
  CHECK(out->newest_s * kSecondNs > base::wall_clock_ns() - kHour * kSecondNs);
  CHECK(out->counters.puts == 4);
  CHECK(out->counters.hits == 1);
  CHECK(out->counters.misses == 2);
  CHECK(out->counters.corrupt == 1);
  CHECK(out->counters.soft_errors == 0);
}

TEST_CASE("a draw decides with the right probability and uses every bit") {
  constexpr uint64_t kLimit = 32'000'000;
  CHECK_FALSE(draws_collection(1000, 0, 0));
  CHECK(draws_collection(1'000'000, kLimit, ~0ULL));
  CHECK(draws_collection(10, 3, ~0ULL));
  CHECK_FALSE(draws_collection(0, kLimit, 0));
  const uint64_t tenth = ~0ULL / 10;
  CHECK(draws_collection(100'000, kLimit, tenth - 1));
  CHECK_FALSE(draws_collection(100'000, kLimit, tenth + 2));
  CHECK(draws_collection(1ULL << 40, 64ULL << 40, 1ULL << 62));
  int due = 0;
  for (int i = 0; i < 1000; ++i) due += draws_collection(500'000, kLimit, base::random_u64()) ? 1 : 0;
  CHECK(due > 400);
  CHECK(due < 600);
}

TEST_CASE("no bit is fixed in the draws of 1024 puts") {
  uint64_t ones = 0, zeros = 0;
  for (int i = 0; i < 1024; ++i) {
    const uint64_t draw = random_draw();
    ones |= draw;
    zeros |= ~draw;
  }
  CHECK(ones == ~0ULL);
  CHECK(zeros == ~0ULL);
}

// Each process draws once: what does not change from process to process would give the same answer each time.
TEST_CASE("puts of processes that put once collect as often as their size says") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 1);
  constexpr uint64_t kLimit = 2 * 4096 * 32;  // a put of one block collects every other time
  constexpr int kProcesses = 200;
  int collections = 0;
  for (int i = 0; i < kProcesses; ++i) {
    fs::remove(root / "v1/gc.lock");  // made by a collection
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      {
        const auto store = open_store(root, Mode::kReadWrite, kLimit);
        store->put(sample_entry("new " + std::to_string(i)));
        store->collect_if_due();
      }
      _exit(0);
    }
    REQUIRE(waitpid(child, nullptr, 0) == child);
    collections += fs::exists(root / "v1/gc.lock") ? 1 : 0;
  }
  // Five standard deviations on either side; the processes that end and add up counters lock it, too: 1
  // in 64.
  CHECK(collections > 65);
  CHECK(collections < 140);
}

TEST_CASE("a put that draws the collection brings the store down to 80 percent when it is asked to") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 10);
  const uint64_t one = bytes_of(path_of(root, key_of("0")));
  const uint64_t limit = 10 * one;
  const auto store = open_store(root, Mode::kReadWrite, limit);
  store->collect_if_due();
  CHECK(has(root, 0));
  REQUIRE(store->put(sample_entry("new")));  // larger than limit / 32, so it always draws
  CHECK(has(root, 0));
  store->collect_if_due();
  CHECK_FALSE(has(root, 2));
  CHECK(has(root, 3));
  CHECK(store->contains(key_of("new")));
  CHECK(run(root, {}).bytes_before <= limit * 4 / 5);
}

TEST_CASE("a collection without time takes only a share and the next ones the rest") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 30);
  const auto layout = Layout::open(root.string(), Access::kChange);
  REQUIRE(layout.has_value());
  REQUIRE(layout->has_value());
  GcOptions options;
  options.max_size = 0;
  const auto report = collect_in(**layout, options, std::chrono::milliseconds(0));
  REQUIRE(report.has_value());
  CHECK(report->entries_removed == 0);
  CHECK(report->entries_before < 30);
  const auto rest = collect_in(**layout, options, std::chrono::minutes(1));
  REQUIRE(rest.has_value());
  CHECK(rest->entries_removed == 30);
}

}  // namespace
}  // namespace kc::store::test
