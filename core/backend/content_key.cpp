#include "backend/content_key.h"

#include "base/bytes.h"

namespace kc::backend {
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
  kDependName = 11,
  kDepend = 12,
  kModule = 13,
};

// Calls `visit(tag, name, value)` for each field of the key, in order. Digests are given as their raw bytes.
template <typename Visit>
void visit_fields(const ContentKeyInputs& inputs, const Visit& visit) {
  base::ByteWriter revision;
  revision.u64(inputs.adapter_revision);
  visit(kBackend, "backend", base::as_bytes(inputs.backend));
  visit(kAdapterRevision, "adapter_revision", base::ByteView(revision.bytes()));
  visit(kCompiler, "compiler", inputs.compiler.view());
  visit(kHost, "host", base::as_bytes(kHostArchitecture));
  visit(kTarget, "target", base::as_bytes(inputs.target));
  visit(kEntry, "entry", base::as_bytes(inputs.entry));
  for (const auto& [name, value] : inputs.options) {
    visit(kOptionName, "option", base::as_bytes(name));
    visit(kOptionValue, "value", base::as_bytes(value));
  }
  for (const base::Digest& source : inputs.sources) visit(kSource, "source", source.view());
  for (const auto& [name, digest] : inputs.depends) {
    visit(kDependName, "depends", base::as_bytes(name));
    visit(kDepend, "content", digest.view());
  }
  if (inputs.module) visit(kModule, "module", inputs.module->view());
}

}  // namespace

base::Digest content_key(const ContentKeyInputs& inputs) {
  base::KeyHasher hasher(kContentDomain);
  visit_fields(inputs, [&](Tag tag, std::string_view, base::ByteView value) { hasher.field(tag, value); });
  return hasher.finish();
}

std::vector<std::pair<std::string, std::string>> content_key_fields(const ContentKeyInputs& inputs) {
  std::vector<std::pair<std::string, std::string>> fields;
  visit_fields(inputs, [&](Tag tag, std::string_view name, base::ByteView value) {
    const bool is_text = tag == kBackend || tag == kHost || tag == kTarget || tag == kEntry ||
                         tag == kOptionName || tag == kOptionValue || tag == kDependName;
    fields.emplace_back(name, is_text ? std::string(base::as_text(value)) : base::to_hex(value));
  });
  return fields;
}

}  // namespace kc::backend
