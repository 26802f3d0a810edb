#include "store/layout.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

const std::string kHex64(64, 'a');

TEST_CASE("names of entries and records are accepted in exactly one form and folder") {
  const base::Digest key = key_of("x");
  for (const Kind kind : kKinds) {
    CHECK(parse_stored_name(kind, stored_name(kind, key), shard_of(key)) == key);
    CHECK_FALSE(parse_stored_name(kind, stored_name(kind, key), (shard_of(key) + 1) % kShards));
  }
  CHECK(parse_stored_name(Kind::kEntry, kHex64 + ".kce", 0xaa).has_value());
  CHECK(parse_stored_name(Kind::kRecord, kHex64 + ".kcr", 0xaa).has_value());
  CHECK_FALSE(parse_stored_name(Kind::kRecord, kHex64 + ".kce", 0xaa).has_value());
  CHECK(stored_path(Kind::kEntry, *base::parse_digest(kHex64)) == "e/aa/" + kHex64 + ".kce");
  CHECK(stored_path(Kind::kRecord, *base::parse_digest(kHex64)) == "r/aa/" + kHex64 + ".kcr");
  for (const std::string& name :
       {kHex64, kHex64 + ".kcr", kHex64 + ".kce~", kHex64 + ".KCE", "." + kHex64 + ".kce",
        std::string(64, 'A') + ".kce", std::string(63, 'a') + ".kce", std::string()}) {
    CAPTURE(name);
    CHECK_FALSE(parse_stored_name(Kind::kEntry, name, 0xaa));
  }
}

TEST_CASE("names in tmp are recognized as they are made and in no other form") {
  CHECK(parse_temporary_name(new_file_name()).value().kind == TemporaryKind::kNew);
  CHECK(parse_temporary_name(new_file_name()).value().pid == getpid());
  CHECK(parse_temporary_name(job_name()).value().kind == TemporaryKind::kJob);
  CHECK(parse_temporary_name(job_name()).value().pid == getpid());
  CHECK(parse_temporary_name(bad_name(key_of("x"))).value().kind == TemporaryKind::kBad);
  CHECK(parse_temporary_name(failed_name(key_of("x"))).value().kind == TemporaryKind::kFailed);
  for (const std::string& name :
       {std::string(), std::string("new-"), std::string("new-1-2"), std::string("new-1-0123456789abcdef"),
        std::string("new-1-2-0123456789abcdeF"), std::string("new-01-2-0123456789abcdef"),
        std::string("new--1-2-0123456789abcdef"), std::string("new-1-2-0123456789abcdef0"),
        std::string("job-0-0123456789abcdef"), std::string("job-99999999999-0123456789abcdef"),
        std::string("job-1-2-0123456789abcdef"), std::string("job-x-0123456789abcdef"), "bad-" + kHex64,
        "bad-" + kHex64 + "_0123456789abcdef", "bad-" + kHex64 + "-0123456789abcde",
        "bad-" + std::string(64, 'g') + "-0123456789abcdef", "failed-" + kHex64 + "0",
        std::string("failed-x"), std::string("notes.txt")}) {
    CAPTURE(name);
    CHECK_FALSE(parse_temporary_name(name));
  }
}

