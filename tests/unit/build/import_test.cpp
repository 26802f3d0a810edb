// What an archive may bring into a store, and who answers for it.
#include "build/import.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/file_system.h"
#include "bundle/signature.h"
#include "store/archive.h"
#include "store/archive_format.h"
#include "store/entry_codec.h"
#include "store/listing.h"
#include "store/record_codec.h"
#include "unit/store/fixture.h"

namespace kc::build {
namespace {

namespace fs = std::filesystem;
using base::Bytes;
using base::ByteView;
using base::Digest;
using store::Kind;
using store::test::key_of;
using store::test::sample_entry;
using store::test::sample_record;

struct Item {
  Kind kind;
  Digest key;
  Bytes file;
};

Item entry_item(const store::Entry& entry) {
  return {Kind::kEntry, entry.key, *store::encode_entry(entry)};
}
Item record_item(const store::Record& record) {
  return {Kind::kRecord, record.request, *store::encode_record(record)};
}
Item item_of(const std::string& name) {
  return entry_item(sample_entry(name));
}

bundle::PrivateKey new_key() {
  auto key = bundle::PrivateKey::generate();
  REQUIRE(key);
  return std::move(*key);
}

void write_archive(const fs::path& path, std::vector<Item> items, const bundle::PrivateKey* key = nullptr) {
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return std::tie(a.kind, a.key) < std::tie(b.kind, b.key); });
  auto writer = store::ArchiveWriter::create(path.string());
  REQUIRE(writer);
  for (const Item& item : items) REQUIRE(writer->add(item.kind, item.key, item.file));
  const auto digest = writer->finish();
  REQUIRE(digest);
  if (key != nullptr) {
    bundle::Signature signature{key->public_key(), {}};
    signature.bytes = *key->sign(bundle::archive_message(*digest));
    REQUIRE(writer->append_block(bundle::encode_block(signature)));
  }
  REQUIRE(writer->commit());
}

Trust trust_in(const bundle::PrivateKey& key) {
  return {.keys = {key.public_key()}, .unsigned_too = false};
}
const Trust kAnybody{.keys = {}, .unsigned_too = true};

struct Outcome {
  base::Result<ImportReport> report;
  std::vector<std::string> refused;
};

Outcome import_into(const fs::path& root, const fs::path& archive, const Trust& trust,
                    uint64_t limit = 5ULL << 30) {
  Outcome out;
  store::Options options;
  options.directory = root.string();
  options.limit_bytes = limit;
  out.report = import_archive(archive.string(), trust, options, [&](const base::Error& error) {
    CHECK(error.kind == base::ErrorKind::kFailed);
    out.refused.push_back(error.text());
  });
  return out;
}

TEST_CASE("entries and records are imported with the signer of the archive as their origin") {
  const store::test::TemporaryFolder folder;
  const bundle::PrivateKey key = new_key();
  store::Entry earlier = sample_entry("b");
  earlier.origin.imported = true;
  earlier.origin.signer = std::string(64, 'a');  // somebody before
  store::Record record = sample_record("asked", "a");
  write_archive(folder / "a.kca", {item_of("a"), entry_item(earlier), record_item(record)}, &key);
  const Outcome outcome = import_into(folder / "s", folder / "a.kca", trust_in(key));
  REQUIRE(outcome.report);
  CHECK(outcome.report->signer == key.public_key().id());
  CHECK(outcome.report->entries == 2);
  CHECK(outcome.report->records == 1);
  CHECK(outcome.refused.empty());
  const auto store = store::test::open_store(folder / "s");
  for (const char* name : {"a", "b"}) {
    const auto entry = store->get(key_of(name));
    REQUIRE(entry);
    store::Entry expected = sample_entry(name);
    expected.origin.imported = true;
    expected.origin.signer = key.public_key().id();
    store::test::check_equal(*entry, expected);
  }
  const auto back = store->get_record(key_of("asked"));
  REQUIRE(back);
  store::test::check_equal(*back, record);
  CHECK(back->imported);
  CHECK(back->signer == key.public_key().id());
}

