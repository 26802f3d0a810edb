#include "store/store.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "store/entry_codec.h"
#include "store/gc.h"
#include "store/key_locks.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

using base::Bytes;

Bytes newer_entry(const Entry& entry) {
  Bytes fields(40, 7);
  Bytes out = build_header(kEntryMagic, kVersion + 1, 0x100, fields, 3);
  out.insert(out.end(), {entry.key.bytes[0], 2, 3});
  return out;
}

TEST_CASE("what was put is a hit in this and in another store object") {
  const TemporaryFolder folder;
  const auto a = open_store(folder / "s"), b = open_store(folder / "s");
  const Entry entry = sample_entry("a");
  CHECK_FALSE(a->get(entry.key));
  CHECK_FALSE(a->contains(entry.key));
  CHECK(a->put(entry));
  for (Store* store : {a.get(), b.get()}) {
    CHECK(store->contains(entry.key));
    const auto got = store->get(entry.key);
    REQUIRE(got.has_value());
    check_equal(*got, entry);
  }
  CHECK(a->counters().hits == 1);
  CHECK(a->counters().misses == 1);
  CHECK(a->counters().puts == 1);
  CHECK(a->first_trouble().empty());
  CHECK(names_in(folder / "s/v1/tmp").empty());
  struct stat status;
  REQUIRE(stat(path_of(folder / "s", entry.key).c_str(), &status) == 0);
  CHECK((status.st_mode & 0222) == 0);
  CHECK(status.st_nlink == 1);
}

TEST_CASE("an answer without code is told from code by its header") {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "s");
  Entry answer = sample_entry("a", 0);
  answer.unsupported = true;
  REQUIRE(store->put(answer));
  REQUIRE(store->put(sample_entry("b")));
  CHECK(store->holds(key_of("a")) == store::Held::kUnsupported);
  CHECK(store->holds(key_of("b")) == store::Held::kCode);
  CHECK(store->holds(key_of("c")) == store::Held::kNothing);
  CHECK(store->contains(key_of("a")));
}

TEST_CASE("a second put of one key succeeds and leaves the first in place") {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "s");
  CHECK(store->put(sample_entry("a")));
  const Bytes before = slurp(path_of(folder / "s", key_of("a")));
  Entry again = sample_entry("a");
  again.seconds = 9;
  CHECK(store->put(again));
  CHECK(slurp(path_of(folder / "s", key_of("a"))) == before);
  CHECK(store->counters().puts == 1);
  CHECK(store->counters().soft_errors == 0);
  CHECK(names_in(folder / "s/v1/tmp").empty());
}

TEST_CASE("every byte that flips in a stored entry makes a miss that is counted and healed by a put") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root), reader = open_store(root, Mode::kReadOnly);
  const Entry entry = sample_entry("a", 40);
  REQUIRE(store->put(entry));
  const fs::path path = path_of(root, entry.key);
  Bytes bytes = slurp(path);
  for (size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] ^= 0x55;
    spill(path, bytes);
    REQUIRE_FALSE(reader->get(entry.key));
    REQUIRE(slurp(path) == bytes);  // read-only: it stays
    REQUIRE_FALSE(store->get(entry.key));
    REQUIRE_FALSE(fs::exists(path));
    bytes[at] ^= 0x55;
  }
  CHECK(store->counters().corrupt == bytes.size());
  CHECK(reader->counters().corrupt == bytes.size());
  const auto bad = names_in(root / "v1/tmp", "bad-" + entry.key.hex() + "-");
  CHECK(bad.size() == bytes.size());
  CHECK(age_of(root / "v1/tmp" / bad[0]) < 60);
  CHECK(store->put(entry));
  CHECK(store->get(entry.key).has_value());
}

TEST_CASE("every truncation of a stored entry is a miss") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  const Entry entry = sample_entry("a", 40);
  REQUIRE(store->put(entry));
  const Bytes bytes = slurp(path_of(root, entry.key));
  for (size_t size = 0; size < bytes.size(); ++size) {
    spill(path_of(root, entry.key), base::ByteView(bytes).first(size));
    REQUIRE_FALSE(store->get(entry.key));
  }
  CHECK(store->counters().corrupt == bytes.size());
}