TEST_CASE("a missing root is made 0700 with what is missing above it and tagged as a cache") {
  const TemporaryFolder folder;
  const fs::path root = folder / "a/b/store";
  open_store(root);
  CHECK((fs::status(root).permissions() & fs::perms::mask) == fs::perms::owner_all);
  const base::Bytes tag = slurp(root / "CACHEDIR.TAG");
  CHECK(base::as_text(tag).starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
  CHECK(fs::is_directory(root / "v1/e"));
}

TEST_CASE("a root that group or others can write is refused with a hint and 0755 is fine") {
  const TemporaryFolder folder;
  const fs::path root = folder / "store";
  fs::create_directory(root);
  for (const unsigned mode : {0770U, 0720U, 0702U, 01777U}) {
    CAPTURE(mode);
    fs::permissions(root, fs::perms(mode));
    for (const Mode how : {Mode::kReadWrite, Mode::kReadOnly, Mode::kRefresh}) {
      const auto store = Store::open({root.string(), how});
      REQUIRE_FALSE(store.has_value());
      CHECK(store.error().kind == base::ErrorKind::kEnvironment);
      CHECK(store.error().place.file == root.string());
      CHECK(store.error().hint.find("chmod go-w") != std::string::npos);
    }
  }
  fs::permissions(root, fs::perms(0755));
  CHECK(Store::open({root.string()}).has_value());
}

TEST_CASE("folders below the root are held to the same rule") {
  const TemporaryFolder folder;
  const fs::path root = folder / "store";
  open_store(root);
  for (const char* name : {"v1", "v1/e", "v1/r", "v1/tmp", "v1/state"}) {
    CAPTURE(name);
    fs::permissions(root / name, fs::perms(0777));
    CHECK_FALSE(Store::open({root.string()}).has_value());
    fs::permissions(root / name, fs::perms(0755));
  }
  CHECK(Store::open({root.string()}).has_value());
}

TEST_CASE("trust is for the user alone and for reading also for root") {
  std::string hint;
  struct stat status {};
  status.st_mode = S_IFDIR | 0755;
  status.st_uid = 1000;
  CHECK_FALSE(distrust(status, Access::kMake, 1000, hint));
  CHECK(distrust(status, Access::kMake, 1001, hint).has_value());
  CHECK_FALSE(hint.empty());
  CHECK(distrust(status, Access::kRead, 1001, hint).has_value());
  CHECK(distrust(status, Access::kRead, 0, hint).has_value());
  status.st_uid = 0;
  CHECK_FALSE(distrust(status, Access::kRead, 1000, hint));
  CHECK(distrust(status, Access::kMake, 1000, hint).has_value());
  CHECK(distrust(status, Access::kChange, 1000, hint).has_value());
}

TEST_CASE("a root of another user is refused") {
  const TemporaryFolder folder;
  const fs::path root = folder / "store";
  fs::create_directory(root);
  if (chown(root.c_str(), 12345, 12345) != 0) {
    MESSAGE("not run: only root can give a folder away");
    return;
  }
  const auto store = Store::open({root.string()});
  REQUIRE_FALSE(store.has_value());
  CHECK(store.error().kind == base::ErrorKind::kEnvironment);
  CHECK(store.error().message.find("12345") != std::string::npos);
}

TEST_CASE("a root behind a symbolic link works and links below it are refused") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "real");
  fs::permissions(folder / "real", fs::perms(0700));
  fs::create_directory_symlink(folder / "real", folder / "link");
  const auto store = open_store(folder / "link");
  CHECK(store->put(sample_entry("a")));
  CHECK(fs::exists(path_of(folder / "real", key_of("a"))));
  const auto work = store->make_work_folder();
  REQUIRE(work.has_value());
  CHECK(work->starts_with((folder / "real").string()));

  for (const char* name : {"v1/e", "v1/r", "v1/tmp", "v1/state", "v1/stats.d", "v1"}) {
    CAPTURE(name);
    const fs::path target = folder / "elsewhere";
    fs::rename(folder / "real" / name, target);
    fs::create_directory_symlink(target, folder / "real" / name);
    const auto refused = Store::open({(folder / "link").string()});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.find("symbolic link") != std::string::npos);
    fs::remove(folder / "real" / name);
    fs::rename(target, folder / "real" / name);
  }
}

TEST_CASE("a root that cannot be made is an error of the environment") {
  const TemporaryFolder folder;
  spill(folder / "file", std::string("x"));
  for (const char* name : {"file", "file/store"}) {
    const auto store = Store::open({(folder / name).string()});
    REQUIRE_FALSE(store.has_value());
    CHECK(store.error().kind == base::ErrorKind::kEnvironment);
  }
  CHECK_FALSE(Store::open({""}).has_value());
  fs::create_symlink(folder / "nowhere", folder / "dangling");
  CHECK_FALSE(Store::open({(folder / "dangling").string()}).has_value());
}

TEST_CASE("a store whose lock file cannot be written is refused with a hint to read only") {
  const TemporaryFolder folder;
  const fs::path root = folder / "store";
  open_store(root);
  fs::remove(root / "v1/locks");
  fs::create_directory(root / "v1/locks");  // root may write everything, but not this
  const auto store = Store::open({root.string()});
  REQUIRE_FALSE(store.has_value());
  CHECK(store.error().kind == base::ErrorKind::kEnvironment);
  CHECK(store.error().hint.find("--store-mode=ro") != std::string::npos);
  CHECK(Store::open({root.string(), Mode::kReadOnly}).has_value());
}

}  // namespace
}  // namespace kc::store::test
