#include "bundle/signature.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/atomic_file.h"
#include "base/files.h"

namespace kc::bundle {
namespace {

using base::Bytes;
using base::ByteView;
using base::ErrorKind;
using base::Result;

// A key takes 119 bytes, with the text that `openssl pkey -text` puts before it a few hundred.
constexpr uint64_t kMaxKeyFile = 64U << 10;
// PBKDF2 with HMAC-SHA256: what OWASP's Password Storage Cheat Sheet (2023) names; some tenths of a second.
constexpr int kDeriveRounds = 600'000;
constexpr int kSaltSize = 16;
constexpr const char* kEd25519 = "ED25519";
constexpr std::string_view kBundleDomain{"kcb-signature-v1\0", 17};
constexpr std::string_view kArchiveDomain{"kca-signature-v1\0", 17};

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Pkey = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using KeyInfo = std::unique_ptr<PKCS8_PRIV_KEY_INFO, Freer<PKCS8_PRIV_KEY_INFO_free>>;
using EncryptedKey = std::unique_ptr<X509_SIG, Freer<X509_SIG_free>>;
using Algorithm = std::unique_ptr<X509_ALGOR, Freer<X509_ALGOR_free>>;

// A context of kc's own: no configuration file of the machine, nor what a host program has set up, changes
// which algorithms there are. Never freed: libcrypto's own clean-up at exit may come first.
OSSL_LIB_CTX* library() {
  static OSSL_LIB_CTX* const context = [] {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    return OSSL_LIB_CTX_new();
  }();
  return context;
}

// libcrypto keeps errors a thread until somebody takes them; ours are told in our own words.
class NoErrorsLeft {
 public:
  NoErrorsLeft() { ERR_set_mark(); }
  ~NoErrorsLeft() { ERR_pop_to_mark(); }
  NoErrorsLeft(const NoErrorsLeft&) = delete;
  NoErrorsLeft& operator=(const NoErrorsLeft&) = delete;
};

std::unexpected<base::Error> no_ed25519(const char* what) {
  return base::fail(ErrorKind::kEnvironment, std::string("libcrypto cannot ") + what);
}

// One PEM block.
struct Pem {
  std::string label;  // PUBLIC KEY
  Bytes der;

  Pem() = default;
  Pem(Pem&&) noexcept = default;
  Pem& operator=(Pem&&) noexcept = default;
  ~Pem() { OPENSSL_cleanse(der.data(), der.size()); }
};

// All blocks of a file. What is no whole block is passed over, as OpenSSL does.
Result<std::vector<Pem>> read_pem(const std::string& path) {
  KC_ASSIGN(Bytes text, base::read_file(path, kMaxKeyFile));
  std::vector<Pem> out;
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  for (;;) {
    char* label = nullptr;
    char* header = nullptr;
    unsigned char* data = nullptr;
    long size = 0;
    if (bio == nullptr || PEM_read_bio(bio.get(), &label, &header, &data, &size) != 1) break;
    Pem block;
    block.label = label;
    // A header makes it an encrypted key of the old form, whatever the label says.
    if (*header != '\0') block.label = "encrypted " + block.label;
    block.der.assign(data, data + size);
    out.push_back(std::move(block));
    OPENSSL_free(label);
    OPENSSL_free(header);
    OPENSSL_secure_clear_free(data, static_cast<size_t>(size));
  }
  OPENSSL_cleanse(text.data(), text.size());
  return out;
}

std::unexpected<base::Error> bad_key(const std::string& path, const std::string& what,
                                     std::string hint = {}) {
  return base::fail_at(ErrorKind::kInput, {path}, what, std::move(hint));
}

// What a file holds, for messages: labels are of the file's own making.
std::string kind_of(const std::string& label) {
  static constexpr std::string_view kKnown[] = {
      "PUBLIC KEY",     "PRIVATE KEY",     "ENCRYPTED PRIVATE KEY", "CERTIFICATE",    "RSA PRIVATE KEY",
      "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY",   "RSA PUBLIC KEY", "CERTIFICATE REQUEST"};
  const bool is_known = std::ranges::find(kKnown, label) != std::end(kKnown);
  return is_known ? "a PEM block \"" + label + "\"" : "a PEM block of another kind";
}

const Pem* find_block(const std::vector<Pem>& blocks, std::initializer_list<std::string_view> labels) {
  const auto found = std::ranges::find_if(
      blocks, [&](const Pem& block) { return std::ranges::find(labels, block.label) != labels.end(); });
  return found == blocks.end() ? nullptr : &*found;
}

Result<PublicKey> raw_public_key(const EVP_PKEY* key) {
  PublicKey out;
  size_t size = out.bytes.size();
  if (EVP_PKEY_get_raw_public_key(key, out.bytes.data(), &size) != 1 || size != out.bytes.size()) {
    return no_ed25519("give the bytes of an Ed25519 key");
  }
  return out;
}

Result<void> check_kind(const std::string& path, const EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, kEd25519) == 1) return {};
  const char* name = EVP_PKEY_get0_type_name(key);
  return bad_key(path,
                 std::string("holds a key of the kind ") + (name != nullptr ? name : "unknown") +
                     "; kc signs with Ed25519",
                 "`kc keygen` or `openssl genpkey -algorithm ed25519` makes one");
}

