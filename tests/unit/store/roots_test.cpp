// Pins: written, read, damaged, and what a collection does with them.
#include "store/roots.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/file_system.h"
#include "base/lock.h"
#include "store/collector.h"
#include "store/frozen.h"
#include "store/gc.h"
#include "store/sealed.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

constexpr int64_t kHour = 3600;

Pin sample_pin(const std::string& name, const std::vector<std::string>& entries,
               const std::vector<std::string>& records = {}) {
  Pin pin;
  pin.name = name;
  pin.source = name + ".yaml";
  pin.time_s = 1'700'000'000;
  for (const std::string& entry : entries) pin.keys.entries.insert(key_of(entry));
  for (const std::string& record : records) pin.keys.records.insert(key_of(record));
  return pin;
}

void pin(const fs::path& root, const Pin& what) {
  const auto written = write_pin(root.string(), what);
  if (!written) FAIL(written.error().text());
}

std::vector<Pin> pins_of(const fs::path& root) {
  auto pins = read_pins(root.string());
  if (!pins) FAIL(pins.error().text());
  return std::move(*pins);
}

GcReport run(const fs::path& root, const GcOptions& options) {
  auto report = collect(root.string(), options);
  if (!report) FAIL(report.error().text());
  return std::move(*report);
}

// Entries "0" to "count - 1" with records "r0" and so on, the first used longest ago, an hour apart.
void fill(const fs::path& root, int count) {
  const auto store = open_store(root);
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    REQUIRE(store->put(sample_entry(name)));
    REQUIRE(store->put_record(sample_record("r" + name, name)));
    set_age(path_of(root, key_of(name)), (count - i) * kHour);
    set_age(path_of(root, key_of("r" + name), Kind::kRecord), (count - i) * kHour);
  }
}
bool has(const fs::path& root, const std::string& name) {
  return fs::exists(path_of(root, key_of(name)));
}
bool has_record(const fs::path& root, const std::string& name) {
  return fs::exists(path_of(root, key_of(name), Kind::kRecord));
}

// All that a user can ask of a collection that takes as much as possible.
std::vector<GcOptions> all_that_take_everything() {
  std::vector<GcOptions> out(3);
  out[0].max_size = 0;
  out[1].max_age = std::chrono::seconds(0);
  out[2].only_keep = true;
  return out;
}

