#include "build/keys.h"

namespace kc::build {
namespace {

enum Tag : uint8_t {
  kBackend = 1,
  kAdapterRevision = 2,
  kCompiler = 3,
  kHost = 4,
  kTarget = 5,
  kEntry = 6,
  kOptionName = 7,
  kOptionValue = 8,
  kSource = 9,
};

// A cubin of a Tile IR kernel carries launch code for the host's processor, so it is part of what was asked.
#if defined(__x86_64__)
constexpr std::string_view kHostArchitecture = "x86_64";
#elif defined(__aarch64__)
constexpr std::string_view kHostArchitecture = "aarch64";
#else
#error "kc runs on x86-64 and aarch64 hosts"
#endif

}  // namespace

base::Digest content_key(const manifest::Unit& unit, const backend::Description& backend,
                         const base::Digest& compiler_identity, const std::vector<base::Digest>& sources) {
  base::KeyHasher hasher(kContentDomain);
  hasher.field(kBackend, backend.name);
  hasher.field(kAdapterRevision, uint64_t{backend.adapter_revision});
  hasher.field(kCompiler, compiler_identity.view());
  hasher.field(kHost, kHostArchitecture);
  hasher.field(kTarget, unit.target.text);
  hasher.field(kEntry, unit.entry);
  for (const auto& [name, value] : unit.options) {
    hasher.field(kOptionName, name);
    hasher.field(kOptionValue, value);
  }
  for (const base::Digest& source : sources) hasher.field(kSource, source.view());
  return hasher.finish();
}

}  // namespace kc::build
