// A store over others that are only read.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "store/key_locks.h"
#include "store/stats.h"
#include "store/store.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

// A folder with two stores that are to be read only, `one` and `two`, beside the user's own.
class Places {
 public:
  fs::path own() const { return folder_ / "own"; }
  fs::path one() const { return folder_ / "one"; }
  fs::path two() const { return folder_ / "two"; }

  std::unique_ptr<Store> open(Mode mode = Mode::kReadWrite) const {
    auto store = Store::open({own().string(), mode, 5ULL << 30, {one().string(), two().string()}});
    if (!store) FAIL(store.error().text());
    return std::move(*store);
  }

 private:
  TemporaryFolder folder_;
};

// As sample_entry(), told from others of its key by the seconds.
Entry entry_of(const std::string& name, double seconds) {
  Entry entry = sample_entry(name);
  entry.seconds = seconds;
  return entry;
}

// Every name below a folder with all that a write, a touch or a change of mode would change.
std::map<std::string, std::string> picture(const fs::path& root) {
  std::map<std::string, std::string> out;
  const auto add = [&](const fs::path& path) {
    struct stat s;
    REQUIRE(lstat(path.c_str(), &s) == 0);
    std::string text;
    for (const auto number :
         {static_cast<int64_t>(s.st_ino), static_cast<int64_t>(s.st_mode), static_cast<int64_t>(s.st_nlink),
          static_cast<int64_t>(s.st_size), static_cast<int64_t>(s.st_mtim.tv_sec),
          static_cast<int64_t>(s.st_mtim.tv_nsec), static_cast<int64_t>(s.st_ctim.tv_sec),
          static_cast<int64_t>(s.st_ctim.tv_nsec)}) {
      text += std::to_string(number) + " ";
    }
    out[path.string()] = text;
  };
  if (!fs::exists(root)) return out;
  add(root);
  for (const auto& item : fs::recursive_directory_iterator(root)) add(item.path());
  return out;
}

// Everything that a build does with a store.
void use(Store& store) {
  for (const char* name : {"a", "b", "damaged", "none"}) {
    (void)store.get(key_of(name));
    (void)store.holds(key_of(name));
    (void)store.get_record(key_of(name));
    (void)store.recorded(key_of(name));
  }
  store.put(entry_of("a", 1));
  store.put(entry_of("new", 1));
  store.put_record(sample_record("a", "a"));
  store.touch({key_of("a"), key_of("b")});
  store.touch_records({key_of("a"), key_of("b")});
  if (store.locks() != nullptr) {
    CHECK(store.locks()->try_lock(key_of("a")) == KeyLocks::Answer::kHeld);
    store.locks()->unlock(key_of("a"));
  }
  store.remember_failure(key_of("a"), base::as_bytes("x"));
  (void)store.recent_failure(key_of("a"));
  (void)store.keep_output(key_of("a"), base::as_bytes("x"));
  (void)store.keep_repro(key_of("a"), Repro{});
  (void)store.make_work_folder();
  (void)store.load_state(key_of("a"));
  store.save_state(key_of("a"), base::as_bytes("x"));
  store.collect_if_due();
}

TEST_CASE("the own store is looked into first and then the others in their order") {
  const Places places;
  const auto store = places.open();
  REQUIRE(open_store(places.two())->put(entry_of("a", 30)));
  CHECK_FALSE(store->get(key_of("a")));  // the folder was not there when the store was opened
  REQUIRE(open_store(places.one())->put(entry_of("b", 20)));
  REQUIRE(open_store(places.two())->put(entry_of("b", 30)));
  REQUIRE(open_store(places.two())->put(entry_of("c", 30)));
  const auto again = places.open();
  CHECK(again->get(key_of("b"))->seconds == 20);
  CHECK(again->get(key_of("c"))->seconds == 30);
  CHECK(again->holds(key_of("c")) == Held::kCode);
  CHECK(again->put(entry_of("b", 10)));  // what is under it does not count
  CHECK(again->get(key_of("b"))->seconds == 10);
  CHECK(again->counters().hits == 3);
  CHECK(again->counters().misses == 0);
  CHECK(again->counters().puts == 1);
  CHECK(again->counters().saved_ms == 60000);
  CHECK(open_store(places.one(), Mode::kReadOnly)->get(key_of("b"))->seconds == 20);
}

