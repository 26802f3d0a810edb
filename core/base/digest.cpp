#include "base/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

namespace kc::base {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

[[noreturn]] void no_sha256() {
  std::fputs("kc: libcrypto offers no SHA-256\n", stderr);
  std::abort();
}

// Fetched once: EVP_sha256() would look the implementation up again at every digest, a lock and a hash table
// look-up that costs more than hashing a small file. No configuration file is read: kc needs none, and a
// broken openssl.cnf must not break a build.
const EVP_MD* fetched_sha256() {
  static const EVP_MD* const md = [] {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    return EVP_MD_fetch(nullptr, "SHA2-256", nullptr);
  }();
  if (md == nullptr) no_sha256();
  return md;
}

void put_le(std::span<uint8_t, 8> out, uint64_t number) {
  for (uint8_t& byte : out) {
    byte = static_cast<uint8_t>(number);
    number >>= 8;
  }
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string to_hex(ByteView bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
  return out;
}

std::string Digest::hex() const {
  return to_hex(bytes);
}

std::optional<Digest> parse_digest(std::string_view hex) {
  Digest out;
  if (hex.size() != out.bytes.size() * 2) return std::nullopt;
  for (size_t i = 0; i < out.bytes.size(); ++i) {
    const int high = hex_value(hex[2 * i]);
    const int low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return out;
}

Digest digest_from(ByteView bytes) {
  Digest out;
  std::memcpy(out.bytes.data(), bytes.data(), out.bytes.size());
  return out;
}

void write_digest(ByteWriter& out, const Digest& digest) {
  out.raw(digest.bytes);
}

Digest read_digest(ByteReader& in) {
  const ByteView bytes = in.raw(Digest{}.bytes.size());
  return in.ok() ? digest_from(bytes) : Digest{};
}

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

// What the last digest of this thread used, for the next: making one anew costs as much as hashing 2 KiB.
std::unique_ptr<Sha256::State>& Sha256::spare() {
  thread_local std::unique_ptr<State> state;
  return state;
}

Sha256::Sha256() : state_(spare() ? std::move(spare()) : std::make_unique<State>()) {
  if (state_->context == nullptr || EVP_DigestInit_ex2(state_->context, fetched_sha256(), nullptr) != 1) {
    no_sha256();
  }
}

Sha256::~Sha256() {
  if (!spare()) spare() = std::move(state_);
}

Sha256& Sha256::update(ByteView bytes) {
  if (!bytes.empty() && EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) != 1) no_sha256();
  return *this;
}

Digest Sha256::finish() {
  Digest out;
  if (EVP_DigestFinal_ex(state_->context, out.bytes.data(), nullptr) != 1) no_sha256();
  return out;
}

Digest sha256(ByteView bytes) {
  Sha256 hasher;
  hasher.update(bytes);
  return hasher.finish();
}

KeyHasher& KeyHasher::field(uint8_t tag, ByteView bytes) {
  std::array<uint8_t, 9> head{tag};
  put_le(std::span(head).last<8>(), bytes.size());
  hasher_.update(ByteView(head));
  hasher_.update(bytes);
  return *this;
}

KeyHasher& KeyHasher::field(uint8_t tag, uint64_t number) {
  std::array<uint8_t, 8> value{};
  put_le(value, number);
  return field(tag, ByteView(value));
}

}  // namespace kc::base
