// Ed25519 signatures (RFC 8032) over bundles and archives, and keys as OpenSSL's PEM files hold them
// (docs/bundle-format.md: Signature blocks). What a signature is worth is decided by who demands one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"

namespace kc::bundle {

/// A raw Ed25519 public key.
struct PublicKey {
  std::array<uint8_t, 32> bytes{};

  bool operator==(const PublicKey&) const = default;
  /// 64 lower-case hexadecimal digits: how a signer is named in entries and messages.
  std::string id() const;
};
/// The key of such a name; nothing for any other text.
std::optional<PublicKey> parse_key_id(std::string_view text);

/// From a PEM file with a SubjectPublicKeyInfo, as `openssl pkey -pubout` writes it. ErrorKind::kInput: not
/// there, another kind of key, or a private key, of which the message says how to get the public one.
base::Result<PublicKey> read_public_key(const std::string& path);
/// All `*.pem` and `*.pub` files of a folder, sorted by name; none is ErrorKind::kInput.
base::Result<std::vector<PublicKey>> read_key_folder(const std::string& path);

/// A private key. Its bytes are wiped when the object goes. Not for concurrent use. For programs of kc's own:
/// whoever uses one turns off the automatic configuration of libcrypto's default context.
class PrivateKey {
 public:
  /// A new one from the kernel's generator.
  static base::Result<PrivateKey> generate();
  /// From a PKCS#8 PEM file as `openssl genpkey -algorithm ed25519` writes it, encrypted or not.
  /// ErrorKind::kInput; a passphrase that is missing or wrong is told apart from a damaged file.
  static base::Result<PrivateKey> read(const std::string& path, const std::optional<std::string>& passphrase);
  PrivateKey(PrivateKey&&) noexcept;
  PrivateKey& operator=(PrivateKey&&) noexcept;
  ~PrivateKey();

  PublicKey public_key() const;
  /// PKCS#8 PEM, encrypted (PBES2, AES-256-CBC) when there is a passphrase.
  base::Result<base::Bytes> to_pem(const std::optional<std::string>& passphrase) const;
  base::Result<std::array<uint8_t, 64>> sign(base::ByteView message) const;

 private:
  struct Impl;
  explicit PrivateKey(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// SubjectPublicKeyInfo PEM.
std::string to_pem(const PublicKey& key);

struct Signature {
  PublicKey key;
  std::array<uint8_t, 64> bytes{};
};
/// Whether libcrypto has Ed25519 at all: where it has not, no signature is valid.
bool signatures_available();
/// Whether `signature` is that of its key over `message`. False too when the key is no point of the curve.
/// Throws std::bad_alloc when there is no memory to tell.
bool is_valid(const Signature& signature, base::ByteView message);

/// What is signed of a bundle: `kcb-signature-v1\0` and the header's digest.
base::Bytes bundle_message(const base::Digest& header_digest);
/// What is signed of an archive of the store: `kca-signature-v1\0` and the digest of all before the blocks.
base::Bytes archive_message(const base::Digest& content_digest);

/// One block with its padding.
base::Bytes encode_block(const Signature& signature);
/// The Ed25519 signatures in a run of whole blocks, those of other types left out. ErrorKind::kFailed for
/// bytes that are no block, a digest that is wrong, padding that is not zero, or too many.
base::Result<std::vector<Signature>> read_blocks(base::ByteView blocks);

}  // namespace kc::bundle