TEST_CASE("a pin that was written is read again and another of its name replaces it") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  CHECK(pins_of(root).empty());
  CHECK_FALSE(fs::exists(root));
  pin(root, sample_pin("b", {"1", "2", "3"}, {"r1"}));
  pin(root, sample_pin("a", {}));
  const std::vector<Pin> pins = pins_of(root);
  REQUIRE(pins.size() == 2);
  CHECK(pins[0].name == "a");
  CHECK(pins[0].keys.entries.empty());
  CHECK(pins[1].name == "b");
  CHECK(pins[1].source == "b.yaml");
  CHECK(pins[1].time_s == 1'700'000'000);
  CHECK(pins[1].keys.entries == sample_pin("b", {"1", "2", "3"}).keys.entries);
  CHECK(pins[1].keys.records == sample_pin("b", {}, {"r1"}).keys.records);
  pin(root, sample_pin("b", {"4"}));
  CHECK(pins_of(root)[1].keys.entries == sample_pin("b", {"4"}).keys.entries);
  CHECK(names_in(root / "v1/tmp").empty());
  struct stat status;
  REQUIRE(stat((root / "v1/roots").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
}

TEST_CASE("removing a pin tells whether there was one") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  CHECK_FALSE(remove_pin(root.string(), "a").value());
  pin(root, sample_pin("a", {"1"}));
  CHECK_FALSE(remove_pin(root.string(), "b").value());
  CHECK_FALSE(remove_pin(root.string(), "../locks").value());
  CHECK(remove_pin(root.string(), "a").value());
  CHECK_FALSE(remove_pin(root.string(), "a").value());
  CHECK(pins_of(root).empty());
}

TEST_CASE("names of pins are plain file names and no others are looked at") {
  for (const char* good : {"a", "7", "release-1.2_rc", "A.b"}) CHECK(is_pin_name(good));
  CHECK(is_pin_name(std::string(64, 'x')));
  for (const char* bad : {"", ".", "..", ".a", "-a", "_a", "a/b", "a b", "\xc3\xa4", "a\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_pin_name(bad));
  }
  CHECK_FALSE(is_pin_name(std::string(65, 'x')));
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto refused = write_pin(root.string(), sample_pin("../x", {}));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == base::ErrorKind::kInput);
  CHECK_FALSE(fs::exists(root));
  pin(root, sample_pin("a", {"1"}));
  spill(root / "v1/roots/.hidden", std::string("x"));
  CHECK(pins_of(root).size() == 1);
  CHECK(pin_names(root.string()).value() == std::vector<std::string>{"a"});
}

TEST_CASE("what is pinned survives every collection with the entries its records lead to") {
  for (const GcOptions& options : all_that_take_everything()) {
    const TemporaryFolder folder;
    const fs::path root = folder / "s";
    fill(root, 4);
    pin(root, sample_pin("one", {"0"}));
    pin(root, sample_pin("two", {"none"}, {"r1", "nothing"}));
    const GcReport report = run(root, options);
    CHECK(report.entries_before == 4);
    CHECK(report.entries_kept == 2);
    CHECK(report.records_kept == 1);
    CHECK(report.bytes_before - report.bytes_removed == report.bytes_kept);
    CHECK(report.entries_removed == 2);
    CHECK(report.records_removed == 3);
    CHECK(has(root, "0"));
    CHECK(has(root, "1"));
    CHECK(has_record(root, "r1"));
    CHECK_FALSE(has(root, "2"));
    CHECK_FALSE(has_record(root, "r0"));
    // Until it is pinned no more.
    REQUIRE(remove_pin(root.string(), "two").value());
    CHECK(run(root, options).entries_removed == 1);
    CHECK(has(root, "0"));
  }
}

TEST_CASE("what is asked to be kept survives like what is pinned") {
  for (GcOptions options : all_that_take_everything()) {
    const TemporaryFolder folder;
    const fs::path root = folder / "s";
    fill(root, 4);
    pin(root, sample_pin("one", {"0"}));
    const KeySet keep = sample_pin("", {"2"}, {"r3"}).keys;
    options.keep = &keep;
    run(root, options);
    CHECK(has(root, "0"));
    CHECK_FALSE(has(root, "1"));
    CHECK(has(root, "2"));
    CHECK(has(root, "3"));
    CHECK(has_record(root, "r3"));
    CHECK_FALSE(has_record(root, "r2"));
  }
}

TEST_CASE("a pin made before its units are compiled keeps what its records lead to later") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  pin(root, sample_pin("early", {"5"}, {"r1"}));
  fill(root, 2);
  GcOptions options;
  options.only_keep = true;
  run(root, options);
  CHECK(has(root, "1"));
  CHECK_FALSE(has(root, "0"));
  // The record leads to something else now, and that is what is kept.
  REQUIRE(open_store(root)->put(sample_entry("other")));
  REQUIRE(open_store(root)->put_record(sample_record("r1", "other")));
  run(root, options);
  CHECK(has(root, "other"));
  CHECK_FALSE(has(root, "1"));
}

TEST_CASE("without pins only-keep leaves nothing") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 2);
  GcOptions options;
  options.only_keep = true;
  const GcReport report = run(root, options);
  CHECK(report.entries_removed == 2);
  CHECK(report.records_removed == 2);
  CHECK(report.bytes_removed == report.bytes_before);
}

TEST_CASE("the automatic collection passes over what is pinned") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  constexpr uint64_t kLimit = 64 << 10;
  fill(root, 12);
  pin(root, sample_pin("oldest", {"0"}, {"r1"}));
  const auto store = open_store(root, Mode::kReadWrite, kLimit);
  REQUIRE(store->put(sample_entry("new")));  // larger than limit / 32, so it always draws
  store->collect_if_due();
  CHECK(store->counters().soft_errors == 0);
  CHECK(has(root, "0"));
  CHECK(has(root, "1"));
  CHECK_FALSE(has(root, "2"));
  CHECK(run(root, {}).bytes_before <= low_mark(kLimit));
}

