// The one libcrypto context that all of kc works in. Inner to base/digest and bundle/signature, which alone
// include OpenSSL beside it.
#pragma once

#include <openssl/core.h>
#include <openssl/err.h>
#include <openssl/types.h>

#include <string_view>

namespace kc::base {

/// A context of kc's own, made at the first call and never freed: libcrypto's own clean-up at exit may come
/// first. It reads no configuration file, and the default context is neither used nor changed by it: nothing
/// that the machine or a host program has set up there decides which algorithms kc has, and the host's
/// configuration is still loaded when the host first needs it. Thread-safe. Throws std::bad_alloc when there
/// is no memory for it; the next call tries again.
///
/// Many EVP_* functions go by the default context besides, whatever context they are given: they ask the
/// engines, or the table of names, for which they load its configuration, and let an engine of the host's
/// stand in for the algorithm that was meant. So algorithms are called directly, below. What libcrypto's own
/// Ed25519 calls (SHA-512 by EVP in 3.0) is the one exception: the first signature that is checked loads the
/// host's automatic configuration where the host has not done so yet, as any use of libcrypto does.
OSSL_LIB_CTX* crypto_library();

/// libcrypto keeps errors a thread until somebody takes them. Ours are told by result or exception, and do
/// not stay in the queue of the host's thread.
class NoErrorsLeft {
 public:
  NoErrorsLeft() { ERR_set_mark(); }
  ~NoErrorsLeft() { ERR_pop_to_mark(); }
  NoErrorsLeft(const NoErrorsLeft&) = delete;
  NoErrorsLeft& operator=(const NoErrorsLeft&) = delete;
};

/// An algorithm as libcrypto's default provider implements it, to be called directly (provider-digest(7),
/// provider-keymgmt(7), provider-signature(7)).
struct CryptoAlgorithm {
  const OSSL_DISPATCH* functions = nullptr;
  void* provider = nullptr;  // what the functions that make something are given

  /// By number and the getter of <openssl/core_dispatch.h> of the same name; nullptr when it is not there.
  template <typename Getter>
  auto function(int number, const Getter& get) const -> decltype(get(functions)) {
    for (const OSSL_DISPATCH* at = functions; at != nullptr && at->function_id != 0; ++at) {
      if (at->function_id == number) return get(at);
    }
    return nullptr;
  }
};
/// Without functions when there is none of that name. `operation`: OSSL_OP_DIGEST and its like. What it leads
/// to is never freed. Thread-safe; throws as crypto_library().
CryptoAlgorithm find_algorithm(int operation, std::string_view name);

}  // namespace kc::base
