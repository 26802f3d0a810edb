// Records and the entries that they lead to go together, and a dry run knows.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "store/gc.h"
#include "store/roots.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

constexpr int64_t kHour = 3600;

fs::path entry_path(const fs::path& root, int i) {
  return path_of(root, key_of(std::to_string(i)));
}
fs::path record_path(const fs::path& root, int i) {
  return path_of(root, key_of("r" + std::to_string(i)), Kind::kRecord);
}

// Units 0 to count - 1, an entry and a record each, used `entry_age` and `record_age` seconds ago.
void fill(const fs::path& root, int count, int64_t entry_age, int64_t record_age) {
  const auto store = open_store(root);
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    REQUIRE(store->put(sample_entry(name)));
    REQUIRE(store->put_record(sample_record("r" + name, name)));
    set_age(entry_path(root, i), entry_age);
    set_age(record_path(root, i), record_age);
  }
}

GcReport run(const fs::path& root, const GcOptions& options) {
  auto report = collect(root.string(), options);
  if (!report) FAIL(report.error().text());
  return std::move(*report);
}

uint64_t unit_bytes(const fs::path& root, int i) {
  uint64_t out = 0;
  for (const fs::path& path : {entry_path(root, i), record_path(root, i)}) {
    struct stat status;
    REQUIRE(lstat(path.c_str(), &status) == 0);
    out += counted_bytes(status);
  }
  return out;
}

void check_pairs(const fs::path& root, int count) {
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    CHECK(fs::exists(entry_path(root, i)) == fs::exists(record_path(root, i)));
  }
}

TEST_CASE("with an entry goes the record that leads to it whichever was used last") {
  struct Ages {
    int64_t entry, record;
  };
  // Equal; entries marked as used before all records, as an unchanged build does; and the other way round.
  for (const Ages ages :
       {Ages{kHour, kHour}, Ages{kHour, kHour - 60}, Ages{24 * kHour, kHour}, Ages{kHour - 60, kHour}}) {
    CAPTURE(ages.entry);
    CAPTURE(ages.record);
    const TemporaryFolder folder;
    const fs::path root = folder / "s";
    constexpr int kCount = 20;
    fill(root, kCount, ages.entry, ages.record);
    GcOptions options;
    const uint64_t unit = unit_bytes(root, 0);
    options.max_size = unit * 8;
    const GcReport report = run(root, options);
    const uint64_t left = report.bytes_before - report.bytes_removed;
    CHECK(left <= *options.max_size);
    if (ages.entry < ages.record) continue;  // records go first, and cost nothing but a link
    check_pairs(root, kCount);
    // No more than needed: what is left lacks less than one unit.
    CHECK(left > *options.max_size - unit);
    CHECK(report.entries_removed == 12);
    CHECK(report.records_removed == 12);
  }
}

TEST_CASE("all records of an entry go with it and none of another") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 3, 5 * kHour, 4 * kHour);
  REQUIRE(open_store(root)->put_record(sample_record("second", "0")));
  set_age(entry_path(root, 0), 10 * kHour);
  GcOptions options;
  options.max_age = std::chrono::hours(9);
  const GcReport report = run(root, options);
  CHECK(report.entries_removed == 1);
  CHECK(report.records_removed == 2);
  CHECK_FALSE(fs::exists(record_path(root, 0)));
  CHECK_FALSE(fs::exists(path_of(root, key_of("second"), Kind::kRecord)));
  check_pairs(root, 3);
  CHECK(fs::exists(record_path(root, 1)));
}

TEST_CASE("a record that leads nowhere goes when it is the least recently used and not before") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root, 3, kHour, kHour);
  fs::remove(entry_path(root, 1));  // by hand, or in a tier below this store
  set_age(entry_path(root, 0), 2 * kHour);
  GcOptions options;
  options.max_age = std::chrono::minutes(90);
  CHECK(run(root, options).records_removed == 1);
  CHECK(fs::exists(record_path(root, 1)));
  set_age(record_path(root, 1), 2 * kHour);
  CHECK(run(root, options).records_removed == 1);
  CHECK_FALSE(fs::exists(record_path(root, 1)));
}

TEST_CASE("a dry run lists exactly what the real run then removes in its order") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  constexpr int kCount = 12;
  fill(root, kCount, kHour, kHour);
  for (int i = 0; i < kCount; i += 2) set_age(entry_path(root, i), (2 + i) * kHour);
  Pin pin;
  pin.name = "a";
  pin.keys.entries.insert(key_of("10"));
  pin.keys.records.insert(key_of("r8"));
  REQUIRE(write_pin(root.string(), pin).has_value());
  const fs::path temporary = root / "v1/tmp" / new_file_name();
  spill(temporary, std::string("x"));
  set_age(temporary, 2 * kHour);
  REQUIRE(open_store(root)->save_state(key_of("state"), base::as_bytes("x")));
  set_age(root / "v1/state" / key_of("state").hex(), 100 * 24 * kHour);

  std::vector<GcOptions> all(4);
  all[0].max_age = std::chrono::hours(7);
  all[1].max_size = unit_bytes(root, 1) * 7;
  all[2].max_size = unit_bytes(root, 1) * 4;
  all[3].only_keep = true;
  for (GcOptions options : all) {
    options.dry_run = true;
    const GcReport told = run(root, options);
    options.dry_run = false;
    options.list_removed = true;
    const GcReport done = run(root, options);
    CHECK(told.removed == done.removed);
    CHECK_FALSE(done.removed.empty());
    CHECK(told.bytes_removed == done.bytes_removed);
    CHECK(told.entries_kept == done.entries_kept);
    for (const std::string& path : done.removed) CHECK_FALSE(fs::exists(root / "v1" / path));
  }
  CHECK(fs::exists(entry_path(root, 10)));
  CHECK(fs::exists(entry_path(root, 8)));
  CHECK_FALSE(fs::exists(entry_path(root, 6)));
}

}  // namespace
}  // namespace kc::store::test