TEST_CASE("without a trusted signature the store is not even made") {
  const store::test::TemporaryFolder folder;
  const bundle::PrivateKey key = new_key(), stranger = new_key();
  write_archive(folder / "unsigned.kca", {item_of("a")});
  write_archive(folder / "strange.kca", {item_of("a")}, &stranger);
  for (const char* name : {"unsigned.kca", "strange.kca"}) {
    const Outcome outcome = import_into(folder / "s", folder / name, trust_in(key));
    REQUIRE_FALSE(outcome.report);
    CHECK(outcome.report.error().kind == base::ErrorKind::kFailed);
    CHECK_FALSE(fs::exists(folder / "s"));
  }
  const Outcome anyway = import_into(folder / "s", folder / "strange.kca", kAnybody);
  REQUIRE(anyway.report);
  CHECK(anyway.report->signer.empty());
  CHECK(store::test::open_store(folder / "s")->get(key_of("a"))->origin.signer.empty());
}

TEST_CASE("a signature of one archive is none of another with one more entry") {
  const store::test::TemporaryFolder folder;
  const bundle::PrivateKey key = new_key();
  write_archive(folder / "a.kca", {item_of("a")}, &key);
  write_archive(folder / "b.kca", {item_of("a"), item_of("b")});
  const auto signed_one = store::ArchiveReader::open((folder / "a.kca").string());
  REQUIRE(signed_one);
  Bytes bytes = store::test::slurp(folder / "b.kca");
  bytes.insert(bytes.end(), signed_one->blocks().begin(), signed_one->blocks().end());
  store::test::spill(folder / "b.kca", bytes);
  const Outcome outcome = import_into(folder / "s", folder / "b.kca", trust_in(key));
  REQUIRE_FALSE(outcome.report);
  CHECK(outcome.report.error().text().find("is of something else") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "s"));
}

TEST_CASE("a signature of a bundle is none of an archive") {
  const store::test::TemporaryFolder folder;
  const bundle::PrivateKey key = new_key();
  auto writer = store::ArchiveWriter::create((folder / "a.kca").string());
  REQUIRE(writer);
  bundle::Signature signature{key.public_key(), {}};
  signature.bytes = *key.sign(bundle::bundle_message(*writer->finish()));
  REQUIRE(writer->append_block(bundle::encode_block(signature)));
  REQUIRE(writer->commit());
  CHECK_FALSE(import_into(folder / "s", folder / "a.kca", trust_in(key)).report);
}

TEST_CASE("bytes behind the archive that are no signature blocks are damage") {
  const store::test::TemporaryFolder folder;
  write_archive(folder / "a.kca", {item_of("a")});
  Bytes bytes = store::test::slurp(folder / "a.kca");
  bytes.push_back(0);
  store::test::spill(folder / "a.kca", bytes);
  const Outcome outcome = import_into(folder / "s", folder / "a.kca", kAnybody);
  REQUIRE_FALSE(outcome.report);
  CHECK(outcome.report.error().text().find("a.kca") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "s"));
}

TEST_CASE("what is wrong in a validly signed archive is named and the rest is imported") {
  const store::test::TemporaryFolder folder;
  const bundle::PrivateKey key = new_key();
  Item damaged = item_of("damaged"), foreign = item_of("good");
  damaged.file.back() ^= 1;
  foreign.key = key_of("foreign");
  Item record = record_item(sample_record("asked", "good"));
  record.file.back() ^= 1;
  write_archive(folder / "a.kca", {damaged, foreign, record, item_of("good")}, &key);
  const Outcome outcome = import_into(folder / "s", folder / "a.kca", trust_in(key));
  REQUIRE(outcome.report);
  CHECK(outcome.report->entries == 1);
  CHECK(outcome.report->records == 0);
  CHECK(outcome.report->entries_refused == 2);
  CHECK(outcome.report->records_refused == 1);
  CHECK(outcome.refused.size() == 3);
  const auto names = [&](const Digest& digest) {
    return std::ranges::any_of(outcome.refused, [&](const std::string& text) {
      return text.find(digest.hex()) != std::string::npos;
    });
  };
  CHECK(names(damaged.key));
  CHECK(names(foreign.key));
  CHECK(names(record.key));
  const auto store = store::test::open_store(folder / "s");
  CHECK(store->get(key_of("good")));
  CHECK_FALSE(store->contains(damaged.key));
  CHECK_FALSE(store->contains(foreign.key));
  CHECK_FALSE(store->recorded(record.key));
}