TEST_CASE("an entry under the name of another key is a miss and moved aside") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->put(sample_entry("a")));
  REQUIRE(store->put(sample_entry("b")));
  spill(path_of(root, key_of("b")), slurp(path_of(root, key_of("a"))));
  CHECK_FALSE(store->contains(key_of("b")));
  CHECK_FALSE(store->get(key_of("b")));
  CHECK(store->counters().corrupt == 1);
  CHECK_FALSE(fs::exists(path_of(root, key_of("b"))));
  CHECK(store->get(key_of("a")).has_value());
}

TEST_CASE("an entry of a newer version is a miss and stays and a put is declined") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const Entry entry = sample_entry("a");
  for (const Mode mode : {Mode::kReadWrite, Mode::kRefresh}) {
    const auto store = open_store(root, mode);
    store->put(entry);
    const Bytes newer = newer_entry(entry);
    spill(path_of(root, entry.key), newer);
    CHECK_FALSE(store->get(entry.key));
    CHECK_FALSE(store->contains(entry.key));
    CHECK_FALSE(store->put(entry));
    CHECK(store->counters().declined == 1);
    CHECK(store->counters().corrupt == 0);
    CHECK(store->counters().soft_errors == 0);
    CHECK(slurp(path_of(root, entry.key)) == newer);
    CHECK(names_in(root / "v1/tmp").empty());
    fs::remove(path_of(root, entry.key));
  }
}

TEST_CASE("a put replaces a damaged entry that nobody read before") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  for (const Mode mode : {Mode::kReadWrite, Mode::kRefresh}) {
    const auto store = open_store(root, mode);
    REQUIRE(store->put(sample_entry("a")));
    spill(path_of(root, key_of("a")), std::string("garbage"));
    CHECK(store->put(sample_entry("a")));
    CHECK(store->counters().corrupt == 1);
    CHECK(open_store(root)->get(key_of("a")).has_value());
  }
}

TEST_CASE("links and folders in the place of an entry are never followed and make way") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  const Entry entry = sample_entry("a");
  REQUIRE(store->put(entry));
  const fs::path path = path_of(root, entry.key);
  fs::rename(path, folder / "outside");
  fs::create_symlink(folder / "outside", path);
  CHECK_FALSE(store->get(entry.key));
  CHECK(fs::exists(folder / "outside"));
  fs::create_directory(path);
  CHECK_FALSE(store->contains(entry.key));
  CHECK(store->put(entry));
  CHECK(store->get(entry.key).has_value());
  CHECK(store->counters().corrupt == 2);
  CHECK(names_in(root / "v1/tmp", "bad-").size() == 2);
}

TEST_CASE("an entry that others can write is not believed") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->put(sample_entry("a")));
  fs::permissions(path_of(root, key_of("a")), fs::perms(0666));
  CHECK_FALSE(store->get(key_of("a")));
  CHECK(store->counters().corrupt == 1);
}

TEST_CASE("a two digit folder that is a link makes soft errors and is not followed") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  const Entry entry = sample_entry("a");
  REQUIRE(store->put(entry));
  const fs::path shard = path_of(root, entry.key).parent_path();
  fs::rename(shard, folder / "moved");
  fs::create_directory_symlink(folder / "moved", shard);
  CHECK_FALSE(store->get(entry.key));
  CHECK_FALSE(store->put(entry));
  CHECK_FALSE(store->contains(entry.key));
  CHECK(store->counters().soft_errors == 2);
  CHECK(store->first_trouble().find("symbolic link") != std::string::npos);
}

TEST_CASE("a put that the file system refuses is a soft error and leaves nothing behind") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  const Entry entry = sample_entry("a");
  const fs::path shard = path_of(root, entry.key).parent_path();
  spill(shard, std::string("a file where a folder belongs"));
  CHECK_FALSE(store->put(entry));
  CHECK(store->counters().soft_errors == 1);
  CHECK_FALSE(store->first_trouble().empty());
  fs::remove(shard);
  CHECK(names_in(root / "v1/tmp").empty());
  fs::remove(root / "v1/tmp");
  CHECK_FALSE(store->put(entry));
  store->remember_failure(entry.key, base::as_bytes("x"));
  CHECK_FALSE(store->save_state(entry.key, base::as_bytes("x")));
  CHECK_FALSE(store->make_work_folder().has_value());
  CHECK(store->counters().soft_errors == 4);
}

