#include "manifest/specializations.h"

#include <algorithm>
#include <utility>

namespace kc::manifest {
namespace {

const SpecializationsDraft kNoSpecializations{};

}  // namespace

Pairs sorted_pairs(const std::vector<NamedText>& pairs) {
  Pairs out;
  out.reserve(pairs.size());
  for (const NamedText& pair : pairs) out.emplace_back(pair.key.text, pair.value.text);
  std::sort(out.begin(), out.end());
  return out;
}

const std::string* find_value(const Pairs& pairs, std::string_view key) {
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), key,
                                   [](const auto& pair, std::string_view name) { return pair.first < name; });
  return at != pairs.end() && at->first == key ? &at->second : nullptr;
}

const SpecializationsDraft& specializations_of(const KernelParts& parts) {
  return parts.draft->specializations ? *parts.draft->specializations : kNoSpecializations;
}

SpecializationKeys::SpecializationKeys(const KernelParts& parts) {
  const SpecializationsDraft& draft = specializations_of(parts);
  if (draft.matrix) {
    for (const Axis& axis : *draft.matrix) {
      in_matrix_.insert(axis.key.text);
      add(axis.key);
    }
  }
  if (draft.include) {
    for (const Selection& include : *draft.include) {
      for (const NamedText& pair : include.pairs) add(pair.key);
    }
  }
  if (parts.rows == nullptr) return;
  for (const TableRow& row : *parts.rows) {
    for (const NamedText& pair : row.selection.pairs) add(pair.key);
  }
}

void SpecializationKeys::add(const Text& key) {
  if (by_name_.try_emplace(key.text, &key).second) all_.push_back(&key);
}

const Text* SpecializationKeys::find(std::string_view key) const {
  const auto found = by_name_.find(key);
  return found == by_name_.end() ? nullptr : found->second;
}

std::vector<std::string> SpecializationKeys::sorted_names() const {
  std::vector<std::string> out;
  out.reserve(all_.size());
  for (const Text* key : all_) out.push_back(key->text);
  std::sort(out.begin(), out.end());
  return out;
}

Specializations::Specializations(const KernelParts& parts)
    : parts_(parts), draft_(specializations_of(parts)), matrix_(draft_) {
  if (parts.rows == nullptr) return;
  next_row_.resize(parts.rows->size(), Specialization::kNoRow);
  chains_.reserve(parts.rows->size());
  for (uint32_t i = 0; i < parts.rows->size(); ++i) {
    const TableRow& row = (*parts.rows)[i];
    const auto [found, is_new] =
        chains_.try_emplace(canonical_configuration(sorted_pairs(row.selection.pairs)), Chain{i, i, false});
    Chain& chain = found->second;
    if (!is_new) {
      next_row_[chain.last] = i;
      chain.last = i;
    }
    if (parts.row_targets[i] == KernelParts::kAllTargets) chain.is_for_all_targets = true;
    if (!row.when.empty()) has_selections_ = true;
  }
}

std::vector<uint32_t> Specializations::targets_of(const Chain& chain) const {
  std::vector<uint32_t> out;
  for (uint32_t row = chain.first; row != Specialization::kNoRow; row = next_row_[row]) {
    out.push_back(parts_.row_targets[row]);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

uint64_t Specializations::visit(
    const std::function<void(const Specialization& specialization)>& visit) const {
  std::unordered_set<uint32_t> visited;  // first rows of the chains that matrix or includes have
  const auto visit_for_all = [&](const Pairs& pairs, const std::string& text, const Selection* written) {
    Specialization out{pairs, text, nullptr, Specialization::kNoRow, written};
    if (const auto chain = chains_.find(text); chain != chains_.end()) {
      out.first_row = chain->second.first;
      visited.insert(out.first_row);
    }
    visit(out);
  };
  if (!parts_.draft->specializations) {
    visit_for_all({}, {}, nullptr);
    return 0;
  }
  const uint64_t left = matrix_.visit(
      [&](const Pairs& pairs) { visit_for_all(pairs, canonical_configuration(pairs), nullptr); });
  if (draft_.include) {
    std::unordered_set<std::string> seen;
    for (const Selection& include : *draft_.include) {
      const Pairs pairs = sorted_pairs(include.pairs);
      std::string text = canonical_configuration(pairs);
      if (matrix_.contains(pairs)) continue;
      const auto [at, is_new] = seen.insert(std::move(text));
      if (is_new) visit_for_all(pairs, *at, &include);
    }
  }
  if (parts_.rows == nullptr) return left;
  for (uint32_t i = 0; i < parts_.rows->size(); ++i) {
    const Selection& row = (*parts_.rows)[i].selection;
    const Pairs pairs = sorted_pairs(row.pairs);
    const auto found = chains_.find(canonical_configuration(pairs));
    const Chain& chain = found->second;
    if (chain.first != i || visited.contains(i)) continue;
    if (chain.is_for_all_targets) {
      visit({pairs, found->first, nullptr, i, &row});
    } else {
      const std::vector<uint32_t> targets = targets_of(chain);
      visit({pairs, found->first, &targets, i, &row});
    }
  }
  return left;
}

std::string Specializations::selection(const Specialization& specialization, uint32_t target) const {
  std::string out;
  if (!has_selections_) return out;
  std::unordered_set<std::string> said;
  for (uint32_t row = specialization.first_row; row != Specialization::kNoRow; row = next_row_[row]) {
    const uint32_t for_target = parts_.row_targets[row];
    if (for_target != KernelParts::kAllTargets && for_target != target) continue;
    const std::vector<NamedText>& when = (*parts_.rows)[row].when;
    if (when.empty()) continue;
    std::string part = canonical_configuration(sorted_pairs(when));
    const auto [at, is_new] = said.insert(std::move(part));
    if (!is_new) continue;
    if (!out.empty()) out += ';';
    out += *at;
    // Reported by who asks; more is not built.
    if (out.size() > kMaxSelectionBytes) return out;
  }
  return out;
}

}  // namespace kc::manifest
