#include "base/digest.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

using namespace kc::base;

namespace {

using Fields = std::initializer_list<std::pair<uint8_t, std::string_view>>;

Digest key(std::string_view domain, Fields fields) {
  KeyHasher hasher(domain);
  for (const auto& [tag, text] : fields) hasher.field(tag, text);
  return hasher.finish();
}

}  // namespace

// FIPS 180-4, "SHA256.pdf" of NIST's examples, and the vector of a million letters.
TEST_CASE("the digest is SHA-256") {
  CHECK(sha256("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("").hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").hex() ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1'000'000, 'a')).hex() ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a digest in parts equals the digest of the whole") {
  const std::string text(1000, 'x');
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{999}, size_t{1000}}) {
    Sha256 hasher;
    hasher.update(text.substr(0, cut)).update(text.substr(cut));
    CHECK(hasher.finish() == sha256(text));
  }
}

TEST_CASE("hexadecimal digits read back and nothing else does") {
  const Digest digest = sha256("abc");
  CHECK(parse_digest(digest.hex()) == digest);
  CHECK(digest_from(digest.view()) == digest);
  const std::string hex = digest.hex();
  CHECK_FALSE(parse_digest("").has_value());
  CHECK_FALSE(parse_digest(hex.substr(1)).has_value());
  CHECK_FALSE(parse_digest(hex + "0").has_value());
  CHECK_FALSE(parse_digest(hex.substr(1) + "B").has_value());
  CHECK_FALSE(parse_digest(hex.substr(1) + "g").has_value());
  CHECK_FALSE(parse_digest(std::string(64, '\0')).has_value());
  CHECK(to_hex(Bytes{0, 0x1f, 0xff}) == "001fff");
}

TEST_CASE("only the digest of 32 zero bytes is zero") {
  CHECK(Digest{}.is_zero());
  CHECK_FALSE(sha256("").is_zero());
}

TEST_CASE("moving bytes between fields or domain changes the key") {
  const Digest whole = key("d", {{1, "ab"}, {2, "c"}});
  CHECK(whole == key("d", {{1, "ab"}, {2, "c"}}));
  CHECK(whole != key("d", {{1, "a"}, {2, "bc"}}));
  CHECK(whole != key("d", {{1, "abc"}, {2, ""}}));
  CHECK(whole != key("d", {{2, "ab"}, {1, "c"}}));
  CHECK(whole != key("d", {{2, "c"}, {1, "ab"}}));
  CHECK(whole != key("d", {{1, "ab"}}));
  CHECK(whole != key("d", {{1, "ab"}, {2, "c"}, {3, ""}}));
  CHECK(whole != key("e", {{1, "ab"}, {2, "c"}}));
}

TEST_CASE("a key is the digest of domain tag length and bytes") {
  ByteWriter expected;
  expected.raw(as_bytes("domain"));
  expected.u8(7);
  expected.u64(2);
  expected.raw(as_bytes("xy"));
  expected.u8(8);
  expected.u64(8);
  expected.u64(300);
  KeyHasher hasher("domain");
  hasher.field(7, "xy").field(8, uint64_t{300});
  CHECK(hasher.finish() == sha256(ByteView(expected.bytes())));
}

TEST_CASE("digests are ordered and can be kept in a hash table") {
  CHECK(Digest{} < sha256("abc"));
  const std::unordered_set<Digest> set = {sha256("a"), sha256("b"), sha256("a")};
  CHECK(set.size() == 2);
}
