#include "manifest/defaults.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "manifest/files.h"
#include "manifest/kernel_parts.h"
#include "manifest/options.h"
#include "manifest/resolve.h"

namespace kc::manifest {

Offered::Offered(const std::vector<NamedText>& pairs) : pairs_(pairs), taken_(pairs.size()) {
  for (uint32_t i = 0; i < pairs_.size(); ++i) {
    const NamedText& pair = pairs_[i];
    by_key_[pair.key.text].push_back(i);
    bytes_ += sizeof(Pairs::value_type) + pair.key.text.size() + pair.value.text.size();
  }
}

std::shared_ptr<const Pairs> Offered::take(const DeclaredKeys* declared) {
  if (declared == nullptr && all_ != nullptr) return all_;
  auto out = std::make_shared<Pairs>();
  const auto take_all = [&](const std::vector<uint32_t>& same) {
    for (const uint32_t i : same) taken_[i] = true;
    out->emplace_back(pairs_[same[0]].key.text, pairs_[same[0]].value.text);
  };
  if (declared != nullptr && declared->size() < by_key_.size()) {
    declared->for_each([&](const std::string& key) {
      if (const auto same = by_key_.find(key); same != by_key_.end()) take_all(same->second);
    });
  } else {
    for (const auto& [key, same] : by_key_) {
      if (declared == nullptr || declared->contains(key)) take_all(same);
    }
  }
  std::sort(out->begin(), out->end());
  out->erase(std::unique(out->begin(), out->end()), out->end());
  if (declared == nullptr) all_ = out;
  return out;
}

void Offered::add_taken_places(std::vector<YamlPlace>& places) const {
  for (size_t i = 0; i < pairs_.size(); ++i) {
    if (taken_[i]) places.push_back(pairs_[i].key.place);
  }
}

DefaultsIndex::DefaultsIndex(const FileDefaults& defaults) : offered(defaults.config) {
  for (const DefaultsDraft::BackendOptions& of_backend : defaults.options) {
    auto& by_name = options_[of_backend.backend.text];
    for (const NamedText& option : of_backend.options) by_name.try_emplace(option.key.text, option);
  }
}

const NamedText* DefaultsIndex::option(std::string_view backend, std::string_view name) const {
  const auto by_name = options_.find(std::string(backend));
  if (by_name == options_.end()) return nullptr;
  const auto found = by_name->second.find(std::string(name));
  return found == by_name->second.end() ? nullptr : &found->second;
}

void check_defaults(const DefaultsDraft& defaults, const ResolveContext& context) {
  for (const DefaultsDraft::BackendOptions& of_backend : defaults.options) {
    const BackendRules* backend = find_backend(of_backend.backend, context);
    if (backend == nullptr) continue;
    for (const NamedText& option : of_backend.options) {
      check_option(*backend, option.key.text, option.key.place, option.value, context.faults);
    }
  }
}

void warn_of_unused_defaults(const std::vector<const ManifestDraft*>& files,
                             const std::vector<ResolvedKernel>& kernels, Faults& faults) {
  std::unordered_set<const target::Target*> targets;
  std::unordered_set<const DefaultsIndex*> indices;
  std::vector<YamlPlace> places;
  const KernelParts* last = nullptr;
  for (const ResolvedKernel& kernel : kernels) {
    if (kernel.parts.get() == last) continue;  // of the same `entries`
    last = kernel.parts.get();
    targets.insert(last->targets.begin(), last->targets.end());
    if (indices.insert(last->defaults.get()).second) last->defaults->offered.add_taken_places(places);
  }
  const std::set<YamlPlace> taken(places.begin(), places.end());
  for (const ManifestDraft* file : files) {
    if (file->targets) {
      for (const TargetDraft& target : *file->targets) {
        if (targets.contains(&target.target)) continue;
        faults.warning(target.place,
                       util::format("no kernel takes the target {}", in_quotes(target.target.text)));
      }
    }
    if (!file->defaults) continue;
    for (const NamedText& pair : file->defaults->config) {
      if (taken.contains(pair.key.place)) continue;
      faults.warning(pair.key.place, util::format("no kernel takes {} from \"defaults\": none declares it",
                                                  in_quotes(pair.key.text)));
    }
  }
}

}  // namespace kc::manifest
