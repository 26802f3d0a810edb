#include "bundle/signature.h"

#include <openssl/evp.h>
#include <sys/stat.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bundle_support.h"
#include "support/run_apart.h"

namespace {

using namespace kc;
using bundle::PrivateKey;
using bundle::PublicKey;
using bundle::Signature;
using bundle::testing::Folder;
using bundle::testing::read_all;
using bundle::testing::small_input;
using bundle::testing::write_file;

base::Bytes from_hex(std::string_view text) {
  base::Bytes out;
  for (size_t i = 0; i < text.size(); i += 2) {
    out.push_back(static_cast<uint8_t>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

template <size_t Size>
std::array<uint8_t, Size> array_of(std::string_view hex) {
  const base::Bytes bytes = from_hex(hex);
  REQUIRE(bytes.size() == Size);
  std::array<uint8_t, Size> out;
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

std::string base64(base::ByteView bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (i + k < bytes.size() ? bytes[i + k] : 0U);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string pem(const std::string& label, base::ByteView der) {
  return "-----BEGIN " + label + "-----\n" + base64(der) + "\n-----END " + label + "-----\n";
}

// A private key of 32 given bytes as PKCS#8 (RFC 8410).
std::string private_pem(std::string_view seed) {
  base::Bytes der = from_hex("302e020100300506032b657004220420");
  const base::Bytes bytes = from_hex(seed);
  der.insert(der.end(), bytes.begin(), bytes.end());
  return pem("PRIVATE KEY", der);
}

// RFC 8032, 7.1.
struct Vector {
  const char *seed, *key, *message, *signature;
};
constexpr Vector kVectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f"
     "0595b"
     "be24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2ea"
     "eb430"
     "2aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e"
     "9716e"
     "d28dc027beceea1ec40a"},
    {"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
     "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d442"
     "3643ce"
     "80e2a9ac94fa54ca49f",
     "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179"
     "c138a"
     "c17ad9bef1177331a704"},
};

// One key as OpenSSL 3.0 wrote it (genpkey -algorithm ed25519, pkey -pubout, pkey -aes256): of no use
// elsewhere.
constexpr const char* kPlain = R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIFeO4qUQ2vYtfWOTlW6O/IIjvPJsaYX2GAe556MQADVv
-----END PRIVATE KEY-----
)";
constexpr const char* kPublic = R"(-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAUAcMcF4QyMz3vgyRaenYefIjy9M5c6mRF7xXXMl1lJk=
-----END PUBLIC KEY-----
)";
constexpr const char* kEncrypted = R"(-----BEGIN ENCRYPTED PRIVATE KEY-----
MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAh5+tq3VjSJyAICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEAN6BaSv8OOn2ad0T0o//+sEQCtM
w60yqmbwOfqQ6/sISHYY3h+P5JYvqp6rJZQCnKUv7XNFql+R/tEBSolTTJEexFmX
dEOeDWJ6ak+9ZT/xPTc=
-----END ENCRYPTED PRIVATE KEY-----
)";
constexpr const char* kId = "50070c705e10c8ccf7be0c9169e9d879f223cbd33973a99117bc575cc9759499";

// Other kinds that OpenSSL writes into the same labels.
constexpr const char* kX25519Private = R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VuBCIEIGBrvNzc7DiuYa/a030pi6U7zH7k/P3LPjed06YUs/dw
-----END PRIVATE KEY-----
)";
constexpr const char* kX25519Public = R"(-----BEGIN PUBLIC KEY-----
MCowBQYDK2VuAyEATv74ApwokOvqMsqMkTG2jBybnbZ6AamyTMVwxgtyBl0=
-----END PUBLIC KEY-----
)";
constexpr const char* kEcPublic = R"(-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAELMRCgvJoVJiO8WVNtDP5INkwXArH
7Pf38LQGShJqjl+ffErQ8QZfHs+1n7d2AjhBO9ABtiNn3YdwYCyeqyClkg==
-----END PUBLIC KEY-----
)";
constexpr const char* kEcPrivate = R"(-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIF8fqLPOTnqLzg/paHIENB0rLxrUMnnRRy1JZ/JmKSRvoAoGCCqGSM49
AwEHoUQDQgAELMRCgvJoVJiO8WVNtDP5INkwXArH7Pf38LQGShJqjl+ffErQ8QZf
Hs+1n7d2AjhBO9ABtiNn3YdwYCyeqyClkg==
-----END EC PRIVATE KEY-----
)";
constexpr const char* kEd448Private = R"(-----BEGIN PRIVATE KEY-----
MEcCAQAwBQYDK2VxBDsEOdjspuXAT0yXMLJeRBOq7xv78OlZUCN1ry1khsN2VVd/
2L//X2ru6ovCE1qxg4kybZjyvTcwqo0ALA==
-----END PRIVATE KEY-----
)";

