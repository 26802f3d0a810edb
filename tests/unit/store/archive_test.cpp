// Archives: what went in comes out, what is wrong is found, and nothing hostile takes memory.
#include "store/archive.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "store/archive_format.h"
#include "store/entry_codec.h"
#include "store/frozen.h"
#include "store/record_codec.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

using base::Bytes;
using base::ByteView;
using base::Digest;

struct Item {
  Kind kind;
  Digest key;
  Bytes file;

  bool operator==(const Item&) const = default;
};

// In the order of an archive.
std::vector<Item> sample_items() {
  std::vector<Item> items;
  for (const char* name : {"a", "b", "c"}) {
    const Entry entry = sample_entry(name, 100);
    items.push_back({Kind::kEntry, entry.key, *encode_entry(entry)});
    const Record record = sample_record(std::string("asked ") + name, name);
    items.push_back({Kind::kRecord, record.request, *encode_record(record)});
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return std::tie(a.kind, a.key) < std::tie(b.kind, b.key); });
  return items;
}

Digest write_archive(const fs::path& path, const std::vector<Item>& items, ByteView block = {}) {
  auto writer = ArchiveWriter::create(path.string());
  REQUIRE(writer);
  for (const Item& item : items) REQUIRE(writer->add(item.kind, item.key, item.file));
  const auto digest = writer->finish();
  REQUIRE(digest);
  if (!block.empty()) REQUIRE(writer->append_block(block));
  REQUIRE(writer->commit());
  CHECK(writer->bytes() == fs::file_size(path));
  return *digest;
}

std::vector<Item> items_of(const ArchiveReader& reader) {
  std::vector<Item> out;
  const auto read = reader.visit_items([&](Kind kind, const Digest& key, ByteView file) {
    out.push_back({kind, key, Bytes(file.begin(), file.end())});
    return base::Result<void>();
  });
  if (!read) FAIL(read.error().text());
  return out;
}

// An archive of any items, valid or not, with a digest and counts that fit them.
Bytes made_by_hand(const std::vector<std::pair<Bytes, Bytes>>& items, const ArchiveCounts& counts) {
  Bytes content;
  base::Sha256 digests;
  const auto append = [&content](ByteView bytes) {
    content.insert(content.end(), bytes.begin(), bytes.end());
  };
  for (const auto& [head, file] : items) {
    append(head);
    append(file);
    digests.update(base::Sha256().update(head).update(file).finish().view());
  }
  append(encode_end_mark({counts, digests.finish()}));
  Bytes out = build_header(kArchiveMagic, kVersion, 0, {}, content.size());
  out.insert(out.end(), content.begin(), content.end());
  return out;
}

void refuse(const fs::path& path, ByteView bytes, const std::string& part) {
  spill(path, bytes);
  const auto reader = ArchiveReader::open(path.string());
  REQUIRE_FALSE(reader);
  CHECK(reader.error().kind == base::ErrorKind::kFailed);
  INFO(reader.error().text());
  CHECK(reader.error().text().find(part) != std::string::npos);
}

TEST_CASE("what was put into an archive comes out of it in order") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.kca";
  const std::vector<Item> items = sample_items();
  const Bytes block(64, 7);
  const Digest digest = write_archive(path, items, block);
  const auto reader = ArchiveReader::open(path.string());
  REQUIRE(reader);
  CHECK(reader->counts().entries == 3);
  CHECK(reader->counts().records == 3);
  CHECK(reader->file_bytes() == fs::file_size(path));
  CHECK(reader->content_digest() == digest);
  const Bytes file = slurp(path);
  CHECK(base::sha256(ByteView(file).first(file.size() - 64)) == digest);
  CHECK(Bytes(reader->blocks().begin(), reader->blocks().end()) == block);
  CHECK(items_of(*reader) == items);
  for (const Item& item : items_of(*reader)) {
    if (item.kind == Kind::kEntry) CHECK(decode_entry(item.file, item.key));
    if (item.kind == Kind::kRecord) CHECK(decode_record(item.file, item.key));
  }
}

TEST_CASE("an archive of nothing is an archive") {
  const TemporaryFolder folder;
  write_archive(folder / "a.kca", {});
  const auto reader = ArchiveReader::open((folder / "a.kca").string());
  REQUIRE(reader);
  CHECK(reader->counts().entries == 0);
  CHECK(items_of(*reader).empty());
}

TEST_CASE("files larger than the buffers of writer and reader come out as they went in") {
  const TemporaryFolder folder;
  Entry entry = sample_entry("large");
  uint32_t state = 1;  // does not compress
  entry.artifact.code.resize(3U << 20);
  for (uint8_t& byte : entry.artifact.code)
    byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  const std::vector<Item> items = {{Kind::kEntry, entry.key, *encode_entry(entry)}};
  REQUIRE(items[0].file.size() > 3U << 20);
  const Digest digest = write_archive(folder / "a.kca", items);
  const auto reader = ArchiveReader::open((folder / "a.kca").string());
  REQUIRE(reader);
  CHECK(reader->content_digest() == digest);
  CHECK(items_of(*reader) == items);
}

