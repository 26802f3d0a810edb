#include "base/compress.h"

#include <doctest/doctest.h>

#include <string>

using namespace kc::base;

namespace {

Bytes raw_bytes() {
  Bytes raw;
  for (uint32_t i = 0; i < 5000; ++i) raw.push_back(static_cast<uint8_t>(i * i >> 4));
  return raw;
}

Bytes frame_of(ByteView raw, int level = 3) {
  auto frame = compress(raw, level);
  REQUIRE(frame.has_value());
  return *frame;
}

}  // namespace

TEST_CASE("a frame gives back what was compressed at each level") {
  const Bytes raw = raw_bytes();
  for (int level = kMinLevel; level <= kMaxLevel; level += 6) {
    const Bytes frame = frame_of(raw, level);
    CHECK(decompress(frame, raw.size()) == raw);
    CHECK(frame == frame_of(raw, level));
  }
}

TEST_CASE("a frame takes no more memory than it has bytes") {
  const auto frame = compress(Bytes(1U << 20), 3);
  REQUIRE(frame);
  CHECK(frame->capacity() == frame->size());
}

TEST_CASE("nothing compresses to a frame of nothing") {
  const Bytes frame = frame_of({});
  CHECK(decompress(frame, 0) == Bytes{});
  CHECK_FALSE(decompress({}, 0).has_value());
}

TEST_CASE("another size than the recorded one is refused before memory is taken") {
  const Bytes raw = raw_bytes();
  const Bytes frame = frame_of(raw);
  for (const size_t size : {size_t{0}, raw.size() - 1, raw.size() + 1, size_t{1} << 60}) {
    const auto result = decompress(frame, size);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().kind == ErrorKind::kFailed);
  }
}

TEST_CASE("a frame that claims more than its bytes can hold is refused before memory is taken") {
  const Bytes zeros(16U << 20);  // as small as a frame of its size can be
  CHECK(decompress(frame_of(zeros), zeros.size()) == zeros);
  // A header that claims 1 TiB, and one raw block of one byte behind it.
  const Bytes claims = {0x28, 0xB5, 0x2F, 0xFD, 0xE0, 0, 0, 0, 0, 0, 1, 0, 0, 9, 0, 0, 'x'};
  const auto result = decompress(claims, size_t{1} << 40);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().kind == ErrorKind::kFailed);
  CHECK(result.error().message == "compressed data claims more bytes than it can hold");
}

TEST_CASE("a truncation to any length is refused") {
  const Bytes raw = raw_bytes();
  const Bytes frame = frame_of(raw);
  for (size_t size = 0; size < frame.size(); ++size) {
    CHECK_FALSE(decompress(ByteView(frame).first(size), raw.size()).has_value());
  }
}

TEST_CASE("bytes behind the frame are refused") {
  const Bytes raw = raw_bytes();
  Bytes frame = frame_of(raw);
  const Bytes second = frame_of({});
  frame.push_back(0);
  CHECK_FALSE(decompress(frame, raw.size()).has_value());
  frame.pop_back();
  frame.insert(frame.end(), second.begin(), second.end());
  CHECK_FALSE(decompress(frame, raw.size()).has_value());
}

TEST_CASE("a frame that holds no data is not taken for an empty one") {
  // A skippable frame (RFC 8878, 3.1.2): magic, size, content.
  const Bytes skippable = {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 42};
  CHECK_FALSE(decompress(skippable, 0).has_value());
}

TEST_CASE("no byte flip makes decompression read or write out of bounds") {
  const Bytes raw = raw_bytes();
  const Bytes frame = frame_of(raw);
  for (size_t i = 0; i < frame.size(); ++i) {
    Bytes flipped = frame;
    flipped[i] ^= 0x41;
    const auto result = decompress(flipped, raw.size());
    if (result) CHECK(result->size() == raw.size());
  }
}

TEST_CASE("the version of the compressor is known") {
  CHECK(std::string(compressor_version()).starts_with("1."));
}