// Ways in which a pin, a good one before, cannot be believed.
struct Fault {
  const char* name;
  void (*make)(const fs::path& pin);
};
const Fault kFaults[] = {
    {"flipped",
     [](const fs::path& path) {
       base::Bytes bytes = slurp(path);
       bytes.back() ^= 1;
       spill(path, bytes);
     }},
    {"cut",
     [](const fs::path& path) {
       base::Bytes bytes = slurp(path);
       bytes.pop_back();
       spill(path, bytes);
     }},
    {"empty", [](const fs::path& path) { spill(path, std::string()); }},
    {"another's",
     [](const fs::path& path) { spill(path, seal(kPinMagic, base::sha256("other"), base::Bytes(16))); }},
    {"a state",
     [](const fs::path& path) { spill(path, seal(kStateMagic, base::sha256("bad"), base::Bytes(16))); }},
    {"newer",
     [](const fs::path& path) { spill(path, build_header(kPinMagic, kVersion + 1, 0, base::Bytes(9), 0)); }},
    {"too many keys",
     [](const fs::path& path) {
       base::ByteWriter out;
       out.i64(0);
       out.text("x");
       out.u32(0xffffffff);
       out.u32(0);
       spill(path, seal(kPinMagic, base::sha256("bad"), out.bytes()));
     }},
    {"unsorted",
     [](const fs::path& path) {
       base::ByteWriter out;
       out.i64(0);
       out.text("x");
       out.u32(2);
       out.raw(key_of("a").view());
       out.raw(key_of("a").view());
       out.u32(0);
       spill(path, seal(kPinMagic, base::sha256("bad"), out.bytes()));
     }},
    {"longer",
     [](const fs::path& path) {
       base::ByteWriter out;
       out.i64(0);
       out.text("x");
       out.u32(0);
       out.u32(0);
       out.u8(0);
       spill(path, seal(kPinMagic, base::sha256("bad"), out.bytes()));
     }},
    {"a folder",
     [](const fs::path& path) {
       fs::remove(path);
       fs::create_directory(path);
     }},
    {"a link",
     [](const fs::path& path) {
       fs::rename(path, path.parent_path() / ".moved");
       fs::create_symlink(".moved", path);
     }},
    {"writable by others", [](const fs::path& path) { fs::permissions(path, fs::perms(0666)); }},
};

TEST_CASE("nothing is removed while a pin cannot be believed and verify names it and leaves it") {
  for (const Fault& fault : kFaults) {
    CAPTURE(fault.name);
    const TemporaryFolder folder;
    const fs::path root = folder / "s";
    fill(root, 3);
    pin(root, sample_pin("good", {"0"}));
    pin(root, sample_pin("bad", {"1"}));
    spill(root / "v1/tmp" / new_file_name(), std::string("x"));
    set_age(root / "v1/tmp" / names_in(root / "v1/tmp")[0], 48 * kHour);
    fault.make(root / "v1/roots/bad");
    for (GcOptions options : all_that_take_everything()) {
      const auto report = collect(root.string(), options);
      REQUIRE_FALSE(report.has_value());
      CHECK(report.error().kind == base::ErrorKind::kEnvironment);
      CHECK(report.error().place.file.ends_with("/v1/roots/bad"));
      options.dry_run = true;
      CHECK_FALSE(collect(root.string(), options).has_value());
    }
    const auto store = open_store(root, Mode::kReadWrite, 16 << 10);
    REQUIRE(store->put(sample_entry("new")));
    store->collect_if_due();
    CHECK(store->counters().soft_errors == 1);
    CHECK(store->first_trouble().find("roots/bad") != std::string::npos);
    for (const char* name : {"0", "1", "2", "new"}) CHECK(has(root, name));
    CHECK(names_in(root / "v1/tmp").size() == 1);

    const auto verified = verify(root.string(), true);
    REQUIRE(verified.has_value());
    CHECK(verified->pins == 2);
    CHECK(verified->damaged.size() + verified->newer.size() == 1);
    CHECK(verified->newer.size() == (std::string(fault.name) == "newer" ? 1 : 0));
    CHECK(verified->repaired == 0);
    CHECK(names_in(root / "v1/roots", "bad").size() == 1);

    if (std::string(fault.name) == "a folder") continue;  // made by nobody, removed by nobody
    CHECK(remove_pin(root.string(), "bad").value());
    GcOptions options;
    options.max_size = 0;
    CHECK(run(root, options).entries_kept == 1);
  }
}

TEST_CASE("nothing is removed while it is not known where a kept record leads") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 3);
  pin(root, sample_pin("a", {"0"}, {"r1"}));
  const base::Bytes good = slurp(path_of(root, key_of("r1"), Kind::kRecord));
  spill(path_of(root, key_of("r1"), Kind::kRecord),
        build_header(kRecordMagic, kVersion + 1, 0, base::Bytes(64, 1), 0));
  GcOptions options;
  options.max_size = 0;
  const auto refused = collect(root.string(), options);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == base::ErrorKind::kEnvironment);
  CHECK(refused.error().message.find(stored_path(Kind::kRecord, key_of("r1"))) != std::string::npos);
  for (const char* name : {"0", "1", "2"}) CHECK(has(root, name));
  // A damaged one leads nowhere, for everybody.
  spill(path_of(root, key_of("r1"), Kind::kRecord), std::string("garbage"));
  CHECK(run(root, options).entries_kept == 1);
  CHECK_FALSE(has(root, "1"));
}

