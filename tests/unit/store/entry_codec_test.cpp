#include "store/entry_codec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "base/compress.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

using base::Bytes;
using base::ByteView;

Bytes encode(const Entry& entry) {
  auto bytes = encode_entry(entry);
  REQUIRE(bytes.has_value());
  return std::move(*bytes);
}

Flaw flaw_of(ByteView bytes, const base::Digest& key) {
  const auto entry = decode_entry(bytes, key);
  REQUIRE_FALSE(entry.has_value());
  CHECK_FALSE(entry.error().why.empty());
  return entry.error().flaw;
}

// The same file after `change` to its header's fields, flags or version, with digests that are right again.
struct Parts {
  uint32_t version = kVersion;
  uint32_t flags = 0;
  Bytes fields;
  Bytes payload;
};
Bytes rebuilt(const Bytes& file, const std::function<void(Parts&)>& change) {
  const auto frozen = read_frozen(file, kEntryMagic, file.size());
  REQUIRE(frozen.has_value());
  const auto split = file.begin() + static_cast<ptrdiff_t>(frozen->header_size);
  Parts parts{frozen->version, frozen->flags, Bytes(file.begin() + kFrozenSize, split),
              Bytes(split, file.end())};
  change(parts);
  const base::Digest digest = base::sha256(parts.payload);
  std::copy(digest.bytes.begin(), digest.bytes.end(), parts.fields.begin() + 32);
  Bytes out = build_header(kEntryMagic, parts.version, parts.flags, parts.fields, parts.payload.size());
  out.insert(out.end(), parts.payload.begin(), parts.payload.end());
  return out;
}

// Offsets of docs/store-format.md, from the start of the fields.
constexpr size_t kRawSizeAt = 160 - 64, kCodeSizeAt = 168 - 64, kFactsSizeAt = 176 - 64,
                 kSecondsAt = 200 - 64, kOriginAt = 224 - 64;