TEST_CASE("records are looked up in the same order and may lead to an entry in another store") {
  const Places places;
  REQUIRE(open_store(places.one())->put_record(sample_record("r", "one")));
  REQUIRE(open_store(places.two())->put_record(sample_record("r", "two")));
  REQUIRE(open_store(places.two())->put_record(sample_record("s", "two")));
  REQUIRE(open_store(places.two())->put(entry_of("one", 30)));
  const auto store = places.open();
  CHECK(store->get_record(key_of("r"))->content == key_of("one"));
  CHECK(store->recorded(key_of("s")) == key_of("two"));
  CHECK(store->get(store->get_record(key_of("r"))->content).has_value());
  CHECK(store->put_record(sample_record("r", "own")));
  CHECK(store->recorded(key_of("r")) == key_of("own"));
}

TEST_CASE("nothing is ever written to a store that is only read whatever the mode") {
  for (const Mode mode : {Mode::kReadWrite, Mode::kReadOnly, Mode::kRefresh, Mode::kOff}) {
    const Places places;
    for (const fs::path& root : {places.one(), places.two()}) {
      const auto store = open_store(root);
      for (const char* name : {"a", "b", "damaged"}) {
        REQUIRE(store->put(entry_of(name, 2)));
        REQUIRE(store->put_record(sample_record(name, name)));
      }
      for (const Kind kind : kKinds) {
        base::Bytes bytes = slurp(path_of(root, key_of("damaged"), kind));
        bytes.back() ^= 1;
        spill(path_of(root, key_of("damaged"), kind), bytes);
        for (const char* name : {"a", "b", "damaged"}) set_age(path_of(root, key_of(name), kind), 1'000'000);
      }
    }
    const auto one = picture(places.one()), two = picture(places.two());
    use(*places.open(mode));
    CHECK(picture(places.one()) == one);
    CHECK(picture(places.two()) == two);
    // Read-only means the own store, too.
    const auto own = picture(places.own());
    if (mode == Mode::kReadOnly || mode == Mode::kOff) CHECK(own.empty());
    use(*places.open(Mode::kReadOnly));
    CHECK(picture(places.own()) == own);
  }
}

TEST_CASE("a damaged entry of a store that is only read stays and is counted and the next store is asked") {
  const Places places;
  REQUIRE(open_store(places.one())->put(entry_of("a", 20)));
  REQUIRE(open_store(places.two())->put(entry_of("a", 30)));
  const fs::path path = path_of(places.one(), key_of("a"));
  base::Bytes bytes = slurp(path);
  bytes.back() ^= 1;
  spill(path, bytes);
  const auto store = places.open();
  CHECK(store->get(key_of("a"))->seconds == 30);
  CHECK(store->get(key_of("a")).has_value());
  CHECK(store->counters().corrupt == 2);
  CHECK(store->counters().hits == 2);
  CHECK(store->counters().soft_errors == 0);
  CHECK(slurp(path) == bytes);
  CHECK(names_in(places.own() / "v1/tmp").empty());
  CHECK(store->first_trouble().starts_with("the read-only store " + places.one().string() + ": e/"));
}

TEST_CASE("an own entry that is damaged is moved aside and the one below it serves") {
  const Places places;
  REQUIRE(open_store(places.one())->put(entry_of("a", 20)));
  REQUIRE(places.open()->put(entry_of("a", 10)));
  spill(path_of(places.own(), key_of("a")), std::string("garbage"));
  const auto store = places.open();
  CHECK(store->get(key_of("a"))->seconds == 20);
  CHECK(store->counters().corrupt == 1);
  CHECK(names_in(places.own() / "v1/tmp", "bad-").size() == 1);
}

TEST_CASE("an entry that others can write is not believed in a store that is only read") {
  const Places places;
  REQUIRE(open_store(places.one())->put(entry_of("a", 20)));
  fs::permissions(path_of(places.one(), key_of("a")), fs::perms(0646));
  const auto store = places.open();
  CHECK_FALSE(store->get(key_of("a")));
  CHECK(store->counters().corrupt == 1);
}

TEST_CASE("a store under the own one that others can write is left out with one soft error") {
  const Places places;
  REQUIRE(open_store(places.one())->put(entry_of("a", 20)));
  REQUIRE(open_store(places.two())->put(entry_of("a", 30)));
  for (const char* name : {"", "v1", "v1/e"}) {
    fs::permissions(places.one() / name, fs::perms(0775));
    const auto store = places.open();
    CHECK(store->counters().soft_errors == 1);
    CHECK(store->first_trouble().starts_with("the read-only store " + places.one().string() +
                                             " is left out: "));
    CHECK(store->get(key_of("a"))->seconds == 30);
    CHECK(store->counters().soft_errors == 1);
    fs::permissions(places.one() / name, fs::perms(0755));
  }
  CHECK(places.open()->get(key_of("a"))->seconds == 20);
  fs::remove_all(places.one());
  spill(places.one(), std::string("a file"));
  const auto store = places.open();
  CHECK(store->counters().soft_errors == 1);
  CHECK(store->get(key_of("a"))->seconds == 30);
}