TEST_CASE("what was compiled here stays and what nobody trusted signed gives way to what somebody did") {
  const store::test::TemporaryFolder folder;
  const bundle::PrivateKey key = new_key();
  const fs::path root = folder / "s";
  store::Entry own = sample_entry("own");
  own.seconds = 99;
  REQUIRE(store::test::open_store(root)->put(own));
  REQUIRE(store::test::open_store(root)->put_record(sample_record("own", "mine")));
  write_archive(folder / "a.kca",
                {item_of("own"), item_of("other"), record_item(sample_record("own", "theirs")),
                 record_item(sample_record("other", "other"))});
  write_archive(folder / "b.kca",
                {item_of("own"), item_of("other"), record_item(sample_record("own", "theirs")),
                 record_item(sample_record("other", "other"))},
                &key);
  struct Step {
    const char* archive;
    const Trust trust;
    uint64_t put;
    std::string signer;
  };
  const std::string id = key.public_key().id();
  for (const Step& step : {Step{"a.kca", kAnybody, 1, ""}, Step{"a.kca", kAnybody, 0, ""},
                           Step{"b.kca", trust_in(key), 1, id}, Step{"a.kca", kAnybody, 0, id}}) {
    const Outcome outcome = import_into(root, folder / step.archive, step.trust);
    REQUIRE(outcome.report);
    CHECK(outcome.report->entries == step.put);
    CHECK(outcome.report->records == step.put);
    CHECK(outcome.report->entries_there == 2 - step.put);
    CHECK(outcome.report->records_there == 2 - step.put);
    const auto store = store::test::open_store(root);
    CHECK(store->get(key_of("own"))->seconds == 99);
    CHECK_FALSE(store->get(key_of("own"))->origin.imported);
    CHECK(store->recorded(key_of("own")) == key_of("mine"));
    CHECK(store->get(key_of("other"))->origin.imported);
    CHECK(store->get(key_of("other"))->origin.signer == step.signer);
    CHECK(store->get_record(key_of("other"))->signer == step.signer);
  }
}