// The PKCS#8 structure of a block, decrypted when need be.
Result<KeyInfo> open_private(const std::string& path, const Pem& block,
                             const std::optional<std::string>& passphrase) {
  const unsigned char* at = block.der.data();
  const auto size = static_cast<long>(block.der.size());
  const std::string damaged = "is damaged: its PEM block is no PKCS#8 private key";
  if (block.label == "PRIVATE KEY") {
    KeyInfo info(d2i_PKCS8_PRIV_KEY_INFO(nullptr, &at, size));
    if (info == nullptr || at != block.der.data() + block.der.size()) return bad_key(path, damaged);
    return info;
  }
  const EncryptedKey sealed(d2i_X509_SIG(nullptr, &at, size));
  if (sealed == nullptr || at != block.der.data() + block.der.size()) return bad_key(path, damaged);
  if (!passphrase) {
    return bad_key(path, "is encrypted, and no passphrase is given",
                   "set KC_KEY_PASSPHRASE, or say --passphrase on a terminal");
  }
  KeyInfo info(PKCS8_decrypt_ex(sealed.get(), passphrase->data(), static_cast<int>(passphrase->size()),
                                library(), nullptr));
  // The padding of what a wrong passphrase makes of it is all that there is to tell it by.
  if (info == nullptr) return bad_key(path, "cannot be decrypted: the passphrase is wrong");
  return info;
}

}  // namespace

std::string PublicKey::id() const {
  return base::to_hex(bytes);
}

std::optional<PublicKey> parse_key_id(std::string_view text) {
  const auto digits = base::parse_digest(text);
  if (!digits) return std::nullopt;
  return PublicKey{digits->bytes};
}

Result<PublicKey> read_public_key(const std::string& path) {
  const NoErrorsLeft errors;
  KC_ASSIGN(const std::vector<Pem> blocks, read_pem(path));
  const Pem* block = find_block(blocks, {"PUBLIC KEY"});
  if (block == nullptr) {
    if (find_block(blocks, {"PRIVATE KEY", "ENCRYPTED PRIVATE KEY"}) != nullptr) {
      return bad_key(path, "is a private key; a public one is wanted",
                     "`openssl pkey -in FILE -pubout` prints it");
    }
    return bad_key(path,
                   blocks.empty() ? "is no PEM file with a public key"
                                  : "is no public key: it has " + kind_of(blocks.front().label),
                   "`openssl pkey -in KEY -pubout` writes public keys as kc reads them");
  }
  const unsigned char* at = block->der.data();
  const Pkey key(d2i_PUBKEY_ex(nullptr, &at, static_cast<long>(block->der.size()), library(), nullptr));
  if (key == nullptr || at != block->der.data() + block->der.size()) {
    return bad_key(path, "is damaged: its PEM block is no public key");
  }
  KC_TRY(check_kind(path, key.get()));
  return raw_public_key(key.get());
}