TEST_CASE("the same contents give the same bytes") {
  const TemporaryFolder folder;
  write_archive(folder / "a.kca", sample_items());
  write_archive(folder / "b.kca", sample_items());
  CHECK(slurp(folder / "a.kca") == slurp(folder / "b.kca"));
}

TEST_CASE("an archive cut to any length is refused") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.kca";
  write_archive(path, sample_items());
  const Bytes whole = slurp(path);
  size_t refused = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    spill(path, ByteView(whole).first(size));
    const auto reader = ArchiveReader::open(path.string());
    if (reader) FAIL("cut to " << size << " of " << whole.size());
    CHECK(reader.error().kind == base::ErrorKind::kFailed);
    ++refused;
  }
  CHECK(refused == whole.size());
}

TEST_CASE("every flipped byte of an archive is found before anything is taken from it") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.kca";
  write_archive(path, sample_items());
  const Bytes whole = slurp(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    Bytes bytes = whole;
    bytes[at] ^= 0x55;
    spill(path, bytes);
    const auto reader = ArchiveReader::open(path.string());
    if (reader) FAIL("byte " << at << " of " << whole.size());
    CHECK(reader.error().kind == base::ErrorKind::kFailed);
  }
}

TEST_CASE("items out of order and twice and of unknown kinds are refused") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.kca";
  std::vector<std::pair<Bytes, Bytes>> parts;
  for (const Item& item : sample_items()) {
    parts.emplace_back(encode_item_head({item.kind, item.file.size(), item.key}), item.file);
  }
  spill(path, made_by_hand(parts, {3, 3}));
  REQUIRE(ArchiveReader::open(path.string()));

  refuse(path, made_by_hand(parts, {3, 2}), "as many files as it says");
  auto changed = parts;
  std::swap(changed[0], changed[1]);
  refuse(path, made_by_hand(changed, {3, 3}), "not in order");
  changed = parts;
  changed.insert(changed.begin(), parts[0]);
  refuse(path, made_by_hand(changed, {4, 3}), "not in order");
  changed = parts;
  std::rotate(changed.begin(), changed.begin() + 3, changed.end());  // records first
  refuse(path, made_by_hand(changed, {3, 3}), "not in order");
  changed = parts;
  changed[0].first[0] = 9;
  refuse(path, made_by_hand(changed, {3, 3}), "neither an entry nor a record");
  changed = parts;
  changed[0].first[4] = 1;
  refuse(path, made_by_hand(changed, {3, 3}), "neither an entry nor a record");
  changed = parts;
  changed[0].second.resize(10);
  changed[0].first = encode_item_head({Kind::kEntry, 10, sample_items()[0].key});
  refuse(path, made_by_hand(changed, {3, 3}), "impossible size of 10 bytes");
}

TEST_CASE("bytes behind the items and a header with more in it are refused") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.kca";
  const std::vector<Item> items = sample_items();
  Bytes content = made_by_hand({}, {0, 0});
  content.erase(content.begin(), content.begin() + kFrozenSize);
  const auto with_header = [&](const Bytes& header) {
    Bytes out = header;
    out.insert(out.end(), content.begin(), content.end());
    return out;
  };
  refuse(path, with_header(build_header(kArchiveMagic, kVersion, 0, Bytes(8), content.size())), "wrong size");
  refuse(path, with_header(build_header(kArchiveMagic, kVersion, 1, {}, content.size())), "flags");
  refuse(path, with_header(build_header(kArchiveMagic, kVersion, 0, {}, content.size() + 1)), "ends early");
  refuse(path, with_header(build_header(kArchiveMagic, kVersion, 0, {}, UINT64_MAX)), "ends early");
  refuse(path, with_header(build_header(kArchiveMagic, kVersion, 0, {}, 3)), "end mark");
  refuse(path, with_header(build_header(kEntryMagic, kVersion, 0, {}, content.size())), "not an archive");
  refuse(path, with_header(build_header(kArchiveMagic, kVersion + 1, 0, {}, content.size())), "newer kc");
  refuse(path, {}, "is empty");
  // A byte between the last item and the end mark.
  content.insert(content.begin(), 0);
  refuse(path, with_header(build_header(kArchiveMagic, kVersion, 0, {}, content.size())), "end mark");
}

