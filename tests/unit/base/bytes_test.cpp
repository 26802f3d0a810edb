#include "base/bytes.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace kc::base;

namespace {

Bytes one_of_each() {
  ByteWriter out;
  out.u8(0x12);
  out.u16(0x1234);
  out.u32(0x12345678);
  out.u64(0x123456789abcdef0);
  out.i64(-2);
  out.f64(0.5);
  out.boolean(true);
  out.text("name");
  out.blob(as_bytes("blob"));
  return out.take();
}

}  // namespace

TEST_CASE("integers are written in little-endian order") {
  ByteWriter out;
  out.u16(0x0102);
  out.u32(0x03040506);
  CHECK(out.bytes() == Bytes{2, 1, 6, 5, 4, 3});
  CHECK(load_le<uint16_t>(out.bytes(), 1) == 0x0601);
}

TEST_CASE("texts carry four bytes of length and blobs eight") {
  ByteWriter out;
  out.text("a");
  out.blob(as_bytes("b"));
  CHECK(out.bytes() == Bytes{1, 0, 0, 0, 'a', 1, 0, 0, 0, 0, 0, 0, 0, 'b'});
}

TEST_CASE("padding is zero and ends at the next multiple") {
  ByteWriter out;
  out.pad_to(8);
  CHECK(out.size() == 0);
  out.u8(1);
  out.pad_to(4);
  CHECK(out.bytes() == Bytes{1, 0, 0, 0});
  out.pad_to(4);
  CHECK(out.size() == 4);
}

TEST_CASE("a reader gives back what a writer wrote") {
  const Bytes bytes = one_of_each();
  ByteReader in(bytes);
  CHECK(in.u8() == 0x12);
  CHECK(in.u16() == 0x1234);
  CHECK(in.u32() == 0x12345678);
  CHECK(in.u64() == 0x123456789abcdef0);
  CHECK(in.i64() == -2);
  CHECK(in.f64() == 0.5);
  CHECK(in.boolean());
  CHECK(in.text() == "name");
  CHECK(as_text(in.blob()) == "blob");
  CHECK(in.complete());
  CHECK(in.position() == bytes.size());
}

TEST_CASE("a reader of any truncation fails and gives zero from then on") {
  const Bytes bytes = one_of_each();
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(ByteView(bytes).first(size));
    in.u8();
    in.u16();
    in.u32();
    in.u64();
    in.i64();
    in.f64();
    in.boolean();
    in.text();
    in.blob();
    CHECK_FALSE(in.ok());
    CHECK_FALSE(in.complete());
    CHECK(in.left() == 0);
    CHECK(in.u8() == 0);
    CHECK(in.u64() == 0);
    CHECK(in.text().empty());
    CHECK(in.blob().empty());
    CHECK(in.raw(0).empty());
    CHECK_FALSE(in.ok());
  }
}

TEST_CASE("lengths beyond what is left are refused however large") {
  for (const uint64_t size : {uint64_t{1}, uint64_t{1} << 40, std::numeric_limits<uint64_t>::max()}) {
    ByteWriter out;
    out.u64(size);
    ByteReader in(out.bytes());
    CHECK(in.blob().empty());
    CHECK_FALSE(in.ok());
  }
  ByteWriter out;
  out.u32(0xffffffff);
  ByteReader in(out.bytes());
  CHECK(in.text().empty());
  CHECK_FALSE(in.ok());
}

TEST_CASE("a count is accepted up to what the bytes behind it can hold") {
  ByteWriter out;
  out.u32(2);
  out.u64(0);
  ByteReader fits(out.bytes());
  CHECK(fits.count(4) == 2);
  CHECK(fits.ok());
  ByteReader too_many(out.bytes());
  CHECK(too_many.count(5) == 0);
  CHECK_FALSE(too_many.ok());
  ByteWriter huge;
  huge.u32(0xffffffff);
  huge.u64(0);
  ByteReader overflow(huge.bytes());
  CHECK(overflow.count(0x7fffffff) == 0);
  CHECK_FALSE(overflow.ok());
}

TEST_CASE("a boolean that is neither 0 nor 1 fails") {
  const Bytes bytes = {2};
  ByteReader in(bytes);
  CHECK_FALSE(in.boolean());
  CHECK_FALSE(in.ok());
}

TEST_CASE("bytes that are left make a read incomplete but not wrong") {
  const Bytes bytes = {1, 2};
  ByteReader in(bytes);
  in.u8();
  CHECK(in.ok());
  CHECK_FALSE(in.complete());
  CHECK(in.left() == 1);
}