TEST_CASE("a store of another user is left out and one of root is not") {
  if (geteuid() != 0) {
    MESSAGE("not run: only root can give files away");
    return;
  }
  const Places places;
  REQUIRE(open_store(places.one())->put(entry_of("a", 20)));
  REQUIRE(chown(places.one().c_str(), 12345, 12345) == 0);
  const auto store = places.open();
  CHECK(store->counters().soft_errors == 1);
  CHECK(store->first_trouble().find("belongs to user 12345") != std::string::npos);
  CHECK_FALSE(store->get(key_of("a")));
  REQUIRE(chown(places.one().c_str(), 0, 0) == 0);
  CHECK(places.open()->get(key_of("a")).has_value());
}

TEST_CASE("what else lies in a store that is only read may be out of reach") {
  const Places places;
  REQUIRE(open_store(places.one())->put(entry_of("a", 20)));
  for (const char* name : {"state", "tmp", "stats.d"})
    fs::permissions(places.one() / "v1" / name, fs::perms(0777));
  const auto store = places.open();
  CHECK(store->get(key_of("a")).has_value());
  CHECK(store->counters().soft_errors == 0);
}

TEST_CASE("a store that is named twice or is the own one is asked once") {
  const Places places;
  REQUIRE(open_store(places.own())->put(entry_of("a", 20)));
  REQUIRE(open_store(places.one())->put(entry_of("b", 20)));
  const std::string one = places.one().string(), own = places.own().string();
  fs::create_directory_symlink(places.one(), places.own() / "link");
  auto store =
      Store::open({own, Mode::kReadOnly, 0, {own, one, one + "/", (places.own() / "link").string()}});
  REQUIRE(store.has_value());
  for (const auto& [root, name] : {std::pair{places.own(), "a"}, std::pair{places.one(), "b"}}) {
    spill(path_of(root, key_of(name)), std::string("garbage"));
    CHECK_FALSE((*store)->get(key_of(name)));
  }
  CHECK((*store)->counters().corrupt == 2);
}

TEST_CASE("each mode reads and writes what it says in the own store and in those under it") {
  struct Expected {
    Mode mode;
    bool reads, writes;
  };
  for (const Expected& expected :
       {Expected{Mode::kReadWrite, true, true}, Expected{Mode::kReadOnly, true, false},
        Expected{Mode::kRefresh, false, true}, Expected{Mode::kOff, false, false}}) {
    const Places places;
    {
      const auto own = open_store(places.own());
      REQUIRE(own->put(entry_of("own", 10)));
      REQUIRE(own->put_record(sample_record("own", "own")));
    }
    REQUIRE(open_store(places.one())->put(entry_of("under", 20)));
    REQUIRE(open_store(places.one())->put_record(sample_record("under", "under")));
    const auto before = picture(places.own());
    {
      const auto store = places.open(expected.mode);
      for (const char* name : {"own", "under"}) {
        CHECK(store->get(key_of(name)).has_value() == expected.reads);
        CHECK(store->contains(key_of(name)) == expected.reads);
        CHECK(store->get_record(key_of(name)).has_value() == expected.reads);
        CHECK(store->recorded(key_of(name)).has_value() == expected.reads);
        CHECK(store->put(entry_of(name, 99)) == expected.writes);
        CHECK(store->put_record(sample_record(name, "elsewhere")) == expected.writes);
      }
      CHECK(store->counters().soft_errors == 0);
      CHECK((store->locks() != nullptr) == expected.writes);
    }
    if (!expected.writes) CHECK(picture(places.own()) == before);
    const auto after = open_store(places.own(), Mode::kReadOnly);
    CHECK(after->get(key_of("own"))->seconds == (expected.mode == Mode::kRefresh ? 99 : 10));
    CHECK(after->contains(key_of("under")) == expected.writes);
    CHECK((after->recorded(key_of("own")) == key_of("elsewhere")) == expected.writes);
    CHECK((stats(places.own().string())->counters.misses != 0) == (expected.mode == Mode::kRefresh));
  }
}

TEST_CASE("a read only store without a folder of its own still looks into those under it") {
  const Places places;
  REQUIRE(open_store(places.one())->put(entry_of("a", 20)));
  auto store = Store::open({{}, Mode::kReadOnly, 0, {places.one().string()}});
  REQUIRE(store.has_value());
  CHECK((*store)->get(key_of("a")).has_value());
  CHECK_FALSE((*store)->put(entry_of("a", 1)));
  CHECK_FALSE((*store)->make_work_folder().has_value());
  CHECK_FALSE(Store::open({{}, Mode::kReadWrite, 0, {places.one().string()}}).has_value());
}