TEST_CASE("sizes that no archive has take no memory") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.kca";
  // An entry of the largest size that is allowed, in a file that is as large but holds nothing.
  constexpr uint64_t kClaim = kMaxHeader + kMaxPayload;
  const Bytes head = encode_item_head({Kind::kEntry, kClaim, key_of("a")});
  Bytes start = build_header(kArchiveMagic, kVersion, 0, {}, head.size() + kClaim + kEndMarkSize);
  start.insert(start.end(), head.begin(), head.end());
  struct rusage before, after;
  REQUIRE(getrusage(RUSAGE_SELF, &before) == 0);
  refuse(path, start, "ends early");
  // What lies behind the content is bounded too.
  Bytes empty = made_by_hand({}, {0, 0});
  spill(path, empty);
  REQUIRE(truncate(path.c_str(), int64_t{1} << 40) == 0);
  const auto behind = ArchiveReader::open(path.string());
  REQUIRE_FALSE(behind);
  CHECK(behind.error().text().find("are no signatures") != std::string::npos);
  // An item whose size is larger than what is left.
  refuse(path, made_by_hand({{encode_item_head({Kind::kEntry, 1U << 30, key_of("a")}), Bytes(64)}}, {1, 0}),
         "larger than what is left");
  REQUIRE(getrusage(RUSAGE_SELF, &after) == 0);
  CHECK(after.ru_maxrss - before.ru_maxrss < 64 * 1024);  // KiB
}

TEST_CASE("a file that is exchanged between the two readings is noticed before a byte of it is given") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.kca";
  const std::vector<Item> items = sample_items();
  write_archive(path, items);
  const Bytes whole = slurp(path);
  for (size_t at : {kFrozenSize, kFrozenSize + 20, kFrozenSize + kItemHeadSize + 70, whole.size() / 2}) {
    spill(path, whole);
    const auto reader = ArchiveReader::open(path.string());
    REQUIRE(reader);
    const int fd = open(path.c_str(), O_WRONLY);
    REQUIRE(fd >= 0);
    const uint8_t other = whole[at] ^ 1;
    REQUIRE(pwrite(fd, &other, 1, static_cast<off_t>(at)) == 1);
    close(fd);
    std::vector<Item> given;
    const auto read = reader->visit_items([&](Kind kind, const Digest& key, ByteView file) {
      given.push_back({kind, key, Bytes(file.begin(), file.end())});
      return base::Result<void>();
    });
    REQUIRE_FALSE(read);
    CHECK(read.error().text().find("changed while it was read") != std::string::npos);
    REQUIRE(given.size() < items.size());
    CHECK(std::equal(given.begin(), given.end(), items.begin()));
  }
}

TEST_CASE("a name that leads to another file after the first reading changes nothing") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.kca";
  const std::vector<Item> items = sample_items();
  write_archive(path, items);
  const auto reader = ArchiveReader::open(path.string());
  REQUIRE(reader);
  write_archive(folder / "b.kca", {});
  fs::rename(folder / "b.kca", path);
  CHECK(items_of(*reader) == items);
}

TEST_CASE("an archive that is not committed leaves nothing and replaces nothing") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.kca";
  write_archive(path, sample_items());
  const Bytes before = slurp(path);
  {
    auto writer = ArchiveWriter::create(path.string());
    REQUIRE(writer);
    REQUIRE(writer->finish());
  }
  CHECK(slurp(path) == before);
  CHECK(names_in(folder / "").size() == 1);
  write_archive(path, {});
  CHECK(slurp(path) != before);
}

TEST_CASE("only an archive is replaced by one") {
  const TemporaryFolder folder;
  const auto refused = [&](const char* name, const std::string& part) {
    const auto writer = ArchiveWriter::create((folder / name).string());
    REQUIRE_FALSE(writer);
    CHECK(writer.error().kind == base::ErrorKind::kInput);
    CHECK(writer.error().text().find(part) != std::string::npos);
  };
  spill(folder / "kernels.yaml", std::string("version: 1\n"));
  refused("kernels.yaml", "is no archive");
  CHECK(slurp(folder / "kernels.yaml").size() == 11);
  fs::create_directory(folder / "directory");
  refused("directory", "is a directory");
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  refused("fifo", "not a regular file");
  spill(folder / "empty", std::string());
  CHECK(ArchiveWriter::create((folder / "empty").string()));
  const auto nowhere = ArchiveWriter::create((folder / "missing/a.kca").string());
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().kind == base::ErrorKind::kEnvironment);
}

TEST_CASE("what cannot be opened as a file is an input error") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "directory");
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  for (const char* name : {"missing", "directory", "fifo"}) {
    const auto reader = ArchiveReader::open((folder / name).string());
    REQUIRE_FALSE(reader);
    CHECK(reader.error().kind == base::ErrorKind::kInput);
  }
}

TEST_CASE("items are added in order or not at all") {
  const TemporaryFolder folder;
  const std::vector<Item> items = sample_items();
  auto writer = ArchiveWriter::create((folder / "a.kca").string());
  REQUIRE(writer);
  REQUIRE(writer->add(items[1].kind, items[1].key, items[1].file));
  const auto twice = writer->add(items[1].kind, items[1].key, items[1].file);
  REQUIRE_FALSE(twice);
  CHECK(twice.error().kind == base::ErrorKind::kInternal);
  CHECK_FALSE(writer->add(items[0].kind, items[0].key, items[0].file));
  CHECK(writer->counts().entries == 1);
}

}  // namespace
}  // namespace kc::store::test
