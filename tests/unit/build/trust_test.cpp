#include "build/trust.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "build/state.h"
#include "store/store.h"

namespace {

using namespace kc;
using build::Trust;
using bundle::PrivateKey;
using bundle::Signature;

struct Keys {
  PrivateKey one = make(), two = make();
  base::Bytes message = bundle::bundle_message(base::sha256("header"));

  static PrivateKey make() {
    auto key = PrivateKey::generate();
    REQUIRE(key);
    return std::move(*key);
  }
  Signature by(const PrivateKey& key, base::ByteView what) const {
    auto bytes = key.sign(what);
    REQUIRE(bytes);
    return {key.public_key(), *bytes};
  }
  base::Result<std::string> ask(const Trust& trust, const std::vector<Signature>& signatures) const {
    return build::trusted_signer(trust, signatures, message, "b.kcb");
  }
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a file is trusted when one of its valid signatures is by a trusted key") {
  const Keys keys;
  const Trust trust{{keys.two.public_key()}, false};
  const auto signer = keys.ask(trust, {keys.by(keys.one, keys.message), keys.by(keys.two, keys.message)});
  REQUIRE(signer);
  CHECK(*signer == keys.two.public_key().id());
}

TEST_CASE("a file that nobody or somebody else or nobody really has signed is refused with who did") {
  const Keys keys;
  const Trust trust{{keys.two.public_key()}, false};
  const auto nobody = keys.ask(trust, {});
  REQUIRE_FALSE(nobody);
  CHECK(nobody.error().kind == base::ErrorKind::kFailed);
  CHECK(nobody.error().place.file == "b.kcb");
  CHECK(contains(nobody.error().message, "not signed"));
  CHECK(contains(nobody.error().hint, "trusted_keys"));
  const auto stranger = keys.ask(trust, {keys.by(keys.one, keys.message)});
  REQUIRE_FALSE(stranger);
  CHECK(contains(stranger.error().message, keys.one.public_key().id()));
  // In the name of a trusted key, but of something else.
  const auto forged = keys.ask(trust, {keys.by(keys.two, base::as_bytes("other"))});
  REQUIRE_FALSE(forged);
  CHECK(contains(forged.error().message, "something else"));
  CHECK_FALSE(keys.ask({}, {keys.by(keys.one, keys.message)}));
}

TEST_CASE("unsigned files are taken on demand and are nobody's then") {
  const Keys keys;
  const Trust anybody{{keys.two.public_key()}, true};
  for (const auto& signatures : {std::vector<Signature>{},
                                 {keys.by(keys.one, keys.message)},
                                 {keys.by(keys.two, base::as_bytes("other"))}}) {
    const auto signer = keys.ask(anybody, signatures);
    REQUIRE(signer);
    CHECK(signer->empty());
  }
  // Who is trusted still counts.
  const auto signer = keys.ask(anybody, {keys.by(keys.two, keys.message)});
  REQUIRE(signer);
  CHECK(*signer == keys.two.public_key().id());
}

TEST_CASE("code may be signed when it was compiled here or all who vouch for it are trusted") {
  const Keys keys;
  const std::string one = keys.one.public_key().id(), two = keys.two.public_key().id();
  const Trust trust{{keys.two.public_key()}, false};
  const auto may = [&](const Trust& by, const std::vector<std::string>& signers) {
    return build::may_be_signed(by, signers);
  };
  CHECK(may(trust, {}));
  CHECK(may(trust, {two}));
  CHECK(may(trust, {two, two}));
  CHECK_FALSE(may(trust, {""}));
  CHECK_FALSE(may(trust, {one}));
  CHECK_FALSE(may(trust, {two, ""}));
  CHECK_FALSE(may(trust, {"", two}));
  CHECK_FALSE(may(trust, {two, one}));
  CHECK_FALSE(may(trust, {"not a key"}));
  // Taking unsigned files into the store is no leave to sign them.
  CHECK_FALSE(may({{keys.two.public_key()}, true}, {""}));
  CHECK_FALSE(may({}, {two}));
}

TEST_CASE("a build that signs has a state of its own for each key and each set of trusted keys") {
  const Keys keys;
  build::Options options;
  const auto id = [&] { return build::state_id(options, "/m/kernels.yaml", ""); };
  const base::Digest plain = id();
  options.trust.keys = {keys.one.public_key()};
  CHECK(id() == plain);  // whom one trusts matters to who signs
  options.sign = "/keys/a.key";
  const base::Digest by_a = id();
  CHECK(by_a != plain);
  options.trust.keys.push_back(keys.two.public_key());
  const base::Digest trusting = id();
  CHECK(trusting != by_a);
  options.sign = "/keys/b.key";
  CHECK(id() != trusting);
  options = {};
  options.warm = true;
  CHECK(id() != plain);
  options = {};
  options.defaults.level = 9;
  CHECK(id() != plain);
  options.defaults = {};
  options.defaults.frame_size = 8192;
  CHECK(id() != plain);
}

TEST_CASE("an entry is vouched for by who signed it and who signed the record that led to it") {
  store::Entry entry;
  store::Record record;
  const auto signers = [&](bool with_record) {
    return store::signers_of(entry, with_record ? &record : nullptr);
  };
  CHECK(signers(false).empty());
  CHECK(signers(true).empty());
  record.imported = true;  // compiled here, and somebody says that it is what was asked for
  CHECK(signers(true) == std::vector<std::string>{""});
  CHECK(signers(false).empty());
  entry.origin.imported = true;
  entry.origin.signer = "one";
  CHECK(signers(true) == std::vector<std::string>{"one", ""});
  record.signer = "two";
  CHECK(signers(true) == std::vector<std::string>{"one", "two"});
  record.signer = "one";
  CHECK(signers(true) == std::vector<std::string>{"one"});
  record.imported = false;
  CHECK(signers(true) == std::vector<std::string>{"one"});
}

}  // namespace
