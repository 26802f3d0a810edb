#include "store/record_codec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "store/entry_codec.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

using base::Bytes;
using base::ByteView;

Bytes encode(const Record& record) {
  auto bytes = encode_record(record);
  REQUIRE(bytes.has_value());
  return std::move(*bytes);
}

Flaw flaw_of(ByteView bytes, const base::Digest& request) {
  const auto record = decode_record(bytes, request);
  REQUIRE_FALSE(record.has_value());
  CHECK_FALSE(record.error().why.empty());
  return record.error().flaw;
}

// The same record after `change` to its fields, with a header digest that is right again.
Bytes rebuilt(const Bytes& file, const std::function<void(Bytes&)>& change, uint32_t flags = 0,
              uint32_t version = kVersion, uint64_t payload = 0) {
  Bytes fields(file.begin() + kFrozenSize, file.end());
  change(fields);
  return build_header(kRecordMagic, version, flags, fields, payload);
}

TEST_CASE("a record comes back as it was") {
  const Record record = sample_record("a", "content");
  const auto back = decode_record(encode(record), record.request);
  REQUIRE(back.has_value());
  check_equal(*back, record);
  Record bare = record;
  bare.unit.clear();
  bare.key_fields.clear();
  const auto again = decode_record(encode(bare), record.request);
  REQUIRE(again.has_value());
  check_equal(*again, bare);
}

TEST_CASE("an imported record says so and who signed it") {
  Record record = sample_record("a", "content");
  record.imported = true;
  for (const std::string& signer : {std::string(), std::string(64, 'a')}) {
    record.signer = signer;
    const Bytes bytes = encode(record);
    CHECK(base::load_le<uint32_t>(bytes, 12) == kFlagImported);
    CHECK(base::load_le<uint32_t>(bytes, 140 + record.unit.size()) == signer.size());
    const auto back = decode_record(bytes, record.request);
    REQUIRE(back.has_value());
    check_equal(*back, record);
    CHECK(back->imported);
    CHECK(back->signer == signer);
  }
}

TEST_CASE("fields of a record lie where the format page says") {
  const Record record = sample_record("a", "content");
  const Bytes bytes = encode(record);
  const ByteView view(bytes);
  CHECK(base::as_text(view.first(8)) == "KCRECORD");
  CHECK(base::load_le<uint32_t>(view, 8) == 1);
  CHECK(base::load_le<uint32_t>(view, 12) == 0);
  CHECK(base::load_le<uint64_t>(view, 16) == bytes.size());
  CHECK(base::load_le<uint64_t>(view, 24) == 0);
  CHECK(base::digest_from(view.subspan(64, 32)) == record.request);
  CHECK(base::digest_from(view.subspan(96, 32)) == record.content);
  CHECK(base::load_le<uint64_t>(view, 128) == 1'700'000'000);
  CHECK(base::load_le<uint32_t>(view, 136) == record.unit.size());
  CHECK(base::as_text(view.subspan(140, record.unit.size())) == record.unit);
}

TEST_CASE("every single bit that flips in a record is found") {
  const Record record = sample_record("a", "content");
  Bytes bytes = encode(record);
  uint64_t missed = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto mask = static_cast<uint8_t>(1U << bit % 8);
    bytes[bit / 8] ^= mask;
    const auto got = decode_record(bytes, record.request);
    missed += got.has_value() || got.error().flaw != Flaw::kDamaged ? 1 : 0;
    bytes[bit / 8] ^= mask;
  }
  CHECK(missed == 0);
  CHECK(decode_record(bytes, record.request).has_value());
}

TEST_CASE("a record cut to any length is found and so is one with a byte more") {
  const Record record = sample_record("a", "content");
  Bytes bytes = encode(record);
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK(flaw_of(ByteView(bytes).first(size), record.request) == Flaw::kDamaged);
  }
  bytes.push_back(0);
  CHECK(flaw_of(bytes, record.request) == Flaw::kDamaged);
}

TEST_CASE("records that are well sealed but wrong are refused one by one") {
  const Record record = sample_record("a", "content");
  const Bytes good = encode(record);
  const auto nothing = [](Bytes&) {};
  REQUIRE(decode_record(rebuilt(good, nothing), record.request).has_value());
  CHECK(flaw_of(good, key_of("b")) == Flaw::kDamaged);
  CHECK(flaw_of(rebuilt(good, nothing, 1), record.request) == Flaw::kDamaged);
  Bytes with_payload = rebuilt(good, nothing, 0, kVersion, 3);
  with_payload.resize(with_payload.size() + 3);
  CHECK(flaw_of(with_payload, record.request) == Flaw::kDamaged);
  const auto refused = [&](const char* what, const std::function<void(Bytes&)>& change) {
    CAPTURE(what);
    CHECK(flaw_of(rebuilt(good, change), record.request) == Flaw::kDamaged);
  };
  refused("content key of zeros", [](Bytes& fields) { std::fill_n(fields.begin() + 32, 32, 0); });
  refused("text longer than the header", [](Bytes& fields) { fields[136 - 64 + 3] = 0x7f; });
  refused("count of key fields that cannot be",
          [&](Bytes& fields) { fields[140 - 64 + record.unit.size() + 3] = 0x7f; });
  refused("bytes behind the last field", [](Bytes& fields) { fields.push_back(0); });
  refused("last field cut", [](Bytes& fields) { fields.pop_back(); });
}

TEST_CASE("a whole record of a newer version is told apart from a damaged one") {
  const Record record = sample_record("a", "content");
  Bytes newer = build_header(kRecordMagic, kVersion + 1, 0xff00, Bytes(40, 7), 5);
  newer.resize(newer.size() + 5);
  CHECK(flaw_of(newer, record.request) == Flaw::kNewer);
  newer[70] ^= 1;
  CHECK(flaw_of(newer, record.request) == Flaw::kDamaged);
}

TEST_CASE("an entry is no record and a record no entry") {
  const Bytes entry = encode_entry(sample_entry("a")).value();
  CHECK(flaw_of(entry, key_of("a")) == Flaw::kDamaged);
  const auto other = decode_entry(encode(sample_record("a", "content")), key_of("a"));
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().flaw == Flaw::kDamaged);
}

TEST_CASE("key fields that do not fit are left out and a name that does not fit is refused") {
  Record record = sample_record("a", "content");
  for (int i = 0; i < 20'000; ++i) record.key_fields.emplace_back("source", std::string(64, 'x'));
  const Bytes bytes = encode(record);
  CHECK(bytes.size() < 1000);
  const auto back = decode_record(bytes, record.request);
  REQUIRE(back.has_value());
  CHECK(back->content == record.content);
  CHECK(back->key_fields.empty());
  record.unit.assign(kMaxHeader, 'x');
  CHECK(encode_record(record).error().kind == base::ErrorKind::kFailed);
  record = sample_record("a", "content");
  record.content = {};
  CHECK(encode_record(record).error().kind == base::ErrorKind::kInternal);
}

}  // namespace
}  // namespace kc::store::test
