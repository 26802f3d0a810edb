#include "base/digest.h"

#include <openssl/core_dispatch.h>

#include <new>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/crypto_library.h"

namespace kc::base {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

// Found once. Called directly, see base/crypto_library.h; it is faster than by EVP besides.
struct Functions {
  CryptoAlgorithm sha256 = find_algorithm(OSSL_OP_DIGEST, "SHA2-256");
  OSSL_FUNC_digest_newctx_fn* make = sha256.function(OSSL_FUNC_DIGEST_NEWCTX, OSSL_FUNC_digest_newctx);
  OSSL_FUNC_digest_freectx_fn* free = sha256.function(OSSL_FUNC_DIGEST_FREECTX, OSSL_FUNC_digest_freectx);
  OSSL_FUNC_digest_init_fn* init = sha256.function(OSSL_FUNC_DIGEST_INIT, OSSL_FUNC_digest_init);
  OSSL_FUNC_digest_update_fn* update = sha256.function(OSSL_FUNC_DIGEST_UPDATE, OSSL_FUNC_digest_update);
  OSSL_FUNC_digest_final_fn* final = sha256.function(OSSL_FUNC_DIGEST_FINAL, OSSL_FUNC_digest_final);

  bool are_complete() const {
    return make != nullptr && free != nullptr && init != nullptr && update != nullptr && final != nullptr;
  }
};

const Functions& sha256_functions() {
  static const Functions functions = [] {
    const Functions found;
    if (!found.are_complete()) throw std::runtime_error("libcrypto offers no SHA-256");
    return found;
  }();
  return functions;
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

// A digest that was made does not fail but when the process is at its end and libcrypto is cleaned up.
void check(int result) {
  if (result != 1) throw std::runtime_error("libcrypto cannot compute SHA-256");
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
  State() : functions(sha256_functions()), context(functions.make(functions.sha256.provider)) {
    if (context == nullptr) throw std::bad_alloc();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { functions.free(context); }

  const Functions& functions;
  void* context;
};

// What earlier digests used: making one anew costs as much as hashing 2 KiB. At exit they are freed after
// libcrypto has cleaned up: the provider's function only gives memory back.
constinit Spares<Sha256::State> Sha256::spares;

Sha256::Sha256() : state_(spares.take()) {
  if (state_ == nullptr) state_ = std::make_unique<State>();
  check(state_->functions.init(state_->context, nullptr));
}

Sha256::~Sha256() {
  spares.give_back(std::move(state_));
}

Sha256& Sha256::update(ByteView bytes) {
  if (!bytes.empty()) check(state_->functions.update(state_->context, bytes.data(), bytes.size()));
  return *this;
}

Digest Sha256::finish() {
  Digest out;
  size_t size = 0;
  check(state_->functions.final(state_->context, out.bytes.data(), &size, out.bytes.size()));
  return out;
}

bool digests_available() {
  try {
    return sha256_functions().are_complete();
  } catch (const std::runtime_error&) {
    return false;
  }
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