void set_u64(Bytes& bytes, size_t at, uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

TEST_CASE("an entry that compresses comes back as it was") {
  const Entry entry = sample_entry("a", 2000);
  const Bytes bytes = encode(entry);
  CHECK(bytes.size() < 2000);
  const auto back = decode_entry(bytes, entry.key);
  REQUIRE(back.has_value());
  check_equal(*back, entry);
}

TEST_CASE(
    "the digest of the code is given with an entry that was read and may be given with one that is put") {
  Entry entry = sample_entry("a");
  const Bytes bytes = encode(entry);
  const auto back = decode_entry(bytes, entry.key);
  REQUIRE(back.has_value());
  CHECK(back->code_digest == kc::base::sha256(entry.artifact.code));
  CHECK(encode(*back) == bytes);
  entry.code_digest = kc::base::sha256("another");
  CHECK_FALSE(decode_entry(encode(entry), entry.key).has_value());
}

TEST_CASE("an entry that does not compress is stored raw and comes back as it was") {
  Entry entry = sample_entry("a");
  entry.artifact.code.clear();
  for (int i = 0; i < 64; ++i) {
    const base::Digest noise = base::sha256(std::to_string(i));
    entry.artifact.code.insert(entry.artifact.code.end(), noise.bytes.begin(), noise.bytes.end());
  }
  entry.artifact.facts = {};
  entry.artifact.diagnostics.clear();
  entry.artifact.report.clear();
  const Bytes bytes = encode(entry);
  CHECK(base::load_le<uint32_t>(bytes, 12) == 0);
  const auto back = decode_entry(bytes, entry.key);
  REQUIRE(back.has_value());
  check_equal(*back, entry);
}

TEST_CASE("an answer of unsupported is an entry without code") {
  Entry entry = sample_entry("a", 0);
  entry.unsupported = true;
  entry.origin.imported = true;
  entry.origin.signer = "release key";
  const auto back = decode_entry(encode(entry), entry.key);
  REQUIRE(back.has_value());
  check_equal(*back, entry);
}

TEST_CASE("no entry is made without code unless it is unsupported") {
  CHECK_FALSE(encode_entry(sample_entry("a", 0)).has_value());
  Entry entry = sample_entry("a");
  entry.unsupported = true;
  CHECK_FALSE(encode_entry(entry).has_value());
}

TEST_CASE("the same entry gives the same bytes") {
  CHECK(encode(sample_entry("a")) == encode(sample_entry("a")));
}

TEST_CASE("fields lie where the format page says") {
  const Entry entry = sample_entry("a");
  const Bytes bytes = encode(entry);
  const ByteView view(bytes);
  CHECK(base::as_text(view.first(8)) == std::string_view("KCENTRY\0", 8));
  CHECK(base::load_le<uint32_t>(view, 8) == 1);
  CHECK(base::load_le<uint32_t>(view, 12) == kFlagCompressed);
  const auto header_size = base::load_le<uint64_t>(view, 16);
  CHECK(header_size + base::load_le<uint64_t>(view, 24) == bytes.size());
  CHECK(base::digest_from(view.subspan(64, 32)) == entry.key);
  CHECK(base::digest_from(view.subspan(96, 32)) == base::sha256(view.subspan(header_size)));
  CHECK(base::digest_from(view.subspan(128, 32)) == base::sha256(entry.artifact.code));
  CHECK(base::load_le<uint64_t>(view, 168) == 300);
  CHECK(base::load_le<uint64_t>(view, 192) == 3);
  CHECK(base::load_le<uint64_t>(view, 208) == 123456);
  CHECK(base::load_le<uint64_t>(view, 216) == 1'700'000'000);
  CHECK(base::load_le<uint32_t>(view, 232) == 8);
  CHECK(base::as_text(view.subspan(236, 8)) == "tileiras");
}

TEST_CASE("every single bit that flips in an entry is found") {
  const Entry entry = sample_entry("a");
  Bytes bytes = encode(entry);
  uint64_t missed = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto mask = static_cast<uint8_t>(1U << bit % 8);
    bytes[bit / 8] ^= mask;
    const auto got = decode_entry(bytes, entry.key);
    missed += got.has_value() || got.error().flaw != Flaw::kDamaged ? 1 : 0;
    bytes[bit / 8] ^= mask;
  }
  CHECK(missed == 0);
  CHECK(decode_entry(bytes, entry.key).has_value());
}

TEST_CASE("an entry cut to any length is found and so is one with a byte more") {
  const Entry entry = sample_entry("a");
  Bytes bytes = encode(entry);
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK(flaw_of(ByteView(bytes).first(size), entry.key) == Flaw::kDamaged);
  }
  bytes.push_back(0);
  CHECK(flaw_of(bytes, entry.key) == Flaw::kDamaged);
}

TEST_CASE("an entry is refused under another key") {
  CHECK(flaw_of(encode(sample_entry("a")), key_of("b")) == Flaw::kDamaged);
}

TEST_CASE("a whole entry of a newer version is told apart from a damaged one") {
  const Entry entry = sample_entry("a");
  Bytes newer = rebuilt(encode(entry), [](Parts& parts) {
    parts.version = kVersion + 1;
    parts.flags = 0xffff0000;
    parts.fields.assign(40, 7);
  });
  CHECK(flaw_of(newer, entry.key) == Flaw::kNewer);
  newer[70] ^= 1;
  CHECK(flaw_of(newer, entry.key) == Flaw::kDamaged);
}