// Notes what was synced, and what was on disk under its name when.
class SyncWatch final : public base::FileSystem {
 public:
  int fsync(int fd) override {
    std::string path(4096, '\0');
    const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
    REQUIRE(size > 0);
    path.resize(static_cast<size_t>(size));
    events.push_back("sync " + path);
    return FileSystem::fsync(fd);
  }
  int renameat(int from_directory, const char* from, int to_directory, const char* to) override {
    events.push_back(std::string("rename ") + to);
    return FileSystem::renameat(from_directory, from, to_directory, to);
  }
  std::vector<std::string> events;
};

TEST_CASE("a pin is on disk before it has its name and so is the name when it is written") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  SyncWatch watch;
  {
    const base::ReplacedFileSystem replaced(watch);
    pin(root, sample_pin("a", {"1"}));
  }
  const std::string version = (root / "v1").string();
  REQUIRE(watch.events.size() == 5);
  CHECK(watch.events[0].starts_with("sync " + version + "/tmp/new-"));
  CHECK(watch.events[1] == "rename a");
  CHECK(watch.events[2] == "sync " + version + "/roots");
  CHECK(watch.events[3] == "sync " + version);
  CHECK(watch.events[4] == "sync " + root.string());
}

TEST_CASE("a pin waits for the collection that runs") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 1);
  auto lock = base::open_at(AT_FDCWD, root / "v1/gc.lock", O_RDWR | O_CREAT, 0600);
  REQUIRE(lock.has_value());
  REQUIRE(base::try_lock_byte(lock->get(), 0).value());
  std::atomic<bool> is_written{false};
  std::thread writer([&] {
    const auto written = write_pin(root.string(), sample_pin("a", {"1"}));
    is_written = written.has_value();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK_FALSE(is_written);
  CHECK_FALSE(fs::exists(root / "v1/roots/a"));
  lock->reset();
  writer.join();
  CHECK(is_written);
  CHECK(pins_of(root).size() == 1);
}

TEST_CASE("what a store holds of a pin is counted with what its records lead to") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const Pin all = sample_pin("a", {"0", "gone"}, {"r1", "lost"});
  CHECK(holding(root.string(), all.keys).value().missing == 4);
  fill(root, 3);
  const Holding held = holding(root.string(), all.keys).value();
  CHECK(held.entries == 2);  // 0, and 1 through r1
  CHECK(held.records == 1);
  CHECK(held.missing == 2);
  struct stat status;
  uint64_t bytes = 0;
  for (const fs::path& path :
       {path_of(root, key_of("0")), path_of(root, key_of("1")), path_of(root, key_of("r1"), Kind::kRecord)}) {
    REQUIRE(lstat(path.c_str(), &status) == 0);
    bytes += counted_bytes(status);
  }
  CHECK(held.bytes == bytes);
}

TEST_CASE("records are found by the entries that they lead to") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  CHECK(records_leading_to(root.string(), {key_of("0")}).value().empty());
  fill(root, 5);
  REQUIRE(open_store(root)->put_record(sample_record("second", "3")));
  spill(path_of(root, key_of("r4"), Kind::kRecord), std::string("garbage"));
  const auto found = records_leading_to(root.string(), {key_of("3"), key_of("4"), key_of("none")});
  REQUIRE(found.has_value());
  CHECK(*found == std::unordered_set<base::Digest>{key_of("r3"), key_of("second")});
}

TEST_CASE("collections that race with puts lose nothing that is kept") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  constexpr int kUnits = 150;
  std::vector<std::string> kept;
  std::vector<std::string> requests;
  for (int i = 0; i < kUnits; i += 3) {
    kept.push_back(std::to_string(i));
    requests.push_back("r" + std::to_string(i + 1));
  }
  pin(root, sample_pin("kept", kept, requests));
  std::atomic<bool> is_done{false};
  std::atomic<int> collections{0};
  std::thread collector([&] {
    GcOptions options;
    options.only_keep = true;
    do {
      const auto report = collect(root.string(), options);
      if (report && report->trouble.empty()) ++collections;
    } while (!is_done);
  });
  {
    const auto store = open_store(root);
    for (int i = 0; i < kUnits; ++i) {
      const std::string name = std::to_string(i);
      // This order, because no entry is kept whose record nobody has put yet.
      CHECK(store->put_record(sample_record("r" + name, name)));
      CHECK(store->put(sample_entry(name)));
    }
  }
  is_done = true;
  collector.join();
  CHECK(collections > 0);
  GcOptions options;
  options.only_keep = true;
  run(root, options);
  const auto store = open_store(root);
  for (int i = 0; i < kUnits; ++i) {
    const std::string name = std::to_string(i);
    CAPTURE(name);
    CHECK(store->get(key_of(name)).has_value() == (i % 3 != 2));
    CHECK(store->get_record(key_of("r" + name)).has_value() == (i % 3 == 1));
  }
}

}  // namespace
}  // namespace kc::store::test
