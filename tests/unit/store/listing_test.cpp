// Listing what lies in a store.
#include "store/listing.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

using base::Digest;

Listing open_listing(const fs::path& root, Access access = Access::kRead) {
  auto listing = Listing::open(root.string(), access);
  if (!listing) FAIL(listing.error().text());
  return std::move(*listing);
}

// Keys and, where the file is refused, why.
using Seen = std::vector<std::pair<Digest, std::string>>;

Seen entries_of(const Listing& listing) {
  Seen seen;
  CHECK(listing
            .entries([&](const Listed& listed, const Checked<EntryHeader>& header) {
              seen.emplace_back(listed.key, header ? "" : header.error().why);
              return true;
            })
            .empty());
  return seen;
}

TEST_CASE("a store that is not there lists nothing and is not made") {
  const TemporaryFolder folder;
  const Listing listing = open_listing(folder / "s", Access::kChange);
  CHECK(entries_of(listing).empty());
  CHECK_FALSE(listing.entry(key_of("a")));
  CHECK(listing.bytes(Kind::kEntry, key_of("a"))->has_value() == false);
  CHECK(listing.with_prefix(Kind::kEntry, "abcdef")->empty());
  CHECK(listing.remove(Kind::kEntry, key_of("a")) == false);
  CHECK_FALSE(fs::exists(folder / "s"));
}

TEST_CASE("all entries and records are listed in the order of their keys") {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "s");
  std::vector<Digest> keys;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "k" + std::to_string(i);
    REQUIRE(store->put(sample_entry(name)));
    REQUIRE(store->put_record(sample_record("asked " + name, name)));
    keys.push_back(key_of(name));
  }
  std::sort(keys.begin(), keys.end());
  const Listing listing = open_listing(folder / "s");
  std::vector<Digest> seen;
  CHECK(listing
            .entries([&](const Listed& listed, const Checked<EntryHeader>& header) {
              REQUIRE(header);
              CHECK(header->entry.key == listed.key);
              CHECK(listed.file_bytes == fs::file_size(path_of(folder / "s", listed.key)));
              CHECK(listed.disk_bytes >= listed.file_bytes);
              CHECK(listed.used_s > 1'700'000'000);
              seen.push_back(listed.key);
              return true;
            })
            .empty());
  CHECK(seen == keys);
  size_t records = 0;
  CHECK(listing
            .records([&](const Listed& listed, const Checked<Record>& record) {
              REQUIRE(record);
              CHECK(record->request == listed.key);
              CHECK(listed.kind == Kind::kRecord);
              return ++records < 10;
            })
            .empty());
  CHECK(records == 10);  // false ends the visit
}

TEST_CASE("what is damaged is told with its reason and stays where it is") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->put(sample_entry("good")));
  REQUIRE(store->put(sample_entry("bad")));
  spill(path_of(root, key_of("bad")), std::string("no entry"));
  const fs::path link = path_of(root, key_of("link"));
  fs::create_directories(link.parent_path());
  fs::create_symlink("/etc/hostname", link);
  const Listing listing = open_listing(root);
  const Seen seen = entries_of(listing);
  REQUIRE(seen.size() == 3);
  for (const auto& [key, why] : seen) {
    if (key == key_of("good")) CHECK(why.empty());
    if (key == key_of("bad")) CHECK(why == "is too short for a header");
    if (key == key_of("link")) CHECK(why == "is a symbolic link or a device");
  }
  const auto bytes = listing.bytes(Kind::kEntry, key_of("bad"));
  REQUIRE_FALSE(bytes);
  CHECK(bytes.error().flaw == Flaw::kDamaged);
  CHECK(names_in(root / "v1/tmp").empty());
  CHECK(store->counters().corrupt == 0);
}

TEST_CASE("a file is given as it stands only when all of it is right") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->put(sample_entry("a")));
  REQUIRE(store->put_record(sample_record("asked", "a")));
  const Listing listing = open_listing(root);
  const fs::path entry = path_of(root, key_of("a"));
  CHECK(**listing.bytes(Kind::kEntry, key_of("a")) == slurp(entry));
  CHECK(**listing.bytes(Kind::kRecord, key_of("asked")) ==
        slurp(path_of(root, key_of("asked"), Kind::kRecord)));
  check_equal(**listing.whole_entry(key_of("a")), sample_entry("a"));
  base::Bytes damaged = slurp(entry);
  damaged.back() ^= 1;  // of the payload: the header is still right
  spill(entry, damaged);
  CHECK(listing.entry(key_of("a"))->second);
  CHECK_FALSE(listing.bytes(Kind::kEntry, key_of("a")));
  CHECK_FALSE(listing.whole_entry(key_of("a")));
}

TEST_CASE("keys are found by the digits that they start with") {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "s");
  for (int i = 0; i < 50; ++i) REQUIRE(store->put(sample_entry("k" + std::to_string(i))));
  const Listing listing = open_listing(folder / "s");
  const Digest key = key_of("k7");
  for (const size_t digits : {6, 7, 12, 64}) {
    CHECK(*listing.with_prefix(Kind::kEntry, key.hex().substr(0, digits)) == std::vector<Digest>{key});
  }
  CHECK(listing.with_prefix(Kind::kRecord, key.hex().substr(0, 6))->empty());
  std::string other = key.hex();
  other.back() = other.back() == '0' ? '1' : '0';
  CHECK(listing.with_prefix(Kind::kEntry, other)->empty());
  CHECK_FALSE(listing.with_prefix(Kind::kEntry, "a"));
  CHECK_FALSE(listing.with_prefix(Kind::kEntry, "zz"));
}

TEST_CASE("only what was named is removed and not from a store opened for reading") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->put(sample_entry("a")));
  REQUIRE(store->put(sample_entry("b")));
  REQUIRE(store->put_record(sample_record("a", "a")));
  CHECK_FALSE(open_listing(root).remove(Kind::kEntry, key_of("a")));
  const Listing listing = open_listing(root, Access::kChange);
  CHECK(listing.remove(Kind::kEntry, key_of("a")) == true);
  CHECK(listing.remove(Kind::kEntry, key_of("a")) == false);
  CHECK_FALSE(store->contains(key_of("a")));
  CHECK(store->contains(key_of("b")));
  CHECK(store->recorded(key_of("a")));
  CHECK(listing.remove(Kind::kRecord, key_of("a")) == true);
  CHECK_FALSE(store->recorded(key_of("a")));
}

TEST_CASE("a folder that cannot be believed is told and the others are listed") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->put(sample_entry("a")));
  REQUIRE(store->put(sample_entry("b")));
  const fs::path shard = path_of(root, key_of("a")).parent_path();
  REQUIRE(shard != path_of(root, key_of("b")).parent_path());
  REQUIRE(chmod(shard.c_str(), 0777) == 0);
  const Listing listing = open_listing(root);
  std::vector<Digest> seen;
  const auto unread = listing.entries([&](const Listed& listed, const Checked<EntryHeader>&) {
    seen.push_back(listed.key);
    return true;
  });
  CHECK(unread.size() == 1);
  CHECK(seen == std::vector<Digest>{key_of("b")});
  const auto entry = listing.entry(key_of("a"));
  REQUIRE(entry);
  REQUIRE_FALSE(entry->second);
  CHECK(entry->second.error().flaw == Flaw::kUnreadable);
}

}  // namespace
}  // namespace kc::store::test