TEST_CASE("headers that are well sealed but wrong are refused one by one") {
  const Entry entry = sample_entry("a");
  const Bytes good = encode(entry);
  REQUIRE(decode_entry(rebuilt(good, [](Parts&) {}), entry.key).has_value());
  const auto refused = [&](const char* what, const std::function<void(Parts&)>& change) {
    CAPTURE(what);
    CHECK(flaw_of(rebuilt(good, change), entry.key) == Flaw::kDamaged);
  };
  refused("flag that is not defined", [](Parts& p) { p.flags |= 4; });
  refused("unsupported with code", [](Parts& p) { p.flags |= kFlagUnsupported; });
  refused("raw payload said to be compressed", [](Parts& p) { p.flags ^= kFlagCompressed; });
  refused("raw size beyond the cap", [](Parts& p) {
    set_u64(p.fields, kRawSizeAt, kMaxPayload + 1);
    set_u64(p.fields, kCodeSizeAt, kMaxPayload);
  });
  refused("raw size that the frame does not have", [](Parts& p) {
    set_u64(p.fields, kRawSizeAt, base::load_le<uint64_t>(p.fields, kRawSizeAt) + 1);
    set_u64(p.fields, kCodeSizeAt, base::load_le<uint64_t>(p.fields, kCodeSizeAt) + 1);
  });
  refused("sizes whose sum overflows",
          [](Parts& p) { set_u64(p.fields, kCodeSizeAt, std::numeric_limits<uint64_t>::max()); });
  refused("border between sections moved", [](Parts& p) {
    set_u64(p.fields, kCodeSizeAt, base::load_le<uint64_t>(p.fields, kCodeSizeAt) - 1);
    set_u64(p.fields, kFactsSizeAt, base::load_le<uint64_t>(p.fields, kFactsSizeAt) + 1);
  });
  refused("negative seconds", [](Parts& p) { p.fields[kSecondsAt + 7] ^= 0x80; });
  refused("infinite seconds", [](Parts& p) { set_u64(p.fields, kSecondsAt, 0x7ff0000000000000); });
  refused("origin that is neither", [](Parts& p) { p.fields[kOriginAt] = 2; });
  refused("padding that is not zero", [](Parts& p) { p.fields[kOriginAt + 1] = 1; });
  refused("text longer than the header", [](Parts& p) { p.fields[232 - 64 + 3] = 0x7f; });
  refused("bytes behind the last field", [](Parts& p) { p.fields.push_back(0); });
  refused("last field cut", [](Parts& p) { p.fields.pop_back(); });
  refused("payload that is no zstd frame",
          [](Parts& p) { std::fill(p.payload.begin(), p.payload.end(), 0); });
}

TEST_CASE("a code object that differs under right payload digests is found by its own") {
  const Entry entry = sample_entry("a");
  const Bytes bad = rebuilt(encode(entry), [](Parts& p) {
    auto raw = base::decompress(p.payload, base::load_le<uint64_t>(p.fields, kRawSizeAt));
    REQUIRE(raw.has_value());
    (*raw)[10] ^= 1;
    p.payload = base::compress(*raw, 3).value();
  });
  const auto got = decode_entry(bad, entry.key);
  REQUIRE_FALSE(got.has_value());
  CHECK(got.error().why.find("code object") != std::string::npos);
}

TEST_CASE("a header longer than the first read comes back from a file") {
  const TemporaryFolder folder;
  Entry entry = sample_entry("a");
  for (int i = 0; i < 1000; ++i) entry.key_fields.emplace_back("field" + std::to_string(i), "value");
  const Bytes bytes = encode(entry);
  spill(folder / "file", bytes);
  const auto fd = base::open_at(AT_FDCWD, folder / "file", O_RDONLY);
  REQUIRE(fd.has_value());
  const auto back = read_entry(fd->get(), entry.key, bytes.size());
  REQUIRE(back.has_value());
  check_equal(*back, entry);
}

TEST_CASE("a file that shrinks while it is read is damaged and not a crash") {
  const TemporaryFolder folder;
  const Entry entry = sample_entry("a");
  const Bytes bytes = encode(entry);
  spill(folder / "file", ByteView(bytes).first(bytes.size() - 10));
  const auto fd = base::open_at(AT_FDCWD, folder / "file", O_RDONLY);
  REQUIRE(fd.has_value());
  const auto back = read_entry(fd->get(), entry.key, bytes.size());
  REQUIRE_FALSE(back.has_value());
  CHECK(back.error().flaw == Flaw::kDamaged);
}

TEST_CASE("an entry whose names are longer than a header may be is not made") {
  Entry entry = sample_entry("a");
  entry.entry.assign(kMaxHeader, 'x');
  const auto bytes = encode_entry(entry);
  REQUIRE_FALSE(bytes.has_value());
  CHECK(bytes.error().kind == base::ErrorKind::kFailed);
}

}  // namespace
}  // namespace kc::store::test
