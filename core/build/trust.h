// Whose files may bring code into the store (docs/security.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "bundle/signature.h"

namespace kc::build {

struct Trust {
  std::vector<bundle::PublicKey> keys;  // the user setting trusted_keys, --key, --key-dir
  bool unsigned_too = false;            // --trust-unsigned
};

/// The key id of the first trusted signer of `message`; empty with unsigned_too when there is none. `what` is
/// the file that carries the signatures. ErrorKind::kFailed says who signed it, if anybody, and what to do.
base::Result<std::string> trusted_signer(const Trust& trust, std::span<const bundle::Signature> signatures,
                                         base::ByteView message, const std::string& what);

/// Whether code that these vouch for (store::signers_of()) may go into a bundle that is signed: it was
/// compiled here, or each of them is one of the keys.
bool may_be_signed(const Trust& trust, std::span<const std::string> signers);

}  // namespace kc::build