struct KeyFile {
  Folder folder;
  std::string path = folder / "key";

  const std::string& with(std::string_view text) const {
    write_file(path, base::as_bytes(text));
    return path;
  }
};

PrivateKey private_key(const std::string& text, const std::optional<std::string>& passphrase = {}) {
  const KeyFile file;
  auto key = PrivateKey::read(file.with(text), passphrase);
  REQUIRE_MESSAGE(key, (key ? "" : key.error().text()));
  return std::move(*key);
}

std::string private_error(const std::string& text, const std::optional<std::string>& passphrase = {}) {
  const KeyFile file;
  const auto key = PrivateKey::read(file.with(text), passphrase);
  REQUIRE_FALSE(key);
  CHECK(key.error().kind == base::ErrorKind::kInput);
  CHECK(key.error().place.file == file.path);
  return key.error().message;
}

std::string public_error(const std::string& text) {
  const KeyFile file;
  const auto key = bundle::read_public_key(file.with(text));
  REQUIRE_FALSE(key);
  CHECK(key.error().kind == base::ErrorKind::kInput);
  return key.error().message + (key.error().hint.empty() ? "" : " | " + key.error().hint);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

Signature signed_by(const PrivateKey& key, base::ByteView message) {
  auto bytes = key.sign(message);
  REQUIRE(bytes);
  return {key.public_key(), *bytes};
}

TEST_CASE("keys and signatures are those of RFC 8032") {
  for (const Vector& vector : kVectors) {
    const PrivateKey key = private_key(private_pem(vector.seed));
    CHECK(key.public_key().id() == vector.key);
    const base::Bytes message = from_hex(vector.message);
    const Signature signature = signed_by(key, message);
    CHECK(base::to_hex(signature.bytes) == vector.signature);
    CHECK(bundle::is_valid(signature, message));
    CHECK(bundle::is_valid({{array_of<32>(vector.key)}, array_of<64>(vector.signature)}, message));
  }
}

TEST_CASE("a signature of another message or key or with any byte changed is not valid") {
  const PrivateKey key = private_key(kPlain);
  const base::Bytes message = bundle::bundle_message(base::sha256("header"));
  const Signature good = signed_by(key, message);
  REQUIRE(bundle::is_valid(good, message));
  for (size_t i = 0; i < good.bytes.size(); ++i) {
    Signature bad = good;
    bad.bytes[i] ^= 1;
    CHECK_FALSE(bundle::is_valid(bad, message));
  }
  for (size_t i = 0; i < good.key.bytes.size(); ++i) {
    Signature bad = good;
    bad.key.bytes[i] ^= 1;
    CHECK_FALSE(bundle::is_valid(bad, message));
  }
  for (size_t i = 0; i < message.size(); ++i) {
    base::Bytes other = message;
    other[i] ^= 1;
    CHECK_FALSE(bundle::is_valid(good, other));
  }
  CHECK_FALSE(bundle::is_valid(good, bundle::archive_message(base::sha256("header"))));
}

TEST_CASE("a key that is no point of the curve makes nothing valid") {
  Signature signature;
  signature.key.bytes.fill(0xff);
  CHECK_FALSE(bundle::is_valid(signature, base::as_bytes("message")));
  signature.key.bytes.fill(2);
  CHECK_FALSE(bundle::is_valid(signature, base::as_bytes("message")));
}

TEST_CASE("the messages are their domain and the digest") {
  const base::Digest digest = base::sha256("x");
  const base::Bytes message = bundle::bundle_message(digest);
  REQUIRE(message.size() == 49);
  CHECK(base::as_text(base::ByteView(message).first(17)) == std::string_view("kcb-signature-v1\0", 17));
  CHECK(base::digest_from(base::ByteView(message).last(32)) == digest);
  CHECK(base::as_text(base::ByteView(bundle::archive_message(digest)).first(17)) ==
        std::string_view("kca-signature-v1\0", 17));
}

TEST_CASE("the files of openssl are read") {
  const PrivateKey key = private_key(kPlain);
  CHECK(key.public_key().id() == kId);
  CHECK(private_key(kEncrypted, "wonderland").public_key().id() == kId);
  // A passphrase that is not needed does no harm: a variable may be set for another key.
  CHECK(private_key(kPlain, "wonderland").public_key().id() == kId);
  // `openssl pkey -text` says more around it.
  CHECK(private_key("ED25519 Private-Key:\npriv:\n    57:8e\n" + std::string(kPlain)).public_key().id() ==
        kId);
  const KeyFile file;
  const auto read = bundle::read_public_key(file.with(kPublic));
  REQUIRE(read);
  CHECK(read->id() == kId);
}

TEST_CASE("keys are written as openssl writes them") {
  const PrivateKey key = private_key(kPlain);
  const auto plain = key.to_pem({});
  REQUIRE(plain);
  CHECK(base::as_text(*plain) == kPlain);
  CHECK(bundle::to_pem(key.public_key()) == kPublic);
  const auto encrypted = key.to_pem("tea");
  REQUIRE(encrypted);
  const std::string text(base::as_text(*encrypted));
  CHECK(text.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"));
  CHECK(private_key(text, "tea").public_key().id() == kId);
  CHECK(private_error(text, "coffee") == "cannot be decrypted: the passphrase is wrong");
  // Another salt each time.
  const auto again = key.to_pem("tea");
  REQUIRE(again);
  CHECK(*again != *encrypted);
}

TEST_CASE("a passphrase that is missing or wrong is told apart from a damaged file") {
  CHECK(private_error(kEncrypted) == "is encrypted, and no passphrase is given");
  CHECK(private_error(kEncrypted, "wonderlanD") == "cannot be decrypted: the passphrase is wrong");
  CHECK(private_error(kEncrypted, "") == "cannot be decrypted: the passphrase is wrong");
  std::string damaged = kEncrypted;
  damaged.replace(damaged.find("MIGb"), 4, "MIGc");
  CHECK(contains(private_error(damaged, "wonderland"), "is damaged"));
  damaged = kPlain;
  damaged.replace(damaged.find("MC4C"), 4, "MC8C");
  CHECK(contains(private_error(damaged), "is damaged"));
  damaged = kPlain;
  damaged.replace(damaged.find("VwBC"), 4, "VwBD");
  CHECK(contains(private_error(damaged), "is damaged"));
}

TEST_CASE("every kind of file that is no Ed25519 key is refused with what it is") {
  CHECK(contains(private_error(kX25519Private), "of the kind X25519"));
  CHECK(contains(private_error(kEd448Private), "of the kind ED448"));
  CHECK(contains(private_error(kEcPrivate), "a PEM block \"EC PRIVATE KEY\""));
  CHECK(private_error(kPublic) == "is a public key; the private one signs");
  CHECK(private_error("") == "is no PEM file with a private key");
  CHECK(private_error("hello\n") == "is no PEM file with a private key");
  CHECK(contains(public_error(kX25519Public), "of the kind X25519"));
  CHECK(contains(public_error(kEcPublic), "of the kind EC"));
  CHECK(contains(public_error(kPlain),
                 "is a private key; a public one is wanted | `openssl pkey -in FILE -pubout`"));
  CHECK(contains(public_error(kEncrypted), "is a private key"));
  CHECK(contains(public_error(kEcPrivate), "a PEM block \"EC PRIVATE KEY\""));
  CHECK(contains(public_error("-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----\n"), "is damaged"));
  // A label is of the file's own making, so it is not repeated.
  CHECK(contains(public_error("-----BEGIN \x1b[31mKEY-----\nMCow\n-----END \x1b[31mKEY-----\n"),
                 "of another kind"));
  // What stands behind the structure is no part of a key.
  base::Bytes der = from_hex("302a300506032b6570032100");
  der.insert(der.end(), 32, 7);
  REQUIRE(bundle::read_public_key(KeyFile().with(pem("PUBLIC KEY", der))));
  der.push_back(0);
  CHECK(contains(public_error(pem("PUBLIC KEY", der)), "is damaged"));
  const Folder folder;
  CHECK_FALSE(bundle::read_public_key(folder / "missing"));
  CHECK_FALSE(bundle::read_public_key(folder / ""));
  write_file(folder / "large", base::Bytes(70'000, 'x'));
  CHECK_FALSE(bundle::read_public_key(folder / "large"));
}

TEST_CASE("a folder of keys is all its pem and pub files by name") {
  const Folder folder;
  const std::string other = bundle::to_pem(PublicKey{array_of<32>(kVectors[0].key)});
  write_file(folder / "b.pub", base::as_bytes(std::string_view(kPublic)));
  write_file(folder / "a.pem", base::as_bytes(other));
  write_file(folder / "README", base::as_bytes("no key"));
  write_file(folder / "secret.key", base::as_bytes(std::string_view(kPlain)));
  const auto keys = bundle::read_key_folder(folder / "");
  REQUIRE(keys);
  REQUIRE(keys->size() == 2);
  CHECK((*keys)[0].id() == kVectors[0].key);
  CHECK((*keys)[1].id() == kId);
  // One that cannot be read is no key that may be left out.
  write_file(folder / "c.pub", base::as_bytes(std::string_view(kX25519Public)));
  CHECK_FALSE(bundle::read_key_folder(folder / ""));
  const Folder empty;
  const auto none = bundle::read_key_folder(empty / "");
  REQUIRE_FALSE(none);
  CHECK(contains(none.error().message, "no public keys"));
}

TEST_CASE("new keys differ and sign") {
  const auto one = PrivateKey::generate();
  const auto two = PrivateKey::generate();
  REQUIRE(one);
  REQUIRE(two);
  CHECK(one->public_key() != two->public_key());
  const base::ByteView message = base::as_bytes("message");
  CHECK(bundle::is_valid(signed_by(*one, message), message));
  CHECK_FALSE(bundle::is_valid({two->public_key(), signed_by(*one, message).bytes}, message));
}

TEST_CASE("a key id is the name of one key and nothing else") {
  const auto key = bundle::parse_key_id(kId);
  REQUIRE(key);
  CHECK(key->id() == kId);
  CHECK_FALSE(bundle::parse_key_id(""));
  CHECK_FALSE(bundle::parse_key_id(std::string(63, 'a')));
  CHECK_FALSE(bundle::parse_key_id(std::string(65, 'a')));
  CHECK_FALSE(bundle::parse_key_id(std::string(64, 'A')));
}

TEST_CASE("blocks are read as they were written and any flipped byte is found") {
  const PrivateKey key = private_key(kPlain);
  const base::ByteView message = base::as_bytes("message");
  const Signature good = signed_by(key, message);
  const base::Bytes block = bundle::encode_block(good);
  CHECK(block.size() % 64 == 0);
  const auto read = bundle::read_blocks(block);
  REQUIRE(read);
  REQUIRE(read->size() == 1);
  CHECK((*read)[0].key == good.key);
  CHECK((*read)[0].bytes == good.bytes);
  size_t found = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    for (const uint8_t bit : {uint8_t{1}, uint8_t{0x80}}) {
      base::Bytes bad = block;
      bad[i] ^= bit;
      const auto result = bundle::read_blocks(bad);
      CHECK_FALSE(result);
      if (!result) {
        CHECK(result.error().kind == base::ErrorKind::kFailed);
        ++found;
      }
    }
  }
  CHECK(found == 2 * block.size());
  for (size_t size = 1; size < block.size(); ++size) {
    CHECK_FALSE(bundle::read_blocks(base::ByteView(block).first(size)));
  }
  CHECK(bundle::read_blocks({})->empty());
}

TEST_CASE("a signature in the file of a bundle covers it and can be added once") {
  const Folder folder;
  const std::string path = folder / "b.kcb";
  REQUIRE(small_input().write(path));
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  const base::Bytes before = read_all(path);
  const PrivateKey key = private_key(kPlain);
  const auto open = [&] {
    auto reader = bundle::Reader::open(path);
    REQUIRE(reader);
    return std::move(*reader);
  };
  bundle::Reader reader = open();
  const base::Bytes message = bundle::bundle_message(reader.header_digest());
  const Signature signature = signed_by(key, message);
  const auto added = reader.add_signature(signature);
  REQUIRE(added);
  CHECK(*added);
  const base::Bytes after = read_all(path);
  REQUIRE(after.size() == before.size() + 192);
  CHECK(std::equal(before.begin(), before.end(), after.begin()));
  struct stat status;
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
  CHECK(bundle::testing::faults_of(path).empty());
  auto again = open().add_signature(signature);
  REQUIRE(again);
  CHECK_FALSE(*again);
  CHECK(read_all(path) == after);
  const auto other = PrivateKey::generate();
  REQUIRE(other);
  REQUIRE(open().add_signature(signed_by(*other, message)));
  const auto signatures = open().signatures();
  REQUIRE(signatures);
  REQUIRE(signatures->size() == 2);
  CHECK((*signatures)[0].key == key.public_key());
  CHECK((*signatures)[1].key == other->public_key());
  CHECK(bundle::is_valid((*signatures)[1], message));
  // A signature of another bundle is not added.
  const base::Bytes kept = read_all(path);
  const auto wrong = open().add_signature(signed_by(key, bundle::bundle_message(base::sha256("other"))));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().kind == base::ErrorKind::kFailed);
  CHECK(read_all(path) == kept);
}

TEST_CASE("a bundle that was just written is signed in place") {
  const Folder folder;
  const std::string path = folder / "b.kcb";
  REQUIRE(small_input().write(path));
  const PrivateKey key = private_key(kPlain);
  const base::FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  const auto signature = bundle::sign_bundle(fd.get(), key, path);
  REQUIRE(signature);
  auto reader = bundle::Reader::open(path);
  REQUIRE(reader);
  CHECK(reader->verify_all().empty());
  const auto signatures = reader->signatures();
  REQUIRE(signatures);
  REQUIRE(signatures->size() == 1);
  CHECK(bundle::is_valid((*signatures)[0], bundle::bundle_message(reader->header_digest())));
}

constexpr char kKeysWork[] = "hidden: what a loader does with keys works";

TEST_CASE(kKeysWork* doctest::skip()) {
  const Folder folder;
  const std::string path = folder / "key.pub";
  write_file(path, base::as_bytes(std::string_view(kPublic)));
  const auto key = bundle::read_public_key(path);
  REQUIRE(key);
  CHECK(key->id() == kId);
  const Vector& vector = kVectors[2];
  const base::Bytes message = from_hex(vector.message);
  const Signature signature{{array_of<32>(vector.key)}, array_of<64>(vector.signature)};
  CHECK(bundle::signatures_available());
  CHECK(bundle::is_valid(signature, message));
  CHECK_FALSE(bundle::is_valid(signature, from_hex("af83")));
  for (const char* other :
       {kX25519Public, kEcPublic, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}) {
    write_file(path, base::as_bytes(std::string_view(other)));
    CHECK_FALSE(bundle::read_public_key(path));
  }
}

constexpr char kConfigured[] = "hidden: what a loader does with keys lets the default context be configured";

TEST_CASE(kConfigured* doctest::skip()) {
  const Vector& vector = kVectors[2];
  const Signature signature{{array_of<32>(vector.key)}, array_of<64>(vector.signature)};
  CHECK(bundle::is_valid(signature, from_hex(vector.message)));
  EVP_MD* md4 = EVP_MD_fetch(nullptr, "MD4", nullptr);
  CHECK(md4 != nullptr);
  EVP_MD_free(md4);
}

TEST_CASE("keys and signatures work whatever is configured for OpenSSL and leave it alone") {
  const Folder folder;
  const auto with = [&](const char* hidden, std::string_view configuration) {
    write_file(folder / "openssl.cnf", base::as_bytes(configuration));
    kc::test::run_apart(hidden, "OPENSSL_CONF=" + (folder / "openssl.cnf"));
  };
  with(kKeysWork, "");
  with(kKeysWork, "]=[\n= broken");
  with(kKeysWork,
       "openssl_conf = begin\n[begin]\nproviders = all\nalg_section = properties\n[all]\nnull = one\n"
       "[one]\nactivate = 1\n[properties]\ndefault_properties = provider=none\n");
  kc::test::run_apart(kKeysWork, "OPENSSL_CONF=/nonexistent");
  with(kConfigured,
       "openssl_conf = begin\n[begin]\nproviders = all\n[all]\ndefault = one\nlegacy = one\n[one]\nactivate "
       "= 1\n");
}

}  // namespace