TEST_CASE("an entry that is larger than the store takes is named") {
  const store::test::TemporaryFolder folder;
  store::Entry large = sample_entry("large");
  uint32_t state = 1;  // does not compress
  large.artifact.code.resize(100'000);
  for (uint8_t& byte : large.artifact.code) {
    byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  }
  write_archive(folder / "a.kca", {entry_item(large), item_of("small")});
  const Outcome outcome = import_into(folder / "s", folder / "a.kca", kAnybody, 100'000);
  REQUIRE(outcome.report);
  CHECK(outcome.report->entries == 1);
  CHECK(outcome.report->entries_refused == 1);
  REQUIRE(outcome.refused.size() == 1);
  CHECK(outcome.refused[0].find(large.key.hex()) != std::string::npos);
}

// Changes a byte of the archive when the second reading begins: at the first reading of an item's head alone.
class Exchange final : public base::FileSystem {
 public:
  Exchange(const fs::path& path, uint64_t at) : path_(path), at_(at) {}

  ssize_t pread(int fd, void* out, size_t size, off_t offset) override {
    if (size == store::kItemHeadSize && !done_) {
      done_ = true;
      const int writer = ::open(path_.c_str(), O_RDWR);
      uint8_t byte = 0;
      REQUIRE(::pread(writer, &byte, 1, static_cast<off_t>(at_)) == 1);
      byte ^= 1;
      REQUIRE(::pwrite(writer, &byte, 1, static_cast<off_t>(at_)) == 1);
      ::close(writer);
    }
    return base::FileSystem::pread(fd, out, size, offset);
  }
  bool done() const { return done_; }

 private:
  const fs::path path_;
  const uint64_t at_;
  bool done_ = false;
};

TEST_CASE("an archive that changes after its signature was checked brings nothing that was not signed") {
  const store::test::TemporaryFolder folder;
  const bundle::PrivateKey key = new_key();
  const std::vector<Item> items = {item_of("a"), item_of("b"), item_of("c")};
  write_archive(folder / "whole.kca", items, &key);
  const Bytes whole = store::test::slurp(folder / "whole.kca");
  const auto reader = store::ArchiveReader::open((folder / "whole.kca").string());
  REQUIRE(reader);
  const size_t items_end = whole.size() - reader->blocks().size() - store::kEndMarkSize;
  const size_t step = whole.size() / 20;
  for (size_t at = store::kFrozenSize; at < items_end; at += step) {
    const fs::path root = folder / "s";
    fs::remove_all(root);
    store::test::spill(folder / "a.kca", whole);
    Exchange exchange(folder / "a.kca", at);
    Outcome outcome;
    {
      const base::ReplacedFileSystem replaced(exchange);
      outcome = import_into(root, folder / "a.kca", trust_in(key));
    }
    REQUIRE(exchange.done());
    REQUIRE_FALSE(outcome.report);
    CHECK(outcome.report.error().text().find("changed while it was read") != std::string::npos);
    CHECK(outcome.refused.empty());
    // What was imported before that place is what was signed.
    const auto listing = store::Listing::open(root.string());
    REQUIRE(listing);
    CHECK(listing
              ->entries([&](const store::Listed& listed, const store::Checked<store::EntryHeader>& header) {
                REQUIRE(header);
                CHECK(std::ranges::any_of(items, [&](const Item& item) { return item.key == listed.key; }));
                const auto entry = listing->whole_entry(listed.key);
                REQUIRE(entry);
                CHECK((*entry)->artifact == sample_entry(header->entry.kernel).artifact);
                return true;
              })
              .empty());
  }
}

// The disk is full from the n-th file on that is made in the store.
class FullDisk final : public base::FileSystem {
 public:
  explicit FullDisk(unsigned good) : left_(good) {}
  ssize_t write(int fd, const void* bytes, size_t size) override {
    if (left_ > 0) {
      --left_;
      return base::FileSystem::write(fd, bytes, size);
    }
    errno = ENOSPC;
    return -1;
  }

 private:
  unsigned left_;
};

TEST_CASE("a full disk ends an import with what it is and keeps what was put until then") {
  const store::test::TemporaryFolder folder;
  const fs::path root = folder / "s";
  write_archive(folder / "a.kca", {item_of("a"), item_of("b"), item_of("c")});
  store::test::open_store(root);  // made while there is space
  FullDisk full(2);
  Outcome outcome;
  {
    const base::ReplacedFileSystem replaced(full);
    outcome = import_into(root, folder / "a.kca", kAnybody);
  }
  REQUIRE_FALSE(outcome.report);
  CHECK(outcome.report.error().kind == base::ErrorKind::kEnvironment);
  CHECK(outcome.report.error().text().find("No space left on device") != std::string::npos);
  const auto store = store::test::open_store(root);
  unsigned kept = 0;
  for (const char* name : {"a", "b", "c"}) kept += store->get(key_of(name)) ? 1 : 0;
  CHECK(kept == 2);
  CHECK(store::test::names_in(root / "v1/tmp").empty());
}

}  // namespace
}  // namespace kc::build
