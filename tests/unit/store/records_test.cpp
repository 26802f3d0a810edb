// Records in a store: put, got, replaced, damaged, collected.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>

#include "base/digest.h"
#include "store/gc.h"
#include "store/record_codec.h"
#include "store/stats.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

constexpr int64_t kHour = 3600, kDay = 24 * kHour;

fs::path record_path(const fs::path& root, const std::string& name) {
  return path_of(root, key_of(name), Kind::kRecord);
}

TEST_CASE("a record that was put leads to its content key") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  CHECK_FALSE(store->get_record(key_of("a")));
  CHECK_FALSE(store->recorded(key_of("a")));
  CHECK(store->put_record(sample_record("a", "content")));
  const auto back = store->get_record(key_of("a"));
  REQUIRE(back);
  check_equal(*back, sample_record("a", "content"));
  CHECK(store->recorded(key_of("a")) == key_of("content"));
  // A file of its own: the entry of that key is not there, and the other way round.
  CHECK_FALSE(store->get(key_of("content")));
  CHECK_FALSE(store->get(key_of("a")));
  struct stat status;
  REQUIRE(stat(record_path(root, "a").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0444);
  CHECK(names_in(root / "v1/tmp").empty());
  CHECK(store->counters().puts == 0);
  CHECK(store->counters().hits == 0);
  CHECK(store->counters().misses == 3);  // without a record nobody can ask for the entry
}

TEST_CASE("a record of the same content stays and one of another is replaced") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  Record record = sample_record("a", "content");
  REQUIRE(store->put_record(record));
  record.unit = "second";
  CHECK(store->put_record(record));
  CHECK(store->get_record(key_of("a"))->unit == sample_record("a", "content").unit);
  record.content = key_of("other");
  CHECK(store->put_record(record));
  CHECK(store->recorded(key_of("a")) == key_of("other"));
  CHECK(store->get_record(key_of("a"))->unit == "second");
  record.unit = "third";
  const auto refreshing = open_store(root, Mode::kRefresh);
  CHECK_FALSE(refreshing->get_record(key_of("a")));
  CHECK_FALSE(refreshing->recorded(key_of("a")));
  CHECK(refreshing->put_record(record));
  CHECK(store->get_record(key_of("a"))->unit == "third");
}

TEST_CASE("stores that do not write keep records as they are") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  REQUIRE(open_store(root)->put_record(sample_record("a", "content")));
  set_age(record_path(root, "a"), 2 * kHour);
  const auto reading = open_store(root, Mode::kReadOnly);
  CHECK(reading->get_record(key_of("a")).has_value());
  CHECK_FALSE(reading->put_record(sample_record("b", "content")));
  reading->touch_records({key_of("a")});
  CHECK(age_of(record_path(root, "a")) >= 2 * kHour);
  const auto off = open_store(root, Mode::kOff);
  CHECK_FALSE(off->get_record(key_of("a")));
  CHECK_FALSE(off->put_record(sample_record("b", "content")));
  CHECK_FALSE(fs::exists(record_path(root, "b")));
}

TEST_CASE("a damaged record is moved aside and counted and the next put mends it") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->put_record(sample_record("a", "content")));
  base::Bytes bytes = slurp(record_path(root, "a"));
  bytes[100] ^= 1;
  spill(record_path(root, "a"), bytes);
  CHECK_FALSE(store->recorded(key_of("a")));  // looks only
  CHECK(store->counters().corrupt == 0);
  CHECK(fs::exists(record_path(root, "a")));
  CHECK_FALSE(open_store(root, Mode::kReadOnly)->get_record(key_of("a")));
  CHECK(fs::exists(record_path(root, "a")));
  CHECK_FALSE(store->get_record(key_of("a")));
  CHECK(store->counters().corrupt == 1);
  CHECK(store->first_trouble().starts_with(stored_path(Kind::kRecord, key_of("a")) + ": "));
  CHECK_FALSE(fs::exists(record_path(root, "a")));
  CHECK(names_in(root / "v1/tmp", "bad-" + key_of("a").hex()).size() == 1);

  spill(record_path(root, "a"), std::string("garbage"));
  CHECK(store->put_record(sample_record("a", "content")));
  CHECK(store->counters().corrupt == 2);
  CHECK(store->recorded(key_of("a")) == key_of("content"));
}

TEST_CASE("a newer record is a miss that is left alone and the put declined") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->put_record(sample_record("a", "content")));
  const base::Bytes newer = build_header(kRecordMagic, kVersion + 1, 0, base::Bytes(9), 0);
  spill(record_path(root, "a"), newer);
  CHECK_FALSE(store->get_record(key_of("a")));
  CHECK_FALSE(store->put_record(sample_record("a", "content")));
  CHECK(store->counters().declined == 1);
  CHECK(store->counters().corrupt == 0);
  CHECK(slurp(record_path(root, "a")) == newer);
}

TEST_CASE("a folder in a record's place is a soft error for whoever puts and nothing is lost") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->put_record(sample_record("a", "content")));
  fs::remove(record_path(root, "a"));
  fs::create_directory(record_path(root, "a"));
  CHECK(store->put_record(sample_record("a", "content")));  // it was damage, and moved aside
  CHECK(store->counters().corrupt == 1);
  CHECK(store->recorded(key_of("a")) == key_of("content"));
  fs::remove_all(root / "v1/r" / key_of("b").hex().substr(0, 2));
  spill(root / "v1/r" / key_of("b").hex().substr(0, 2), std::string("x"));
  CHECK_FALSE(store->put_record(sample_record("b", "content")));
  CHECK_FALSE(store->get_record(key_of("b")));
  CHECK(store->counters().soft_errors == 2);
}

