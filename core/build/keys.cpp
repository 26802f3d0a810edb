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
  kLibrary = 10,
  kDependName = 11,
  kDepend = 12,
};

// A cubin of a Tile IR kernel carries launch code for the host's processor, so it is part of what was asked.
#if defined(__x86_64__)
constexpr std::string_view kHostArchitecture = "x86_64";
#elif defined(__aarch64__)
constexpr std::string_view kHostArchitecture = "aarch64";
#else
#error "kc runs on x86-64 and aarch64 hosts"
#endif

// Calls `visit(tag, name, value)` for each field of the key, in order. Digests are given as their raw bytes.
template <typename Visit>
void visit_fields(const manifest::Unit& unit, const backend::Description& backend,
                  const base::Digest& compiler_identity, const InputDigests& inputs, const Visit& visit) {
  base::ByteWriter revision;
  revision.u64(backend.adapter_revision);
  visit(kBackend, "backend", base::as_bytes(backend.name));
  visit(kAdapterRevision, "adapter_revision", base::ByteView(revision.bytes()));
  visit(kCompiler, "compiler", compiler_identity.view());
  visit(kHost, "host", base::as_bytes(kHostArchitecture));
  visit(kTarget, "target", base::as_bytes(unit.target.text));
  visit(kEntry, "entry", base::as_bytes(unit.entry));
  for (const auto& [name, value] : unit.options) {
    visit(kOptionName, "option", base::as_bytes(name));
    visit(kOptionValue, "value", base::as_bytes(value));
  }
  for (const base::Digest& source : inputs.sources) visit(kSource, "source", source.view());
  for (const base::Digest& library : inputs.libraries) visit(kLibrary, "library", library.view());
  for (const auto& [name, digest] : inputs.depends) {
    visit(kDependName, "depends", base::as_bytes(name));
    visit(kDepend, "content", digest.view());
  }
}

}  // namespace

base::Digest content_key(const manifest::Unit& unit, const backend::Description& backend,
                         const base::Digest& compiler_identity, const InputDigests& inputs) {
  base::KeyHasher hasher(kContentDomain);
  visit_fields(unit, backend, compiler_identity, inputs,
               [&](Tag tag, std::string_view, base::ByteView value) { hasher.field(tag, value); });
  return hasher.finish();
}

std::vector<std::pair<std::string, std::string>> content_key_fields(const manifest::Unit& unit,
                                                                    const backend::Description& backend,
                                                                    const base::Digest& compiler_identity,
                                                                    const InputDigests& inputs) {
  std::vector<std::pair<std::string, std::string>> fields;
  visit_fields(unit, backend, compiler_identity, inputs,
               [&](Tag tag, std::string_view name, base::ByteView value) {
                 const bool is_text = tag != kCompiler && tag != kSource && tag != kLibrary &&
                                      tag != kDepend && tag != kAdapterRevision;
                 fields.emplace_back(name, is_text ? std::string(base::as_text(value)) : base::to_hex(value));
               });
  return fields;
}

}  // namespace kc::build
