// That a bundle is opened when its policy lets it in, and only then.
#include <doctest/doctest.h>

#include <cstring>

#include "bundles_support.h"

using namespace kc;
using namespace kc::loader::testing;

namespace {

struct Bundle {
  Folder folder;
  std::string path = folder / "b.kcb";

  explicit Bundle(bundle::Info info = {"demo", 12, false, false}) {
    Input input = bundle::testing::small_input();
    input.info = std::move(info);
    REQUIRE(input.write(path));
  }
};

std::string open_text(const std::string& path, const kc_policy& policy) {
  const auto answer = open_path(path, &policy);
  return answer.status == KC_OK ? "" : std::string(kc_status_name(answer.status)) + ": " + answer.message;
}

// A policy that demands signatures by some of `keys`.
struct Keys {
  std::vector<uint8_t> bytes;
  kc_policy policy = KC_POLICY_INIT;

  explicit Keys(const std::vector<const bundle::PrivateKey*>& keys, size_t required = 0) {
    for (const bundle::PrivateKey* key : keys) {
      const auto raw = key->public_key().bytes;
      bytes.insert(bytes.end(), raw.begin(), raw.end());
    }
    policy.keys = bytes.data();
    policy.key_count = keys.size();
    policy.required_signatures = required;
  }
};

}  // namespace

TEST_CASE("without a policy an unsigned bundle of any name and release opens") {
  const Bundle bundle;
  const auto opened = open_path(bundle.path);
  REQUIRE(opened.status == KC_OK);
  CHECK(kc_file_count(opened.handle.get()) == 1);
  const kc_file_info* info = kc_file_get_info(opened.handle.get(), 0);
  CHECK(info->path == bundle.path);
  CHECK(std::string(info->name) == "demo");
  CHECK(info->release == 12);
  CHECK(info->partial == 0);
  CHECK(info->subset == 0);
  CHECK(info->entry_count == 12);
  CHECK(info->signer_count == 0);
  CHECK(info->signers == nullptr);
  CHECK(kc_file_get_info(opened.handle.get(), 1) == nullptr);
  const kc_policy empty = KC_POLICY_INIT;
  CHECK(open_text(bundle.path, empty) == "");
}

TEST_CASE("another name and a lower release are refused") {
  const Bundle bundle;
  kc_policy policy = KC_POLICY_INIT;
  policy.name = "demo";
  policy.min_release = 12;
  CHECK(open_text(bundle.path, policy) == "");
  policy.min_release = 13;
  CHECK(open_text(bundle.path, policy) ==
        "KC_ERROR_POLICY: " + bundle.path +
            ": refused by the policy: its release is 12, at least 13 is demanded");
  policy.min_release = 0;
  policy.name = "Demo";
  CHECK(contains(open_text(bundle.path, policy), "it is the bundle \"demo\", not \"Demo\""));
  policy.name = "";
  CHECK(contains(open_text(bundle.path, policy), "KC_ERROR_POLICY"));
}

TEST_CASE("a bundle that lacks units is refused unless the policy takes it") {
  for (const bool partial : {true, false}) {
    const Bundle bundle({"demo", 1, partial, !partial});
    const auto refused = open_path(bundle.path);
    CHECK(refused.status == KC_ERROR_POLICY);
    CHECK(contains(refused.message, partial ? "partial" : "subset"));
    kc_policy policy = KC_POLICY_INIT;
    policy.allow_partial = 1;
    const auto opened = open_path(bundle.path, &policy);
    REQUIRE(opened.status == KC_OK);
    CHECK(kc_file_get_info(opened.handle.get(), 0)->partial == (partial ? 1 : 0));
    CHECK(kc_file_get_info(opened.handle.get(), 0)->subset == (partial ? 0 : 1));
  }
}