TEST_CASE("records are marked as used as entries are") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->put_record(sample_record("a", "content")));
  set_age(record_path(root, "a"), kHour / 2);
  CHECK(store->get_record(key_of("a")));
  CHECK(age_of(record_path(root, "a")) >= kHour / 2);
  set_age(record_path(root, "a"), 2 * kHour);
  CHECK(store->recorded(key_of("a")));
  CHECK(age_of(record_path(root, "a")) >= 2 * kHour);
  store->touch_records({key_of("a"), key_of("missing")});
  CHECK(age_of(record_path(root, "a")) >= 2 * kHour);
  CHECK(store->get_record(key_of("a")));
  CHECK(age_of(record_path(root, "a")) < 60);
  set_age(record_path(root, "a"), 2 * kDay);
  store->touch({key_of("a")});  // of entries
  CHECK(age_of(record_path(root, "a")) >= 2 * kDay);
  store->touch_records({key_of("a")});
  CHECK(age_of(record_path(root, "a")) < 60);
}

TEST_CASE("a collection takes entries and records alike by their age") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  for (int i = 0; i < 4; ++i) {
    const std::string name = std::to_string(i);
    REQUIRE(store->put(sample_entry(name)));
    REQUIRE(store->put_record(sample_record("r" + name, name)));
    set_age(path_of(root, key_of(name)), (10 - i) * kHour);
    set_age(record_path(root, "r" + name), (10 - i) * kHour);
  }
  GcOptions options;
  options.dry_run = true;
  options.max_age = std::chrono::seconds(8 * kHour + 60);
  auto report = collect(root.string(), options);
  REQUIRE(report.has_value());
  CHECK(report->entries_before == 4);
  CHECK(report->records_before == 4);
  CHECK(report->entries_removed == 2);
  CHECK(report->records_removed == 2);
  REQUIRE(report->removed.size() == 4);
  CHECK(report->removed[0] == stored_path(Kind::kEntry, key_of("0")));
  CHECK(report->removed[1] == stored_path(Kind::kRecord, key_of("r0")));
  CHECK(fs::exists(record_path(root, "r0")));

  options.dry_run = false;
  REQUIRE(collect(root.string(), options).has_value());
  CHECK_FALSE(fs::exists(record_path(root, "r1")));
  CHECK(fs::exists(record_path(root, "r2")));
  // Records count in the size: what is left is two of each.
  uint64_t left = 0;
  for (const char* name : {"2", "3"}) {
    struct stat status;
    REQUIRE(stat(path_of(root, key_of(name)).c_str(), &status) == 0);
    left += counted_bytes(status);
    REQUIRE(stat(record_path(root, std::string("r") + name).c_str(), &status) == 0);
    left += counted_bytes(status);
  }
  GcOptions sized;
  sized.max_size = left;
  report = collect(root.string(), sized);
  REQUIRE(report.has_value());
  CHECK(report->bytes_before == left);
  CHECK(report->entries_removed + report->records_removed == 0);
  sized.max_size = left - 1;
  report = collect(root.string(), sized);
  REQUIRE(report.has_value());
  CHECK(report->entries_removed == 1);
  CHECK(report->records_removed == 1);  // with the entry that it leads to
  sized.max_size = 0;
  report = collect(root.string(), sized);
  REQUIRE(report.has_value());
  CHECK_FALSE(store->recorded(key_of("r3")));
  CHECK_FALSE(store->contains(key_of("3")));
}

TEST_CASE("stats and verify see records and one whose entry is gone is no damage") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  {
    const auto store = open_store(root);
    for (const char* name : {"a", "b", "c", "d"}) REQUIRE(store->put_record(sample_record(name, "content")));
  }
  auto counted = stats(root.string());
  REQUIRE(counted.has_value());
  CHECK(counted->records == 4);
  CHECK(counted->entries == 0);
  CHECK(counted->bytes >= 4 * 512);
  auto report = verify(root.string());
  REQUIRE(report.has_value());
  CHECK(report->records == 4);
  CHECK(report->damaged.empty());

  base::Bytes bytes = slurp(record_path(root, "a"));
  bytes.back() ^= 1;
  spill(record_path(root, "a"), bytes);
  spill(record_path(root, "b"), slurp(record_path(root, "c")));
  spill(record_path(root, "d"), build_header(kRecordMagic, kVersion + 1, 0, base::Bytes(9), 0));
  report = verify(root.string());
  REQUIRE(report.has_value());
  CHECK(report->damaged.size() == 2);
  REQUIRE(report->newer.size() == 1);
  CHECK(report->newer[0].starts_with(stored_path(Kind::kRecord, key_of("d")) + ": "));
}

TEST_CASE("a put of a record can draw a collection too") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root, Mode::kReadWrite, 4096);
  for (int i = 0; i < 8; ++i) {
    REQUIRE(store->put_record(sample_record(std::to_string(i), "content")));
    set_age(record_path(root, std::to_string(i)), 100 - i);
  }
  store->collect_if_due();
  CHECK(stats(root.string())->records == 0);  // even one takes more than 80 % of this limit
}

}  // namespace
}  // namespace kc::store::test