// Answers EIO to whoever opens an entry or a folder of entries below `root`, and counts them.
class BrokenDisk final : public base::FileSystem {
 public:
  explicit BrokenDisk(const fs::path& root) : inode_(inode_of(root / "v1/e")) {}
  int openat(int directory, const char* path, int flags, mode_t mode) override {
    struct stat status;
    if (directory >= 0 && fstat(directory, &status) == 0 && status.st_ino == inode_) {
      ++refused;
      errno = EIO;
      return -1;
    }
    return FileSystem::openat(directory, path, flags, mode);
  }
  int refused = 0;

 private:
  static ino_t inode_of(const fs::path& path) {
    struct stat status;
    REQUIRE(stat(path.c_str(), &status) == 0);
    return status.st_ino;
  }
  const ino_t inode_;
};

TEST_CASE("a store under the own one whose disk fails is given up after a few tries with one line") {
  const Places places;
  REQUIRE(open_store(places.one())->put(entry_of("a", 20)));
  REQUIRE(open_store(places.two())->put(entry_of("a", 30)));
  const auto store = places.open();
  BrokenDisk disk(places.one());
  const base::ReplacedFileSystem replaced(disk);
  for (int i = 0; i < 30; ++i) CHECK(store->get(key_of("a"))->seconds == 30);
  CHECK(disk.refused == 10);
  CHECK(store->counters().soft_errors == 11);
  CHECK(store->first_trouble().starts_with(
      "the read-only store " + places.one().string() +
      " is not asked any more in this run: 10 operations failed in a row"));
}

TEST_CASE("the own store is asked again however often it failed") {
  const Places places;
  const auto store = places.open();
  REQUIRE(store->put(entry_of("a", 10)));
  {
    BrokenDisk disk(places.own());
    const base::ReplacedFileSystem replaced(disk);
    for (int i = 0; i < 30; ++i) CHECK_FALSE(store->get(key_of("a")));
    CHECK_FALSE(store->put(entry_of("b", 10)));
  }
  CHECK(store->counters().soft_errors == 31);
  CHECK(store->get(key_of("a")).has_value());
  CHECK(store->put(entry_of("b", 10)));
}

TEST_CASE("what the engine finds later turns a miss into a hit and counts its seconds") {
  const Places places;
  const auto store = places.open();
  CHECK_FALSE(store->get(key_of("a")));
  CHECK_FALSE(store->get_record(key_of("r")));
  store->found_later(2.5);
  CHECK(store->counters().hits == 1);
  CHECK(store->counters().misses == 1);
  CHECK(store->counters().saved_ms == 2500);
  store->found_later(0);
  store->found_later(0);
  CHECK(store->counters().misses == 0);
}

TEST_CASE("stats list the stores under the own one and say why one is left out") {
  const Places places;
  REQUIRE(open_store(places.one())->put(entry_of("a", 20)));
  REQUIRE(open_store(places.one())->put_record(sample_record("r", "a")));
  REQUIRE(open_store(places.two())->put(entry_of("a", 30)));
  fs::permissions(places.two(), fs::perms(0777));
  const std::string missing = (places.own() / "missing").string();
  const auto before = picture(places.one());
  const auto all = tier_stats({places.one().string(), places.two().string(), missing});
  CHECK(picture(places.one()) == before);
  REQUIRE(all.size() == 3);
  CHECK(all[0].directory == places.one().string());
  CHECK(all[0].entries == 1);
  CHECK(all[0].records == 1);
  CHECK(all[0].bytes >= 600);
  CHECK(all[0].trouble.empty());
  CHECK(all[1].entries == 0);
  CHECK(all[1].trouble.find("can be written by") != std::string::npos);
  CHECK(all[2].entries + all[2].records + all[2].bytes == 0);
  CHECK(all[2].trouble.empty());
}

// A file system without locks, as some network file systems are.
class NoLocks final : public base::FileSystem {
 public:
  int set_lock(int, struct flock*) override {
    errno = ENOLCK;
    return -1;
  }
};

TEST_CASE("stats tell whether the file system has locks") {
  const Places places;
  CHECK_FALSE(stats(places.own().string())->has_locks.has_value());
  places.open();
  CHECK(stats(places.own().string())->has_locks == true);
  const auto before = picture(places.own());
  {
    NoLocks disk;
    const base::ReplacedFileSystem replaced(disk);
    CHECK(stats(places.own().string())->has_locks == false);
    const auto store = places.open();  // and the store works without
    CHECK(store->locks() == nullptr);
  }
  fs::remove(places.own() / "v1/locks");
  CHECK_FALSE(stats(places.own().string())->has_locks.has_value());
  CHECK_FALSE(fs::exists(places.own() / "v1/locks"));
}

}  // namespace
}  // namespace kc::store::test
