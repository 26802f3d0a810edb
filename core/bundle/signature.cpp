#include "bundle/signature.h"

#include <fcntl.h>
#include <openssl/asn1.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/atomic_file.h"
#include "base/crypto_library.h"
#include "base/files.h"

namespace kc::bundle {
namespace {

using base::Bytes;
using base::ByteView;
using base::crypto_library;
using base::ErrorKind;
using base::NoErrorsLeft;
using base::Result;

// A key takes 119 bytes, with the text that `openssl pkey -text` puts before it a few hundred.
constexpr uint64_t kMaxKeyFile = 64U << 10;
// PBKDF2 with HMAC-SHA256: what OWASP's Password Storage Cheat Sheet (2023) names; some tenths of a second.
constexpr int kDeriveRounds = 600'000;
constexpr int kSaltSize = 16;
constexpr const char* kEd25519 = "ED25519";
// SubjectPublicKeyInfo of an Ed25519 key (RFC 8410): the same 12 bytes before all of them.
constexpr std::array<uint8_t, 12> kPublicHead{0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                              0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
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

// What verifies, found once and called directly: see base/crypto_library.h.
struct Verifier {
  base::CryptoAlgorithm keys = base::find_algorithm(OSSL_OP_KEYMGMT, kEd25519);
  OSSL_FUNC_keymgmt_new_fn* make_key = keys.function(OSSL_FUNC_KEYMGMT_NEW, OSSL_FUNC_keymgmt_new);
  OSSL_FUNC_keymgmt_free_fn* free_key = keys.function(OSSL_FUNC_KEYMGMT_FREE, OSSL_FUNC_keymgmt_free);
  OSSL_FUNC_keymgmt_import_fn* import = keys.function(OSSL_FUNC_KEYMGMT_IMPORT, OSSL_FUNC_keymgmt_import);
  base::CryptoAlgorithm signatures = base::find_algorithm(OSSL_OP_SIGNATURE, kEd25519);
  OSSL_FUNC_signature_newctx_fn* make =
      signatures.function(OSSL_FUNC_SIGNATURE_NEWCTX, OSSL_FUNC_signature_newctx);
  OSSL_FUNC_signature_freectx_fn* free =
      signatures.function(OSSL_FUNC_SIGNATURE_FREECTX, OSSL_FUNC_signature_freectx);
  OSSL_FUNC_signature_digest_verify_init_fn* init =
      signatures.function(OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_INIT, OSSL_FUNC_signature_digest_verify_init);
  OSSL_FUNC_signature_digest_verify_fn* verify =
      signatures.function(OSSL_FUNC_SIGNATURE_DIGEST_VERIFY, OSSL_FUNC_signature_digest_verify);

  bool is_complete() const {
    return make_key != nullptr && free_key != nullptr && import != nullptr && make != nullptr &&
           free != nullptr && init != nullptr && verify != nullptr;
  }
};

const Verifier& verifier() {
  static const Verifier found;
  return found;
}

// What is done with private keys goes by the default context's configuration, whatever context is given. A
// program that has any is kc's own and needs none. Nothing that libkcload does comes here.
void use_no_configuration() {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

std::unexpected<base::Error> other_kind(const std::string& path, const char* name) {
  return bad_key(path,
                 std::string("holds a key of the kind ") + (name != nullptr ? name : "unknown") +
                     "; kc signs with Ed25519",
                 "`kc keygen` or `openssl genpkey -algorithm ed25519` makes one");
}

// The content of the object of ASN.1 at the beginning of `der`; nothing when that is none or of another kind.
std::optional<ByteView> asn1_content(ByteView der, int kind) {
  const unsigned char* at = der.data();
  long size = 0;
  int tag = 0;
  int space = 0;
  const int how = ASN1_get_object(&at, &size, &tag, &space, static_cast<long>(der.size()));
  if ((how & 0x81) != 0 || tag != kind) return std::nullopt;  // malformed, or of a length that is not stated
  return ByteView(at, static_cast<size_t>(size));
}

// What a SubjectPublicKeyInfo says that it is a key of; nullptr when it is none. By bytes: libcrypto's table
// of names goes by the default context's configuration.
const char* kind_of_public(ByteView der) {
  struct Kind {
    std::string_view identifier;
    const char* name;
  };
  static constexpr Kind kKinds[] = {
      {"\x2b\x65\x70", kEd25519},
      {"\x2b\x65\x71", "ED448"},
      {"\x2b\x65\x6e", "X25519"},
      {"\x2b\x65\x6f", "X448"},
      {"\x2a\x86\x48\xce\x3d\x02\x01", "EC"},
      {"\x2a\x86\x48\xce\x38\x04\x01", "DSA"},
      {"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01", "RSA"},
      {"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a", "RSA-PSS"},
  };
  const std::optional<ByteView> info = asn1_content(der, V_ASN1_SEQUENCE);
  if (!info || info->data() + info->size() != der.data() + der.size()) return nullptr;
  const std::optional<ByteView> algorithm = asn1_content(*info, V_ASN1_SEQUENCE);
  if (!algorithm) return nullptr;
  const std::optional<ByteView> identifier = asn1_content(*algorithm, V_ASN1_OBJECT);
  if (!identifier) return nullptr;
  const auto* found = std::ranges::find(kKinds, base::as_text(*identifier), &Kind::identifier);
  return found != std::end(kKinds) ? found->name : "unknown";
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
                                crypto_library(), nullptr));
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
  if (block->der.size() == kPublicHead.size() + 32 &&
      std::equal(kPublicHead.begin(), kPublicHead.end(), block->der.begin())) {
    PublicKey key;
    std::copy(block->der.begin() + kPublicHead.size(), block->der.end(), key.bytes.begin());
    return key;
  }
  const char* kind = kind_of_public(block->der);
  if (kind == nullptr || kind == std::string_view(kEd25519)) {
    return bad_key(path, "is damaged: its PEM block is no public key");
  }
  return other_kind(path, kind);
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
  use_no_configuration();
  const NoErrorsLeft errors;
  std::array<uint8_t, 32> seed;  // any 32 bytes are an Ed25519 private key (RFC 8032, 5.1.5)
  for (size_t at = 0; at < seed.size(); at += sizeof(uint64_t)) {
    const uint64_t random = base::random_u64();
    std::memcpy(seed.data() + at, &random, sizeof random);
  }
  auto impl = std::make_unique<Impl>();
  impl->key.reset(
      EVP_PKEY_new_raw_private_key_ex(crypto_library(), kEd25519, nullptr, seed.data(), seed.size()));
  OPENSSL_cleanse(seed.data(), seed.size());
  if (impl->key == nullptr) return no_ed25519("make an Ed25519 key");
  KC_ASSIGN(impl->public_key, raw_public_key(impl->key.get()));
  return PrivateKey(std::move(impl));
}

Result<PrivateKey> PrivateKey::read(const std::string& path, const std::optional<std::string>& passphrase) {
  use_no_configuration();
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
  impl->key.reset(EVP_PKCS82PKEY_ex(info.get(), crypto_library(), nullptr));
  if (impl->key == nullptr) return bad_key(path, "is damaged: its PEM block holds no key that kc knows");
  if (EVP_PKEY_is_a(impl->key.get(), kEd25519) != 1) {
    return other_kind(path, EVP_PKEY_get0_type_name(impl->key.get()));
  }
  KC_ASSIGN(impl->public_key, raw_public_key(impl->key.get()));
  return PrivateKey(std::move(impl));
}

PublicKey PrivateKey::public_key() const {
  return impl_->public_key;
}

Result<Bytes> PrivateKey::to_pem(const std::optional<std::string>& passphrase) const {
  use_no_configuration();
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
                                              NID_hmacWithSHA256, crypto_library());
    Algorithm algorithm(scheme);
    const EncryptedKey sealed(
        scheme == nullptr ? nullptr
                          : PKCS8_set0_pbe_ex(passphrase->data(), static_cast<int>(passphrase->size()),
                                              info.get(), scheme, crypto_library(), nullptr));
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
      EVP_DigestSignInit_ex(context.get(), nullptr, nullptr, crypto_library(), nullptr, impl_->key.get(),
                            nullptr) != 1 ||
      EVP_DigestSign(context.get(), out.data(), &size, message.data(), message.size()) != 1 ||
      size != out.size()) {
    return no_ed25519("sign with Ed25519");
  }
  return out;
}

