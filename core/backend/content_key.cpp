#include "backend/content_key.h"

#include <utility>

#include "base/bytes.h"

namespace kc::backend {
namespace {

// Calls `visit(tag, name, value)` for each field of the key, in order. Digests are given as their raw bytes.
template <typename Visit>
void visit_fields(const ContentKeyInputs& inputs, const Visit& visit) {
  base::ByteWriter revision;
  revision.u64(inputs.adapter_revision);
  visit(KeyTag::kBackend, "backend", base::as_bytes(inputs.backend));
  visit(KeyTag::kAdapterRevision, "adapter_revision", base::ByteView(revision.bytes()));
  visit(KeyTag::kCompiler, "compiler", inputs.compiler.view());
  visit(KeyTag::kHost, "host", base::as_bytes(kHostArchitecture));
  visit(KeyTag::kTarget, "target", base::as_bytes(inputs.target));
  visit(KeyTag::kEntry, "entry", base::as_bytes(inputs.entry));
  for (const auto& [name, value] : inputs.options) {
    visit(KeyTag::kOptionName, "option", base::as_bytes(name));
    visit(KeyTag::kOptionValue, "value", base::as_bytes(value));
  }
  for (const base::Digest& source : inputs.sources) visit(KeyTag::kSource, "source", source.view());
  for (const auto& [name, digest] : inputs.depends) {
    visit(KeyTag::kDependName, "depends", base::as_bytes(name));
    visit(KeyTag::kDepend, "content", digest.view());
  }
  if (inputs.module) visit(KeyTag::kModule, "module", inputs.module->view());
}

}  // namespace

base::Digest content_key(const ContentKeyInputs& inputs) {
  base::KeyHasher hasher(kContentDomain);
  visit_fields(inputs, [&](KeyTag tag, std::string_view, base::ByteView value) {
    hasher.field(std::to_underlying(tag), value);
  });
  return hasher.finish();
}

std::vector<std::pair<std::string, std::string>> content_key_fields(const ContentKeyInputs& inputs) {
  std::vector<std::pair<std::string, std::string>> fields;
  visit_fields(inputs, [&](KeyTag tag, std::string_view name, base::ByteView value) {
    const bool is_text = tag == KeyTag::kBackend || tag == KeyTag::kHost || tag == KeyTag::kTarget ||
                         tag == KeyTag::kEntry || tag == KeyTag::kOptionName || tag == KeyTag::kOptionValue ||
                         tag == KeyTag::kDependName;
    fields.emplace_back(name, is_text ? std::string(base::as_text(value)) : base::to_hex(value));
  });
  return fields;
}

}  // namespace kc::backend
