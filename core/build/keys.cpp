#include "build/keys.h"

#include <utility>

#include "base/bytes.h"

namespace kc::build {
namespace {

using backend::KeyTag;

enum class Form : uint8_t { kText, kHex };

// Calls `visit(tag, name, value, form)` for each field of the key, in order. Digests are given as their raw
// bytes.
template <typename Visit>
void visit_fields(const manifest::Unit& unit, const backend::Description& backend,
                  const base::Digest& compiler_identity, const InputFiles& inputs, const Visit& visit) {
  const auto text = [&](KeyTag tag, std::string_view name, std::string_view value) {
    visit(tag, name, base::as_bytes(value), Form::kText);
  };
  const auto files = [&](KeyTag tag, std::string_view name, KeyTag content,
                         const std::vector<InputFile>& list) {
    for (const InputFile& file : list) {
      text(tag, name, file.identifier);
      visit(content, "content", file.digest.view(), Form::kHex);
    }
  };
  base::ByteWriter revision;
  revision.u64(backend.adapter_revision);
  text(KeyTag::kBackend, "backend", backend.name);
  visit(KeyTag::kAdapterRevision, "adapter_revision", base::ByteView(revision.bytes()), Form::kHex);
  visit(KeyTag::kCompiler, "compiler", compiler_identity.view(), Form::kHex);
  text(KeyTag::kHost, "host", backend::kHostArchitecture);
  text(KeyTag::kTarget, "target", unit.target.text);
  text(KeyTag::kEntry, "entry", unit.entry);
  for (const auto& [name, value] : unit.options) {
    text(KeyTag::kOptionName, "option", name);
    text(KeyTag::kOptionValue, "value", value);
  }
  for (const auto& [name, value] : unit.config) {
    text(KeyTag::kConfigName, "config", name);
    text(KeyTag::kConfigValue, "value", value);
  }
  files(KeyTag::kSourceName, "source", KeyTag::kSource, inputs.sources);
  files(KeyTag::kLibraryName, "library", KeyTag::kLibrary, inputs.libraries);
  files(KeyTag::kDependName, "depends", KeyTag::kDepend, inputs.depends);
}

}  // namespace

std::string key_domains() {
  return std::string(backend::kContentDomain) + std::string(kRequestDomain);
}

bool is_another_key_format(std::string_view earlier) {
  while (!earlier.empty()) {
    const size_t end = earlier.find('\0');
    const std::string_view domain = earlier.substr(0, end == std::string_view::npos ? end : end + 1);
    if (domain != backend::kContentDomain && domain != kRequestDomain) return true;
    earlier.remove_prefix(domain.size());
  }
  return false;
}

base::Digest request_key(const manifest::Unit& unit, const backend::Description& backend,
                         const base::Digest& compiler_identity, const InputFiles& inputs) {
  base::KeyHasher hasher(kRequestDomain);
  visit_fields(unit, backend, compiler_identity, inputs,
               [&](KeyTag tag, std::string_view, base::ByteView value, Form) {
                 hasher.field(std::to_underlying(tag), value);
               });
  return hasher.finish();
}

std::vector<std::pair<std::string, std::string>> request_key_fields(const manifest::Unit& unit,
                                                                    const backend::Description& backend,
                                                                    const base::Digest& compiler_identity,
                                                                    const InputFiles& inputs) {
  std::vector<std::pair<std::string, std::string>> fields;
  visit_fields(unit, backend, compiler_identity, inputs,
               [&](KeyTag, std::string_view name, base::ByteView value, Form form) {
                 fields.emplace_back(
                     name, form == Form::kText ? std::string(base::as_text(value)) : base::to_hex(value));
               });
  return fields;
}

backend::ContentKeyInputs content_key_inputs(const manifest::Unit& unit, const backend::Description& backend,
                                             const base::Digest& compiler_identity,
                                             const InputFiles& inputs) {
  backend::ContentKeyInputs out;
  out.backend = backend.name;
  out.adapter_revision = backend.adapter_revision;
  out.compiler = compiler_identity;
  out.target = unit.target.text;
  out.entry = unit.entry;
  out.options = unit.options;
  if (backend.has_front_half) return out;  // the module stands for all files and the configuration
  for (const InputFile& source : inputs.sources) out.sources.push_back(source.digest);
  for (const InputFile& file : inputs.depends) out.depends.emplace_back(file.identifier, file.digest);
  return out;
}

}  // namespace kc::build
