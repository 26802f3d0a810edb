#include "manifest/targets.h"

#include <utility>

#include "manifest/resolve.h"

namespace kc::manifest {
namespace {

std::string_view vendor_name(target::Vendor vendor) {
  return vendor == target::Vendor::kNvidia ? "NVIDIA" : "AMD";
}

bool is_same(const target::Target& a, const target::Target& b) {
  return a.vendor == b.vendor && a.processor == b.processor && a.suffix == b.suffix &&
         a.sramecc == b.sramecc && a.xnack == b.xnack;
}

}  // namespace

void resolve_targets(KernelParts& parts, const FileDefaults& defaults, const ResolveContext& context) {
  const KernelDraft& draft = *parts.draft;
  if (draft.targets.is_faulty()) return;
  const BackendRules& backend = *parts.backend;
  Faults& faults = context.faults;
  if (draft.targets) {
    for (const TargetDraft& target : *draft.targets) {
      if (target.target.vendor != backend.vendor) {
        faults.error(
            target.place,
            util::format("{} is a target of {}, and {} compiles for {}", in_quotes(target.target.text),
                         vendor_name(target.target.vendor), backend.name, vendor_name(backend.vendor)));
      }
      parts.targets.push_back(&target.target);
    }
    return;
  }
  if (defaults.targets == nullptr || !defaults.targets->written) {
    faults.error(draft.place, util::format("{} has no targets", parts.described()),
                 "list them in the kernel or at the top of the manifest");
    return;
  }
  if (defaults.targets->is_faulty()) return;
  for (const TargetDraft& target : **defaults.targets) {
    if (target.target.vendor == backend.vendor) parts.targets.push_back(&target.target);
  }
  if (parts.targets.empty()) {
    faults.error(draft.place,
                 util::format("{} is left without targets: none of the manifest's is of {}, which {} "
                              "compiles for",
                              parts.described(), vendor_name(backend.vendor), backend.name));
  }
}

TargetFinder::TargetFinder(const std::vector<const target::Target*>& targets) : targets_(targets) {
  for (uint32_t i = 0; i < targets.size(); ++i) by_text_.try_emplace(targets[i]->text, i);
}

std::optional<uint32_t> TargetFinder::find(std::string_view text) const {
  if (const auto found = by_text_.find(text); found != by_text_.end()) return found->second;
  if (text.find(':') == std::string_view::npos) return std::nullopt;
  const base::Result<target::Target> parsed = target::parse_target(text);
  if (!parsed) return std::nullopt;
  for (uint32_t i = 0; i < targets_.size(); ++i) {
    if (is_same(*targets_[i], *parsed)) return i;
  }
  return std::nullopt;
}

std::string TargetFinder::hint_for(std::string_view text) const {
  std::vector<std::string> names;
  for (const target::Target* target : targets_) names.push_back(target->text);
  std::string hint = util::did_you_mean(text, names);
  return hint.empty() ? "its targets: " + util::listed(names) : hint;
}

bool resolve_row_targets(KernelParts& parts, const TargetFinder& finder, Faults& faults) {
  if (parts.rows == nullptr) return true;
  struct Unknown {
    YamlPlace place;
    size_t rows = 0;
  };
  std::unordered_map<std::string_view, Unknown> unknown;
  std::unordered_map<std::string_view, uint32_t> known;
  parts.row_targets.reserve(parts.rows->size());
  for (const TableRow& row : *parts.rows) {
    uint32_t target = KernelParts::kAllTargets;
    if (row.target) {
      const std::string_view text = row.target->text;
      const auto [found, is_new] = known.try_emplace(text, KernelParts::kAllTargets);
      if (is_new) {
        if (const std::optional<uint32_t> index = finder.find(text)) {
          found->second = *index;
        } else {
          unknown.try_emplace(text, Unknown{row.target->place, 0});
        }
      }
      target = found->second;
      if (target == KernelParts::kAllTargets) ++unknown[text].rows;
    }
    parts.row_targets.push_back(target);
  }
  for (const auto& [text, where] : unknown) {
    faults.error(where.place,
                 util::format("{} is none of the targets of {}{}", in_quotes(text), parts.described(),
                              where.rows > 1 ? util::format("; {} rows name it", where.rows) : ""),
                 faults.wants_hints() ? finder.hint_for(text) : "");
  }
  return unknown.empty();
}

}  // namespace kc::manifest
