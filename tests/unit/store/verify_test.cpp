// verify: finds all that is damaged and nothing else; with repair it is moved aside.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "store/frozen.h"
#include "store/gc.h"
#include "store/roots.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

VerifyReport run(const fs::path& root, bool repair = false) {
  auto report = verify(root.string(), repair);
  if (!report) FAIL(report.error().text());
  return std::move(*report);
}

// The paths below v1/ of what is damaged.
std::set<std::string> damaged_paths(const VerifyReport& report) {
  std::set<std::string> out;
  for (const std::string& text : report.damaged) out.insert(text.substr(0, text.find(": ")));
  CHECK(out.size() == report.damaged.size());
  return out;
}

struct File {
  Kind kind;
  base::Digest key;

  std::string shown() const { return stored_path(kind, key); }
};

std::vector<File> fill(const fs::path& root, size_t entries, size_t records, std::mt19937_64& random) {
  std::vector<File> out;
  const auto store = open_store(root);
  for (size_t i = 0; i < entries; ++i) {
    Entry entry = sample_entry(std::to_string(i), 20 + random() % 3000);
    if (i % 2 == 0) {  // does not compress
      for (uint8_t& byte : entry.artifact.code) byte = static_cast<uint8_t>(random());
    }
    REQUIRE(store->put(entry));
    out.push_back({Kind::kEntry, entry.key});
  }
  for (size_t i = 0; i < records; ++i) {
    const Record record = sample_record("r" + std::to_string(i), std::to_string(i));
    REQUIRE(store->put_record(record));
    out.push_back({Kind::kRecord, record.request});
  }
  return out;
}

// One random corruption, at random places, of the ways in which files come to harm.
void corrupt(const fs::path& root, const File& file, const File& other, std::mt19937_64& random) {
  const fs::path path = path_of(root, file.key, file.kind);
  base::Bytes bytes = slurp(path);
  switch (random() % 6) {
    case 0:
    case 1: {  // one bit
      bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1U << random() % 8);
      break;
    }
    case 2: {  // one byte, another value for sure
      uint8_t& byte = bytes[random() % bytes.size()];
      byte = static_cast<uint8_t>(byte + 1 + random() % 255);
      break;
    }
    case 3:
      bytes.resize(random() % bytes.size());
      break;
    case 4:  // a whole file of another key, of whatever kind
      bytes = slurp(path_of(root, other.key, other.kind));
      break;
    case 5: {  // what a crash leaves of a file whose blocks were not written
      const size_t from = random() % (bytes.size() - 1);
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
      if (std::all_of(begin, bytes.end(), [](uint8_t byte) { return byte == 0; }))
        bytes[from] = 1;
      else
        std::fill(begin, bytes.end(), static_cast<uint8_t>(0));
      break;
    }
  }
  spill(path, bytes);
}

TEST_CASE("verify finds all of 50 random corruptions in 1000 files and no false one") {
  for (const uint64_t seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const TemporaryFolder folder;
    const fs::path root = folder / "s";
    const std::vector<File> files = fill(root, 700, 300, random);
    CHECK(run(root).damaged.empty());
    std::vector<size_t> order(files.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::set<std::string> expected;
    for (size_t i = 0; i < 50; ++i) {
      corrupt(root, files[order[i]], files[order[i + 50]], random);
      expected.insert(files[order[i]].shown());
    }
    const VerifyReport report = run(root);
    CHECK(report.entries == 700);
    CHECK(report.records == 300);
    CHECK(report.newer.empty());
    CHECK(report.repaired == 0);
    CHECK(damaged_paths(report) == expected);

    const VerifyReport repaired = run(root, true);
    CHECK(damaged_paths(repaired) == expected);
    CHECK(repaired.repaired == 50);
    CHECK(repaired.trouble.empty());
    CHECK(names_in(root / "v1/tmp", "bad-").size() == 50);
    const VerifyReport after = run(root);
    CHECK(after.damaged.empty());
    CHECK(after.entries + after.records == 950);
  }
}

TEST_CASE("repair moves what is damaged as a build does and leaves what is newer or cannot be read") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  std::mt19937_64 random(7);
  const std::vector<File> files = fill(root, 6, 2, random);
  const auto path = [&](size_t i) { return path_of(root, files[i].key, files[i].kind); };
  spill(path(0), std::string("garbage"));
  set_age(path(0), 48 * 3600);
  spill(path(1), build_header(kEntryMagic, kVersion + 1, 0, base::Bytes(9), 0));
  fs::remove(path(2));
  fs::create_directory(path(2));
  fs::permissions(path(3), fs::perms(0666));
  spill(path(6), build_header(kRecordMagic, kVersion + 1, 0, base::Bytes(9), 0));
  spill(path(7), std::string());
  const VerifyReport report = run(root, true);
  CHECK(report.damaged.size() == 4);
  CHECK(report.repaired == 4);
  CHECK(report.newer.size() == 2);
  CHECK(fs::exists(path(1)));
  CHECK(fs::exists(path(6)));
  for (const size_t i : {0U, 2U, 3U, 7U}) {
    CAPTURE(i);
    CHECK_FALSE(fs::exists(path(i)));
    CHECK(names_in(root / "v1/tmp", "bad-" + files[i].key.hex() + "-").size() == 1);
  }
  // It is a day from the move on that they are kept.
  GcOptions none;
  CHECK(collect(root.string(), none).value().temporaries_removed == 0);
  // A miss now, and a good one takes the place.
  const auto store = open_store(root);
  CHECK_FALSE(store->get(files[0].key));
  CHECK(store->put(sample_entry("0")));
  CHECK(run(root).damaged.empty());
}

TEST_CASE("repair of a store that is not there or that others can write changes nothing") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  CHECK(run(root, true).entries == 0);
  CHECK_FALSE(fs::exists(root));
  std::mt19937_64 random(1);
  const std::vector<File> files = fill(root, 2, 0, random);
  const fs::path shard = path_of(root, files[0].key).parent_path();
  spill(path_of(root, files[0].key), std::string("garbage"));
  fs::permissions(shard, fs::perms(0777));
  const VerifyReport report = run(root, true);
  CHECK(report.damaged.size() == 1);  // the folder: nothing in it is looked at
  CHECK(report.repaired == 0);
  CHECK(fs::exists(path_of(root, files[0].key)));
}

}  // namespace
}  // namespace kc::store::test
