#include "manifest/modules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "util/text.h"

namespace kc::manifest {
namespace {

void append(std::string& key, uint32_t index) {
  for (int shift = 0; shift < 32; shift += 8) key += static_cast<char>(index >> shift);
}

// No backend's name holds a zero byte, and an index has always four.
std::string key_of(const BackendRules& backend, const std::vector<KernelFile>& files) {
  std::string key = backend.name + '\0';
  for (const KernelFile& file : files) append(key, file.index);
  return key;
}

bool has(const KeyNames& names, std::string_view key) {
  return names != nullptr && std::binary_search(names->begin(), names->end(), key);
}

}  // namespace

KeyNames make_key_names(std::vector<std::string> keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  keys.shrink_to_fit();
  return std::make_shared<const std::vector<std::string>>(std::move(keys));
}

bool DeclaredKeys::contains(std::string_view key) const {
  return has(sources_, key) || has(libraries_, key);
}

size_t DeclaredKeys::size() const {
  return sources_->size() + (libraries_ == nullptr ? 0 : libraries_->size());
}

std::vector<std::string> DeclaredKeys::sorted() const {
  std::vector<std::string> out;
  for_each([&](const std::string& key) { out.push_back(key); });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

const SourceContent* Modules::read(const KernelFile& file) {
  if (unreadable_.contains(file.index)) return nullptr;
  const base::Result<const SourceContent*> content = sources_.content(file.index);
  if (content) return *content;
  unreadable_.insert(file.index);
  faults_.error(file.place,
                util::format("the file {} cannot be used: {}", in_quotes(file.path), content.error().message),
                content.error().hint);
  return nullptr;
}

Modules::Told Modules::keys_of_file(const BackendRules& backend, const KernelFile& file) {
  Told out;
  const SourceContent* content = read(file);
  if (content == nullptr) {
    out.is_readable = false;
    return out;
  }
  std::optional<std::vector<std::string>> keys =
      backend.declared_keys(file.path, base::ByteView(content->bytes));
  if (keys) {
    out.keys = make_key_names(std::move(*keys));
  } else {
    out.silent = file.path;
  }
  return out;
}

const Modules::Told& Modules::keys_of(const BackendRules& backend, const std::vector<KernelFile>& files) {
  std::string key = key_of(backend, files);
  if (const auto found = told_.find(key); found != told_.end()) return found->second;
  Told out;
  if (files.size() == 1) {
    out = keys_of_file(backend, files[0]);
  } else {
    std::vector<std::string> keys;
    for (const KernelFile& file : files) {
      const Told& own = keys_of(backend, {file});
      out.is_readable = out.is_readable && own.is_readable;
      if (own.keys != nullptr) keys.insert(keys.end(), own.keys->begin(), own.keys->end());
      if (out.silent.empty()) out.silent = own.silent;
    }
    if (out.is_readable && out.silent.empty()) out.keys = make_key_names(std::move(keys));
  }
  return told_.emplace(std::move(key), std::move(out)).first->second;
}

const Modules::Exported& Modules::exported(const BackendRules& backend, const KernelFile& file) {
  const auto [found, is_new] = exported_.try_emplace(key_of(backend, {file}));
  Exported& out = found->second;
  if (!is_new) return out;
  const SourceContent* content = read(file);
  if (content == nullptr) {
    out.is_readable = false;
  } else if (backend.exported_entries) {
    std::optional<std::vector<std::string>> names =
        backend.exported_entries(file.path, base::ByteView(content->bytes));
    out.is_known = names.has_value();
    if (names) out.names = std::move(*names);
  }
  return out;
}

}  // namespace kc::manifest