// Sets a soft limit of this process while it lives.
class Limited {
 public:
  Limited(__rlimit_resource which, rlim_t most) : which_(which) {
    REQUIRE(getrlimit(which_, &before_) == 0);
    const rlimit limit{most, before_.rlim_max};
    REQUIRE(setrlimit(which_, &limit) == 0);
  }
  ~Limited() { setrlimit(which_, &before_); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  __rlimit_resource which_;
  rlimit before_{};
};

TEST_CASE("a put that can only write a part leaves nothing behind") {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "s");
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  bool put = true;
  {
    const Limited limited(RLIMIT_FSIZE, 100);  // as a disk that fills up in the middle of the file
    put = store->put(sample_entry("a"));
  }
  signal(SIGXFSZ, handler);
  CHECK_FALSE(put);
  CHECK(store->counters().soft_errors == 1);
  CHECK(store->counters().puts == 0);
  CHECK_FALSE(fs::exists(path_of(folder / "s", key_of("a"))));
  CHECK(names_in(folder / "s/v1/tmp").empty());
}

TEST_CASE("an entry that cannot be opened is a soft error and stays") {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "s");
  REQUIRE(store->put(sample_entry("a")));
  const int next = dup(0);
  REQUIRE(next >= 0);
  close(next);
  std::optional<Entry> without_any, without_second;
  bool put = true;
  {
    const Limited limited(RLIMIT_NOFILE, static_cast<rlim_t>(next));
    without_any = store->get(key_of("a"));
  }
  {
    const Limited limited(RLIMIT_NOFILE, static_cast<rlim_t>(next) + 1);  // the folder opens, the entry not
    without_second = store->get(key_of("a"));
    put = store->put(sample_entry("b"));
  }
  CHECK_FALSE(without_any);
  CHECK_FALSE(without_second);
  CHECK_FALSE(put);
  CHECK(store->counters().soft_errors == 3);
  CHECK(store->counters().corrupt == 0);
  CHECK(store->get(key_of("a")).has_value());
}

TEST_CASE("a put without permission is a soft error") {
  if (geteuid() == 0) {
    MESSAGE("not run: nothing is forbidden to root");
    return;
  }
  const TemporaryFolder folder;
  const auto store = open_store(folder / "s");
  fs::permissions(folder / "s/v1/tmp", fs::perms(0500));
  CHECK_FALSE(store->put(sample_entry("a")));
  CHECK(store->counters().soft_errors == 1);
  fs::permissions(folder / "s/v1/tmp", fs::perms(0700));
}

TEST_CASE("an entry larger than 80 percent of the limit is declined") {
  const TemporaryFolder folder;
  const Entry entry = sample_entry("a");
  const size_t size = encode_entry(entry)->size();
  const auto small = open_store(folder / "s", Mode::kReadWrite, size * 5 / 4 - 2);
  CHECK_FALSE(small->put(entry));
  CHECK(small->counters().declined == 1);
  CHECK(small->counters().soft_errors == 0);
  CHECK(open_store(folder / "s", Mode::kReadWrite, size * 5 / 4 + 5)->put(entry));
  CHECK(open_store(folder / "t", Mode::kReadWrite, 0)->put(entry));
}

TEST_CASE("an entry that the format cannot hold is declined") {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "s");
  Entry entry = sample_entry("a");
  entry.kernel.assign(2U << 20, 'x');
  CHECK_FALSE(store->put(entry));
  CHECK(store->counters().declined == 1);
  CHECK_FALSE(store->put(sample_entry("b", 0)));
  CHECK(store->counters().soft_errors == 1);
}

