#include "build/trust.h"

#include <algorithm>

#include "util/text.h"

namespace kc::build {
namespace {

bool is_trusted(const Trust& trust, const bundle::PublicKey& key) {
  return std::ranges::find(trust.keys, key) != trust.keys.end();
}

}  // namespace

base::Result<std::string> trusted_signer(const Trust& trust, std::span<const bundle::Signature> signatures,
                                         base::ByteView message, const std::string& what) {
  std::vector<std::string> strangers;  // who signed it, and is not trusted
  std::vector<std::string> broken;     // in whose name there is something that they did not sign
  for (const bundle::Signature& signature : signatures) {
    if (!bundle::is_valid(signature, message)) {
      broken.push_back(signature.key.id());
    } else if (is_trusted(trust, signature.key)) {
      return signature.key.id();
    } else {
      strangers.push_back(signature.key.id());
    }
  }
  if (trust.unsigned_too) return std::string();
  std::string why = "it is not signed";
  if (!strangers.empty()) {
    why = "it is signed by " + util::listed(strangers) + ", and trusted " +
          (trust.keys.empty() ? "is nobody" : "are others");
  } else if (!broken.empty()) {
    why = "its signature by " + util::listed(broken) + " is of something else";
  }
  return base::fail_at(
      base::ErrorKind::kFailed, {what}, "is refused: " + why,
      "trust a key with --key or in the user's settings (trusted_keys); --trust-unsigned takes "
      "it from whomever it is");
}

bool may_be_signed(const Trust& trust, std::span<const std::string> signers) {
  return std::ranges::all_of(signers, [&](const std::string& signer) {
    const auto key = bundle::parse_key_id(signer);
    return key && is_trusted(trust, *key);
  });
}

}  // namespace kc::build
