// SHA-256 (FIPS 180-4) of libcrypto: the only digest kc uses.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/spares.h"

namespace kc::base {

struct Digest {
  std::array<uint8_t, 32> bytes{};

  auto operator<=>(const Digest&) const = default;
  bool is_zero() const { return *this == Digest{}; }
  ByteView view() const { return bytes; }
  /// 64 lower-case hexadecimal digits.
  std::string hex() const;
};

/// Exactly 64 lower-case hexadecimal digits, otherwise nothing.
std::optional<Digest> parse_digest(std::string_view hex);
std::string to_hex(ByteView bytes);
/// The digest in 32 raw bytes. Precondition: `bytes.size() == 32`.
Digest digest_from(ByteView bytes);
/// The 32 raw bytes, and back; `in` fails when there are fewer.
void write_digest(ByteWriter& out, const Digest& digest);
Digest read_digest(ByteReader& in);

/// Whether libcrypto has SHA-256 at all: without it nothing of kc is safe. A library asks this before it
/// makes its first digest, since all that follow throw where there is none. Throws std::bad_alloc.
bool digests_available();

/// Incremental SHA-256. Not for concurrent use of one object. Throws std::bad_alloc when there is no memory
/// for it, std::runtime_error when libcrypto offers no SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& update(ByteView bytes);
  Sha256& update(std::string_view text) { return update(as_bytes(text)); }
  /// Ends the computation; the object must not be used afterwards.
  Digest finish();

 private:
  struct State;
  static Spares<State> spares;
  std::unique_ptr<State> state_;
};

Digest sha256(ByteView bytes);
inline Digest sha256(std::string_view text) {
  return sha256(as_bytes(text));
}

/// SHA-256 over `domain` and then fields, each a one-byte tag and a u64-LE length before its bytes, so that
/// no two different lists of fields give the same input (DESIGN: Keys).
class KeyHasher {
 public:
  explicit KeyHasher(std::string_view domain) { hasher_.update(domain); }
  KeyHasher& field(uint8_t tag, ByteView bytes);
  KeyHasher& field(uint8_t tag, std::string_view text) { return field(tag, as_bytes(text)); }
  KeyHasher& field(uint8_t tag, uint64_t number);
  Digest finish() { return hasher_.finish(); }

 private:
  Sha256 hasher_;
};

}  // namespace kc::base

template <>
struct std::hash<kc::base::Digest> {
  size_t operator()(const kc::base::Digest& digest) const noexcept {
    size_t value;
    std::memcpy(&value, digest.bytes.data(), sizeof value);
    return value;
  }
};