TEST_CASE("a hit sets the time of last use at most once an hour and never in a read only store") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root), reader = open_store(root, Mode::kReadOnly);
  const Entry entry = sample_entry("a");
  REQUIRE(store->put(entry));
  const fs::path path = path_of(root, entry.key);
  set_age(path, 3000);
  CHECK(store->get(entry.key).has_value());
  CHECK(age_of(path) >= 3000);
  set_age(path, 4000);
  CHECK(reader->get(entry.key).has_value());
  CHECK(age_of(path) >= 4000);
  CHECK(store->get(entry.key).has_value());
  CHECK(age_of(path) < 60);
  set_age(path, -100000);  // a clock that was wrong must not keep it for ever
  CHECK(store->get(entry.key).has_value());
  CHECK(age_of(path) >= 0);
}

TEST_CASE("touch marks entries that were not used for a day and no others") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  for (const char* name : {"a", "b"}) REQUIRE(store->put(sample_entry(name)));
  set_age(path_of(root, key_of("a")), 90000);
  set_age(path_of(root, key_of("b")), 80000);
  const std::vector<base::Digest> keys = {key_of("missing"), key_of("b"), key_of("a")};
  open_store(root, Mode::kReadOnly)->touch(keys);
  CHECK(age_of(path_of(root, key_of("a"))) >= 90000);
  store->touch(keys);
  CHECK(age_of(path_of(root, key_of("a"))) < 60);
  CHECK(age_of(path_of(root, key_of("b"))) >= 80000);
  CHECK(store->counters().soft_errors == 0);
}

TEST_CASE("a read only store makes nothing and a missing one is all misses") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root, Mode::kReadOnly);
  CHECK_FALSE(store->get(key_of("a")));
  CHECK_FALSE(store->contains(key_of("a")));
  CHECK_FALSE(store->put(sample_entry("a")));
  store->touch({key_of("a")});
  store->remember_failure(key_of("a"), base::as_bytes("x"));
  CHECK_FALSE(store->recent_failure(key_of("a")));
  CHECK_FALSE(store->load_state(key_of("a")));
  CHECK_FALSE(store->save_state(key_of("a"), base::as_bytes("x")));
  const auto work = store->make_work_folder();
  REQUIRE_FALSE(work.has_value());
  CHECK(work.error().kind == base::ErrorKind::kEnvironment);
  store->collect_if_due();
  CHECK(store->locks() == nullptr);
  CHECK(store->counters().misses == 1);
  CHECK(store->counters().soft_errors == 0);
  CHECK_FALSE(fs::exists(root));
}

TEST_CASE("a read only store reads one that has lost some of its folders") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  REQUIRE(open_store(root)->put(sample_entry("a")));
  for (const char* name : {"r", "tmp", "state", "stats.d", "locks", "gc.lock"}) {
    fs::remove_all(root / "v1" / name);
  }
  const auto store = open_store(root, Mode::kReadOnly);
  CHECK(store->get(key_of("a")).has_value());
  CHECK_FALSE(store->load_state(key_of("a")));
  CHECK_FALSE(store->recent_failure(key_of("a")));
  CHECK_FALSE(store->get_record(key_of("a")));
  CHECK(names_in(root / "v1").size() == 1);
  fs::remove_all(root / "v1/e");
  CHECK_FALSE(open_store(root, Mode::kReadOnly)->get(key_of("a")));
}

TEST_CASE("a store that is off opens nothing") {
  const TemporaryFolder folder;
  spill(folder / "s", std::string("not even a folder"));
  const auto store = open_store(folder / "s", Mode::kOff);
  CHECK_FALSE(store->get(key_of("a")));
  CHECK_FALSE(store->put(sample_entry("a")));
  CHECK(store->locks() == nullptr);
  CHECK_FALSE(store->save_state(key_of("a"), {}));
  CHECK(store->counters().soft_errors == 0);
}

TEST_CASE("refresh gives no hits and replaces what is there") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  REQUIRE(open_store(root)->put(sample_entry("a")));
  const auto store = open_store(root, Mode::kRefresh);
  CHECK_FALSE(store->get(key_of("a")));
  CHECK_FALSE(store->contains(key_of("a")));
  Entry again = sample_entry("a");
  again.seconds = 9;
  CHECK(store->put(again));
  CHECK(open_store(root)->get(key_of("a")).value().seconds == 9);
  CHECK(store->locks() != nullptr);
}

