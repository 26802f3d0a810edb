#include "backend/loom/run/module_digests.h"

#include "backend/content_key.h"

namespace kc::backend::loom {

base::Digest ModuleDigests::key(const CompileRequest& request) {
  const auto tag = [](KeyTag value) { return static_cast<uint8_t>(value); };
  base::KeyHasher hasher("kc-loom-link");
  hasher.field(tag(KeyTag::kSource), uint64_t{request.sources->id});
  hasher.field(tag(KeyTag::kEntry), request.entry);
  for (const auto& [name, value] : request.config) {
    hasher.field(tag(KeyTag::kConfigName), name);
    hasher.field(tag(KeyTag::kConfigValue), value);
  }
  return hasher.finish();
}

std::optional<base::Digest> ModuleDigests::find(const base::Digest& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(key);
  return found == all_.end() ? std::nullopt : std::optional(found->second);
}

void ModuleDigests::add(const base::Digest& key, const base::Digest& module) {
  const std::lock_guard lock(mutex_);
  if (all_.size() < most_) all_.try_emplace(key, module);
}

}  // namespace kc::backend::loom
