#include "base/crypto_library.h"

#include <openssl/crypto.h>
#include <openssl/provider.h>

#include <new>

namespace kc::base {
namespace {

// Whether `names`, joined by colons, have `name` among them.
bool has_name(std::string_view names, std::string_view name) {
  for (;;) {
    const std::string_view one = names.substr(0, names.find(':'));
    if (one == name) return true;
    if (one.size() == names.size()) return false;
    names.remove_prefix(one.size() + 1);
  }
}

}  // namespace

OSSL_LIB_CTX* crypto_library() {
  static OSSL_LIB_CTX* const context = [] {
    const NoErrorsLeft errors;
    OSSL_LIB_CTX* made = OSSL_LIB_CTX_new();
    if (made == nullptr) throw std::bad_alloc();
    return made;
  }();
  return context;
}

CryptoAlgorithm find_algorithm(int operation, std::string_view name) {
  const NoErrorsLeft errors;
  // Loaded again it is the same one, with a count that keeps it.
  OSSL_PROVIDER* provider = OSSL_PROVIDER_load(crypto_library(), "default");
  if (provider == nullptr) return {};
  int may_not_cache = 0;
  const OSSL_ALGORITHM* at = OSSL_PROVIDER_query_operation(provider, operation, &may_not_cache);
  for (; at != nullptr && at->algorithm_names != nullptr; ++at) {
    if (has_name(at->algorithm_names, name)) {
      return {at->implementation, OSSL_PROVIDER_get0_provider_ctx(provider)};
    }
  }
  return {};
}

}  // namespace kc::base