TEST_CASE("a store copied as a container copies it works with all hits") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s", copy = folder / "copy";
  {
    const auto store = open_store(root);
    for (int i = 0; i < 20; ++i) REQUIRE(store->put(sample_entry(std::to_string(i))));
  }
  fs::copy(root, copy, fs::copy_options::recursive);
  fs::permissions(copy, fs::perms(0755));
  for (const auto& item : fs::recursive_directory_iterator(copy)) {
    fs::permissions(item.path(), fs::perms(item.is_directory() ? 0755 : 0644));
  }
  for (const Mode mode : {Mode::kReadOnly, Mode::kReadWrite}) {
    const auto store = open_store(copy, mode);
    for (int i = 0; i < 20; ++i) CHECK(store->get(key_of(std::to_string(i))).has_value());
    CHECK(store->counters().misses == 0);
  }
}

TEST_CASE("two store objects exclude each other by key") {
  const TemporaryFolder folder;
  const auto a = open_store(folder / "s"), b = open_store(folder / "s");
  REQUIRE(a->locks() != nullptr);
  REQUIRE(b->locks() != nullptr);
  CHECK(a->locks()->try_lock(key_of("k")) == KeyLocks::Answer::kHeld);
  CHECK(b->locks()->try_lock(key_of("k")) == KeyLocks::Answer::kBusy);
  a->locks()->unlock(key_of("k"));
  CHECK(b->locks()->try_lock(key_of("k")) == KeyLocks::Answer::kHeld);
}

TEST_CASE("a failure is remembered for a minute and only whole") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto a = open_store(root), b = open_store(root);
  CHECK_FALSE(b->recent_failure(key_of("k")));
  a->remember_failure(key_of("k"), base::as_bytes("it does not compile"));
  const auto what = b->recent_failure(key_of("k"));
  REQUIRE(what.has_value());
  CHECK(base::as_text(*what) == "it does not compile");
  CHECK_FALSE(b->recent_failure(key_of("other")));
  const fs::path path = root / "v1/tmp" / failed_name(key_of("k"));
  set_age(path, 61);
  CHECK_FALSE(b->recent_failure(key_of("k")));
  Bytes bytes = slurp(path);
  bytes.back() ^= 1;
  spill(path, bytes);
  CHECK_FALSE(b->recent_failure(key_of("k")));
  CHECK(b->counters().corrupt == 1);
  const auto names = names_in(root / "v1/tmp");
  CHECK(names == std::vector<std::string>{failed_name(key_of("k"))});
}

TEST_CASE("work folders are new and private and below the store") {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "s");
  const auto a = store->make_work_folder(), b = store->make_work_folder();
  REQUIRE(a.has_value());
  REQUIRE(b.has_value());
  CHECK(*a != *b);
  CHECK(fs::path(*a).is_absolute());
  CHECK(fs::path(*a).parent_path() == folder / "s/v1/tmp");
  CHECK((fs::status(*a).permissions() & fs::perms::mask) == fs::perms::owner_all);
  CHECK(parse_temporary_name(fs::path(*a).filename().string()).value().pid == getpid());
}

TEST_CASE("threads that put and get while entries are collected see right entries or none") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  std::atomic<int> wrong{0}, running{4};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) {
        const Entry entry = sample_entry(std::to_string((i * 7 + t) % 20));
        if (!store->put(entry)) ++wrong;
        const auto got = store->get(entry.key);
        if (got && got->artifact != entry.artifact) ++wrong;
      }
      --running;
    });
  }
  while (running > 0) {
    GcOptions options;
    options.max_size = 8 * 4096;
    if (!collect(root.string(), options)) ++wrong;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(store->counters().corrupt == 0);
  CHECK(store->counters().soft_errors == 0);
  CHECK(names_in(root / "v1/tmp").empty());
  CHECK(verify(root.string()).value().damaged.empty());
}

}  // namespace
}  // namespace kc::store::test