TEST_CASE("only a bundle signed by as many of the keys as demanded opens") {
  const Bundle bundle;
  const auto a = new_key();
  const auto b = new_key();
  const auto c = new_key();
  CHECK(contains(open_text(bundle.path, Keys({&a}).policy), "KC_ERROR_UNTRUSTED"));
  CHECK(contains(open_text(bundle.path, Keys({&a}).policy), "it has no signature"));
  sign(bundle.path, b);
  const std::string refusal = open_text(bundle.path, Keys({&a}).policy);
  CHECK(contains(refusal, "KC_ERROR_UNTRUSTED"));
  CHECK(contains(refusal, a.public_key().id()));
  CHECK(contains(refusal, "it names signatures by \"" + b.public_key().id()));
  sign(bundle.path, a);
  CHECK(open_text(bundle.path, Keys({&a}).policy) == "");
  CHECK(open_text(bundle.path, Keys({&c, &a}).policy) == "");
  CHECK(open_text(bundle.path, Keys({&c, &a, &b}, 2).policy) == "");
  CHECK(contains(open_text(bundle.path, Keys({&c, &a}, 2).policy), "KC_ERROR_UNTRUSTED"));
  CHECK(contains(open_text(bundle.path, Keys({&c, &a}, 2).policy), "1 did"));

  const Keys all({&a, &c, &b});
  const auto opened = open_path(bundle.path, &all.policy);
  REQUIRE(opened.status == KC_OK);
  const kc_file_info* info = kc_file_get_info(opened.handle.get(), 0);
  REQUIRE(info->signer_count == 2);
  CHECK(std::memcmp(info->signers, a.public_key().bytes.data(), 32) == 0);
  CHECK(std::memcmp(info->signers + 32, b.public_key().bytes.data(), 32) == 0);
}

TEST_CASE("one key counts once however often it is given or has signed") {
  const Bundle bundle;
  const auto key = new_key();
  sign(bundle.path, key);
  const std::string twice = open_text(bundle.path, Keys({&key, &key}, 2).policy);
  CHECK(contains(twice, "KC_ERROR_ARGUMENT"));
  CHECK(contains(twice, "only 1 different keys"));
  // The block a second time.
  base::Bytes bytes = read_all(bundle.path);
  const base::Bytes block(bytes.end() - 192, bytes.end());
  bytes.insert(bytes.end(), block.begin(), block.end());
  const auto other = new_key();
  const Keys keys({&key, &other}, 2);
  CHECK(open_memory(bytes, &keys.policy).status == KC_ERROR_UNTRUSTED);
}

TEST_CASE("a signature that names a trusted key and is not its own counts for nothing") {
  const Bundle bundle;
  const auto key = new_key();
  base::Bytes payload(96, 0x11);
  const auto raw = key.public_key().bytes;
  std::copy(raw.begin(), raw.end(), payload.begin());
  base::Bytes bytes = read_all(bundle.path);
  const base::Bytes block = bundle::testing::signature_block(1, payload);
  bytes.insert(bytes.end(), block.begin(), block.end());
  const Keys keys({&key});
  const auto refused = open_memory(bytes, &keys.policy);
  CHECK(refused.status == KC_ERROR_UNTRUSTED);
  CHECK(contains(refused.message, "is not valid for this bundle"));

  // The signature of another release of the same bundle.
  const Bundle other({"demo", 11, false, false});
  sign(other.path, key);
  const base::Bytes signed_other = read_all(other.path);
  bytes = read_all(bundle.path);
  bytes.insert(bytes.end(), signed_other.end() - 192, signed_other.end());
  CHECK(open_memory(bytes, &keys.policy).status == KC_ERROR_UNTRUSTED);
}

TEST_CASE("signature blocks that are damaged refuse where signatures are demanded") {
  const Bundle bundle;
  const auto key = new_key();
  sign(bundle.path, key);
  const Keys keys({&key});
  base::Bytes bytes = read_all(bundle.path);
  bytes.back() = 1;  // padding
  CHECK(open_memory(bytes, &keys.policy).status == KC_ERROR_DAMAGED);
  CHECK(open_memory(bytes).status == KC_OK);
  bytes = read_all(bundle.path);
  bytes[bytes.size() - 130] ^= 1;
  CHECK(open_memory(bytes, &keys.policy).status == KC_ERROR_DAMAGED);
}

