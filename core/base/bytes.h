// Byte buffers and the little-endian codec that every file and message of kc is written with.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kc::base {

static_assert(std::endian::native == std::endian::little, "kc runs on little-endian hosts");
static_assert(sizeof(void*) == 8, "kc runs on 64-bit hosts");

using Bytes = std::vector<uint8_t>;
using ByteView = std::span<const uint8_t>;

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A run of bytes of its own that is not set to zero first: for what is overwritten whole at once.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size) : data_(std::make_unique_for_overwrite<uint8_t[]>(size)), size_(size) {}

  std::span<uint8_t> span() { return {data_.get(), size_}; }
  ByteView view() const { return {data_.get(), size_}; }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_ = 0;
};

/// Reads an unsigned integer at `offset`. Precondition: it lies within `bytes`.
template <typename T>
T load_le(ByteView bytes, size_t offset) {
  static_assert(std::is_unsigned_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// Appends fixed-size little-endian integers and length-prefixed strings to a buffer it owns.
class ByteWriter {
 public:
  void u8(uint8_t value) { out_.push_back(value); }
  void u16(uint16_t value) { integer(value); }
  void u32(uint32_t value) { integer(value); }
  void u64(uint64_t value) { integer(value); }
  void i64(int64_t value) { integer(static_cast<uint64_t>(value)); }
  void f64(double value) { integer(std::bit_cast<uint64_t>(value)); }
  void boolean(bool value) { u8(value ? 1 : 0); }
  void raw(ByteView bytes);
  /// u32 length, then the bytes.
  void text(std::string_view value) {
    u32(static_cast<uint32_t>(value.size()));
    raw(as_bytes(value));
  }
  /// u64 length, then the bytes.
  void blob(ByteView value) {
    u64(value.size());
    raw(value);
  }
  /// Zero bytes until the size is a multiple of `alignment`.
  void pad_to(size_t alignment) {
    while (out_.size() % alignment != 0) out_.push_back(0);
  }
  size_t size() const { return out_.size(); }
  Bytes& bytes() { return out_; }
  Bytes take() { return std::move(out_); }

 private:
  template <typename T>
  void integer(T value) {
    const size_t at = out_.size();
    out_.resize(at + sizeof value);
    std::memcpy(out_.data() + at, &value, sizeof value);
  }
  Bytes out_;
};

/// Reads what ByteWriter wrote, from bytes that may be hostile. After the first read beyond the end, or of a
/// length beyond what is left, `ok()` is false and every later read gives zero or empty: check once at the
/// end.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) : bytes_(bytes) {}

  uint8_t u8() { return integer<uint8_t>(); }
  uint16_t u16() { return integer<uint16_t>(); }
  uint32_t u32() { return integer<uint32_t>(); }
  uint64_t u64() { return integer<uint64_t>(); }
  int64_t i64() { return static_cast<int64_t>(integer<uint64_t>()); }
  double f64() { return std::bit_cast<double>(integer<uint64_t>()); }
  /// Anything but 0 and 1 is an error.
  bool boolean() {
    const uint8_t value = u8();
    if (value > 1) fail();
    return value == 1;
  }
  ByteView raw(uint64_t size) {
    if (!ok_ || size > left()) {
      fail();
      return {};
    }
    const ByteView out = bytes_.subspan(at_, static_cast<size_t>(size));
    at_ += static_cast<size_t>(size);
    return out;
  }
  std::string text() { return std::string(as_text(raw(u32()))); }
  ByteView blob() { return raw(u64()); }
  /// An element count, refused when `count * least_bytes_each` exceeds what is left: safe to reserve for.
  uint32_t count(size_t least_bytes_each) {
    const uint32_t value = u32();
    if (static_cast<uint64_t>(value) * least_bytes_each > left()) {
      fail();
      return 0;
    }
    return value;
  }
  size_t left() const { return ok_ ? bytes_.size() - at_ : 0; }
  size_t position() const { return at_; }
  bool ok() const { return ok_; }
  /// True when everything was read and nothing is left.
  bool complete() const { return ok_ && at_ == bytes_.size(); }
  void fail() { ok_ = false; }

 private:
  template <typename T>
  T integer() {
    const ByteView part = raw(sizeof(T));
    return ok_ ? load_le<T>(part, 0) : T{};
  }
  ByteView bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace kc::base