Result<std::vector<PublicKey>> read_key_folder(const std::string& path) {
  KC_ASSIGN(const std::vector<std::string> names, base::list_directory(AT_FDCWD, path));
  std::vector<PublicKey> out;
  for (const std::string& name : names) {
    if (!name.ends_with(".pem") && !name.ends_with(".pub")) continue;
    KC_ASSIGN(const PublicKey key, read_public_key(base::join_path(path, name)));
    out.push_back(key);
  }
  if (out.empty()) return bad_key(path, "has no public keys: no file *.pem or *.pub");
  return out;
}

struct PrivateKey::Impl {
  Pkey key;  // libcrypto wipes it
  PublicKey public_key;
};

PrivateKey::PrivateKey(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PrivateKey::PrivateKey(PrivateKey&&) noexcept = default;
PrivateKey& PrivateKey::operator=(PrivateKey&&) noexcept = default;
PrivateKey::~PrivateKey() = default;

Result<PrivateKey> PrivateKey::generate() {
  const NoErrorsLeft errors;
  std::array<uint8_t, 32> seed;  // any 32 bytes are an Ed25519 private key (RFC 8032, 5.1.5)
  for (size_t at = 0; at < seed.size(); at += sizeof(uint64_t)) {
    const uint64_t random = base::random_u64();
    std::memcpy(seed.data() + at, &random, sizeof random);
  }
  auto impl = std::make_unique<Impl>();
  impl->key.reset(EVP_PKEY_new_raw_private_key_ex(library(), kEd25519, nullptr, seed.data(), seed.size()));
  OPENSSL_cleanse(seed.data(), seed.size());
  if (impl->key == nullptr) return no_ed25519("make an Ed25519 key");
  KC_ASSIGN(impl->public_key, raw_public_key(impl->key.get()));
  return PrivateKey(std::move(impl));
}

Result<PrivateKey> PrivateKey::read(const std::string& path, const std::optional<std::string>& passphrase) {
  const NoErrorsLeft errors;
  KC_ASSIGN(const std::vector<Pem> blocks, read_pem(path));
  const Pem* block = find_block(blocks, {"PRIVATE KEY", "ENCRYPTED PRIVATE KEY"});
  if (block == nullptr) {
    if (find_block(blocks, {"PUBLIC KEY"}) != nullptr) {
      return bad_key(path, "is a public key; the private one signs");
    }
    return bad_key(path,
                   blocks.empty() ? "is no PEM file with a private key"
                                  : "is no PKCS#8 private key: it has " + kind_of(blocks.front().label),
                   "`kc keygen` or `openssl genpkey -algorithm ed25519` makes one");
  }
  KC_ASSIGN(const KeyInfo info, open_private(path, *block, passphrase));
  auto impl = std::make_unique<Impl>();
  impl->key.reset(EVP_PKCS82PKEY_ex(info.get(), library(), nullptr));
  if (impl->key == nullptr) return bad_key(path, "is damaged: its PEM block holds no key that kc knows");
  KC_TRY(check_kind(path, impl->key.get()));
  KC_ASSIGN(impl->public_key, raw_public_key(impl->key.get()));
  return PrivateKey(std::move(impl));
}

PublicKey PrivateKey::public_key() const {
  return impl_->public_key;
}

Result<Bytes> PrivateKey::to_pem(const std::optional<std::string>& passphrase) const {
  const NoErrorsLeft errors;
  const KeyInfo info(EVP_PKEY2PKCS8(impl_->key.get()));
  const Bio bio(BIO_new(BIO_s_secmem()));
  if (info == nullptr || bio == nullptr) return no_ed25519("write a private key");
  if (!passphrase) {
    if (PEM_write_bio_PKCS8_PRIV_KEY_INFO(bio.get(), info.get()) != 1) {
      return no_ed25519("write a private key");
    }
  } else {
    // Salt and initial value are random; the first 0 asks for both.
    X509_ALGOR* scheme = PKCS5_pbe2_set_iv_ex(EVP_aes_256_cbc(), kDeriveRounds, nullptr, kSaltSize, nullptr,
                                              NID_hmacWithSHA256, library());
    Algorithm algorithm(scheme);
    const EncryptedKey sealed(scheme == nullptr ? nullptr
                                                : PKCS8_set0_pbe_ex(passphrase->data(),
                                                                    static_cast<int>(passphrase->size()),
                                                                    info.get(), scheme, library(), nullptr));
    if (sealed == nullptr) return no_ed25519("encrypt a private key");
    static_cast<void>(algorithm.release());  // it is the encrypted key's now
    if (PEM_write_bio_PKCS8(bio.get(), sealed.get()) != 1) return no_ed25519("write a private key");
  }
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  if (size <= 0) return no_ed25519("write a private key");
  return Bytes(text, text + size);
}

Result<std::array<uint8_t, 64>> PrivateKey::sign(ByteView message) const {
  const NoErrorsLeft errors;
  const DigestContext context(EVP_MD_CTX_new());
  std::array<uint8_t, 64> out{};
  size_t size = out.size();
  if (context == nullptr ||
      EVP_DigestSignInit_ex(context.get(), nullptr, nullptr, library(), nullptr, impl_->key.get(), nullptr) !=
          1 ||
      EVP_DigestSign(context.get(), out.data(), &size, message.data(), message.size()) != 1 ||
      size != out.size()) {
    return no_ed25519("sign with Ed25519");
  }
  return out;
}

std::string to_pem(const PublicKey& key) {
  // SubjectPublicKeyInfo of an Ed25519 key (RFC 8410): the same 12 bytes before all of them.
  constexpr std::array<uint8_t, 12> kHead{0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                          0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
  std::array<uint8_t, kHead.size() + 32> der;
  std::copy(key.bytes.begin(), key.bytes.end(), std::copy(kHead.begin(), kHead.end(), der.begin()));
  // 44 bytes are 60 characters, so one line; and the zero that EVP_EncodeBlock() adds.
  std::array<uint8_t, 61> base64;
  const int size = EVP_EncodeBlock(base64.data(), der.data(), static_cast<int>(der.size()));
  return "-----BEGIN PUBLIC KEY-----\n" + std::string(base64.begin(), base64.begin() + size) +
         "\n-----END PUBLIC KEY-----\n";
}

bool is_valid(const Signature& signature, ByteView message) {
  const NoErrorsLeft errors;
  const Pkey key(EVP_PKEY_new_raw_public_key_ex(library(), kEd25519, nullptr, signature.key.bytes.data(),
                                                signature.key.bytes.size()));
  const DigestContext context(EVP_MD_CTX_new());
  return key != nullptr && context != nullptr &&
         EVP_DigestVerifyInit_ex(context.get(), nullptr, nullptr, library(), nullptr, key.get(), nullptr) ==
             1 &&
         EVP_DigestVerify(context.get(), signature.bytes.data(), signature.bytes.size(), message.data(),
                          message.size()) == 1;
}

Bytes bundle_message(const base::Digest& header_digest) {
  base::ByteWriter out;
  out.raw(base::as_bytes(kBundleDomain));
  out.raw(header_digest.view());
  return out.take();
}

Bytes archive_message(const base::Digest& content_digest) {
  base::ByteWriter out;
  out.raw(base::as_bytes(kArchiveDomain));
  out.raw(content_digest.view());
  return out.take();
}

}  // namespace kc::bundle
