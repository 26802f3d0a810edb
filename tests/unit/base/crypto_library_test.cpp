// That digests need nothing of what a machine or a host program has configured for OpenSSL, and leave it
// alone.
#include <doctest/doctest.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include <string>

#include "base/crypto_library.h"
#include "base/digest.h"
#include "support/run_apart.h"
#include "support/temp_folder.h"

using namespace kc;

namespace {

constexpr const char* kActivatesLegacy =
    "openssl_conf = begin\n[begin]\nproviders = all\n[all]\ndefault = one\nlegacy = two\n"
    "[one]\nactivate = 1\n[two]\nactivate = 1\n";
// A provider without algorithms and no other: the default context has no digest then.
constexpr const char* kActivatesNothing =
    "openssl_conf = begin\n[begin]\nproviders = all\n[all]\nnull = one\n[one]\nactivate = 1\n";

// Cases that run in processes of their own: OpenSSL is configured once in each.
constexpr char kConfiguredAfterwards[] =
    "hidden: digests work and the default context is configured afterwards";
constexpr char kDefaultHasNone[] = "hidden: digests work where the default context has none";
constexpr char kDigestsAlone[] = "hidden: digests work and nothing is asked of OpenSSL before";

bool digests_are_right() {
  return base::sha256("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
}

bool default_context_has_md4() {
  EVP_MD* md4 = EVP_MD_fetch(nullptr, "MD4", nullptr);
  EVP_MD_free(md4);
  return md4 != nullptr;
}

}  // namespace

TEST_CASE(kConfiguredAfterwards* doctest::skip()) {
  CHECK(base::digests_available());
  CHECK(digests_are_right());
  // The first use of the default context loads the configuration, as it would without us.
  CHECK(default_context_has_md4());
  CHECK(OSSL_PROVIDER_available(base::crypto_library(), "legacy") == 0);
  CHECK(digests_are_right());
}

TEST_CASE(kDefaultHasNone* doctest::skip()) {
  CHECK(digests_are_right());
  // Nor did ours bring it one.
  EVP_MD* sha256 = EVP_MD_fetch(nullptr, "SHA2-256", nullptr);
  CHECK(sha256 == nullptr);
  EVP_MD_free(sha256);
  CHECK(base::digests_available());
  CHECK(digests_are_right());
}

TEST_CASE(kDigestsAlone* doctest::skip()) {
  CHECK(base::digests_available());
  CHECK(digests_are_right());
}

TEST_CASE("digests need no configuration of OpenSSL and survive any") {
  const test::TempFolder folder;
  test::run_apart(kDigestsAlone, "OPENSSL_CONF=" + folder.write("broken", "]=[\n= broken"));
  test::run_apart(kDigestsAlone, "OPENSSL_CONF=" + folder.write("random", "\1\2\3\377"));
  test::run_apart(kDigestsAlone, "OPENSSL_CONF=" + folder / "missing");
  test::run_apart(kDefaultHasNone, "OPENSSL_CONF=" + folder.write("nothing", kActivatesNothing));
}

TEST_CASE("a host program's configuration of OpenSSL is loaded after the first digest") {
  const test::TempFolder folder;
  test::run_apart(kConfiguredAfterwards, "OPENSSL_CONF=" + folder.write("legacy", kActivatesLegacy));
}

TEST_CASE("there is one context of libcrypto and it is not the default one") {
  CHECK(base::crypto_library() != nullptr);
  CHECK(base::crypto_library() == base::crypto_library());
  CHECK(OSSL_LIB_CTX_get0_global_default() != base::crypto_library());
}
