// The content key: what a code generator gets and nothing else (docs/architecture.md: keys). kc computes it
// for backends without a front half, the engine for the others, which alone sees the linked module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/digest.h"

namespace kc::backend {

/// Raised together with the list of expected keys in tests/golden when keys are meant to change.
inline constexpr std::string_view kContentDomain{"kc-content-v1\0", 14};

/// A field of all keys: a cubin of a Tile IR kernel carries launch code for the host's processor.
#if defined(__x86_64__)
inline constexpr std::string_view kHostArchitecture = "x86_64";
#elif defined(__aarch64__)
inline constexpr std::string_view kHostArchitecture = "aarch64";
#else
#error "kc runs on x86-64 and aarch64 hosts"
#endif

/// Fields of both keys, the content key and the request key; what means the same has one number. A number is
/// never used again for anything else.
enum class KeyTag : uint8_t {
  kBackend = 1,
  kAdapterRevision = 2,
  kCompiler = 3,
  kHost = 4,
  kTarget = 5,
  kEntry = 6,
  kOptionName = 7,
  kOptionValue = 8,
  kSource = 9,
  kLibrary = 10,
  kDependName = 11,
  kDepend = 12,
  kModule = 13,  // of the content key alone
  kSourceName = 14,
  kLibraryName = 15,
  kConfigName = 16,
  kConfigValue = 17,
};

struct ContentKeyInputs {
  std::string backend;
  uint32_t adapter_revision = 0;
  base::Digest compiler;  // its identity
  std::string target;     // as asked
  std::string entry;
  Pairs options;  // those that reach the code generator
  // Without a front half: digests of the files, in order.
  std::vector<base::Digest> sources;
  std::vector<std::pair<std::string, base::Digest>> depends;  // by identifier: sources open them by name
  // With one: the digest of what it made, in place of all files and of the configuration.
  std::optional<base::Digest> module;
};

base::Digest content_key(const ContentKeyInputs& inputs);

/// The same fields for people: name and value, digests and numbers in hexadecimal. An entry keeps them.
std::vector<std::pair<std::string, std::string>> content_key_fields(const ContentKeyInputs& inputs);

}  // namespace kc::backend