std::string to_pem(const PublicKey& key) {
  std::array<uint8_t, kPublicHead.size() + 32> der;
  std::copy(key.bytes.begin(), key.bytes.end(),
            std::copy(kPublicHead.begin(), kPublicHead.end(), der.begin()));
  // 44 bytes are 60 characters, so one line; and the zero that EVP_EncodeBlock() adds.
  std::array<uint8_t, 61> base64;
  const int size = EVP_EncodeBlock(base64.data(), der.data(), static_cast<int>(der.size()));
  return "-----BEGIN PUBLIC KEY-----\n" + std::string(base64.begin(), base64.begin() + size) +
         "\n-----END PUBLIC KEY-----\n";
}

bool signatures_available() {
  return verifier().is_complete();
}

bool is_valid(const Signature& signature, ByteView message) {
  const NoErrorsLeft errors;
  const Verifier& use = verifier();
  if (!use.is_complete()) return false;
  const std::unique_ptr<void, OSSL_FUNC_keymgmt_free_fn*> key(use.make_key(use.keys.provider), use.free_key);
  const std::unique_ptr<void, OSSL_FUNC_signature_freectx_fn*> context(
      use.make(use.signatures.provider, nullptr), use.free);
  if (key == nullptr || context == nullptr) throw std::bad_alloc();
  std::array<uint8_t, 32> bytes = signature.key.bytes;
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, bytes.data(), bytes.size()),
      OSSL_PARAM_construct_end()};
  return use.import(key.get(), OSSL_KEYMGMT_SELECT_PUBLIC_KEY, parameters) == 1 &&
         use.init(context.get(), nullptr, key.get(), nullptr) == 1 &&
         use.verify(context.get(), signature.bytes.data(), signature.bytes.size(), message.data(),
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