TEST_CASE("keys are read from PEM files and what holds none is told") {
  const Bundle bundle;
  const auto key = new_key();
  sign(bundle.path, key);
  const std::string good = bundle.folder / "key.pub";
  const std::string secret = bundle.folder / "key.key";
  const std::string empty = bundle.folder / "empty.pub";
  write_file(good, base::as_bytes(bundle::to_pem(key.public_key())));
  write_file(empty, {});
  const auto pem = key.to_pem({});
  REQUIRE(pem);
  write_file(secret, *pem);
  const auto with = [&](const char* file) {
    kc_policy policy = KC_POLICY_INIT;
    policy.key_files = &file;
    policy.key_file_count = 1;
    return open_text(bundle.path, policy);
  };
  CHECK(with(good.c_str()) == "");
  CHECK(contains(with(empty.c_str()), "KC_ERROR_UNTRUSTED: " + empty));
  CHECK(contains(with(secret.c_str()), "KC_ERROR_UNTRUSTED: " + secret + ": is a private key"));
  CHECK(contains(with((bundle.folder / "missing").c_str()), "KC_ERROR_IO"));
  CHECK(contains(with(nullptr), "KC_ERROR_ARGUMENT: kc_policy: key_files[0] is NULL"));
}

TEST_CASE("a policy that contradicts itself is refused before the file is looked at") {
  const auto refusal = [](auto change) {
    kc_policy policy = KC_POLICY_INIT;
    change(policy);
    const std::string text = open_text("/nonexistent/b.kcb", policy);
    CHECK(contains(text, "KC_ERROR_ARGUMENT: kc_policy: "));
    return text;
  };
  CHECK(contains(refusal([](kc_policy& p) { p.required_signatures = 1; }), "required_signatures needs keys"));
  CHECK(contains(refusal([](kc_policy& p) { p.key_count = 1; }), "keys is NULL"));
  CHECK(contains(refusal([](kc_policy& p) { p.key_file_count = 1; }), "key_files is NULL"));
  CHECK(contains(refusal([](kc_policy& p) { p.key_count = SIZE_MAX; }), "at most 4096"));
  CHECK(contains(refusal([](kc_policy& p) { p.struct_size = 0; }), "struct_size is 0"));
  CHECK(contains(refusal([](kc_policy& p) { p.struct_size = 7; }), "struct_size is 7"));
  CHECK(contains(refusal([](kc_policy& p) { p.struct_size = SIZE_MAX; }), "struct_size"));
}

TEST_CASE("a policy of another version is read as far as it goes") {
  const Bundle bundle;
  kc_policy policy = KC_POLICY_INIT;
  policy.name = "demo";
  policy.min_release = 13;
  CHECK(contains(open_text(bundle.path, policy), "release"));
  // Of an older caller, whose struct ends before or within a field: that is as if it were zero.
  policy.struct_size = offsetof(kc_policy, min_release);
  CHECK(open_text(bundle.path, policy) == "");
  policy.struct_size = offsetof(kc_policy, min_release) + 1;
  CHECK(open_text(bundle.path, policy) == "");
  policy.struct_size = offsetof(kc_policy, name) + 4;
  CHECK(open_text(bundle.path, policy) == "");
  policy.struct_size = sizeof(size_t);
  CHECK(open_text(bundle.path, policy) == "");
  // Of a newer one.
  struct {
    kc_policy known = KC_POLICY_INIT;
    uint64_t unknown = 0;
  } newer;
  newer.known.struct_size = sizeof newer;
  CHECK(open_text(bundle.path, newer.known) == "");
  newer.unknown = 1;
  CHECK(contains(open_text(bundle.path, newer.known), "does not know"));
}

TEST_CASE("a file and a code object that are larger than the policy allows are refused") {
  const Bundle bundle;
  const uint64_t size = read_all(bundle.path).size();
  kc_policy policy = KC_POLICY_INIT;
  policy.max_file_size = size;
  CHECK(open_text(bundle.path, policy) == "");
  policy.max_file_size = size - 1;
  CHECK(contains(open_text(bundle.path, policy), "KC_ERROR_POLICY"));
  policy.max_file_size = 0;
  policy.max_code_size = 600;
  const auto opened = open_path(bundle.path, &policy);
  REQUIRE(opened.status == KC_OK);
  CHECK(read(entry_at(opened.handle, 0).handle.get()).status == KC_OK);
  policy.max_code_size = 599;
  const auto narrow = open_path(bundle.path, &policy);
  REQUIRE(narrow.status == KC_OK);
  const auto refused = read(entry_at(narrow.handle, 0).handle.get());
  CHECK(refused.status == KC_ERROR_POLICY);
  CHECK(contains(refused.message, "has 600 bytes, at most 599"));
}
