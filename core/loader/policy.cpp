// The policy as C gives it, checked and with its keys read.
#include <algorithm>
#include <cstring>

#include "loader/bundles.h"
#include "loader/text.h"

namespace kc::loader {
namespace {

constexpr size_t kKeyBytes = 32;
// Of key files and of raw keys: far above any policy, and a number that is no count is told as one.
constexpr size_t kMaxKeys = 4096;
// Of a kc_policy of a later version: a struct_size beyond is no size of one.
constexpr size_t kMaxStruct = 4096;

std::unexpected<Failure> bad(std::string what) {
  return fail(KC_ERROR_ARGUMENT, "kc_policy: " + std::move(what));
}

// The fields that `given` has whole, zero for the rest.
Result<kc_policy> known_part(const kc_policy& given) {
  const size_t size = given.struct_size;
  if (size < sizeof(size_t) || size > kMaxStruct) {
    return bad("struct_size is " + std::to_string(size) + "; set it to sizeof(kc_policy), or begin with " +
               "KC_POLICY_INIT");
  }
  kc_policy out{};
  std::memcpy(&out, &given, std::min(size, sizeof out));
  const auto keep = [&](auto& field) {
    const auto end = reinterpret_cast<const char*>(&field + 1) - reinterpret_cast<const char*>(&out);
    if (static_cast<size_t>(end) > size) field = {};
  };
  keep(out.key_files);
  keep(out.key_file_count);
  keep(out.keys);
  keep(out.key_count);
  keep(out.required_signatures);
  keep(out.name);
  keep(out.min_release);
  keep(out.allow_partial);
  keep(out.max_file_size);
  keep(out.max_code_size);
  // What a later version demands here must not be left undone in silence.
  const auto* bytes = reinterpret_cast<const unsigned char*>(&given);
  for (size_t i = sizeof out; i < size; ++i) {
    if (bytes[i] != 0) return bad("it sets a field that this version of the library does not know");
  }
  return out;
}

Result<void> add_keys(Policy& policy, const kc_policy& given) {
  const auto add = [&](const bundle::PublicKey& key) {
    if (std::ranges::find(policy.keys, key) == policy.keys.end()) policy.keys.push_back(key);
  };
  for (size_t i = 0; i < given.key_file_count; ++i) {
    if (given.key_files[i] == nullptr) return bad("key_files[" + std::to_string(i) + "] is NULL");
    const base::Result<bundle::PublicKey> key = bundle::read_public_key(given.key_files[i]);
    if (!key) {
      const bool is_unreadable = key.error().sys_errno != 0;
      return fail(is_unreadable ? KC_ERROR_IO : KC_ERROR_UNTRUSTED, key.error().text());
    }
    add(*key);
  }
  for (size_t i = 0; i < given.key_count; ++i) {
    bundle::PublicKey key;
    std::memcpy(key.bytes.data(), given.keys + i * kKeyBytes, kKeyBytes);
    add(key);
  }
  return {};
}

}  // namespace

Result<Policy> policy_of(const kc_policy* policy) {
  Policy out;
  if (policy == nullptr) return out;
  KC_ASSIGN(const kc_policy given, known_part(*policy));
  if (given.key_file_count > kMaxKeys || given.key_count > kMaxKeys) {
    return bad("at most " + std::to_string(kMaxKeys) + " keys of each kind can be given");
  }
  if (given.key_file_count > 0 && given.key_files == nullptr) return bad("key_files is NULL");
  if (given.key_count > 0 && given.keys == nullptr) return bad("keys is NULL");
  KC_TRY(add_keys(out, given));
  if (given.required_signatures > out.keys.size()) {
    return bad(out.keys.empty() ? "required_signatures needs keys"
                                : std::to_string(given.required_signatures) +
                                      " signatures are required, and there are only " +
                                      std::to_string(out.keys.size()) + " different keys");
  }
  out.required_signatures = given.required_signatures;
  if (!out.keys.empty() && out.required_signatures == 0) out.required_signatures = 1;
  if (given.name != nullptr) out.name = given.name;
  out.min_release = given.min_release;
  out.allow_partial = given.allow_partial != 0;
  out.max_file_size = given.max_file_size;
  out.max_code_size = given.max_code_size;
  return out;
}

}  // namespace kc::loader
