// The specializations of one kernel: of its matrix, its includes and the rows of its table.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "manifest/draft.h"
#include "manifest/kernel_parts.h"
#include "manifest/matrix.h"

namespace kc::manifest {

/// The pairs sorted by key.
Pairs sorted_pairs(const std::vector<NamedText>& pairs);
/// The value of `key` in pairs sorted by key; null when they have it not.
const std::string* find_value(const Pairs& pairs, std::string_view key);

/// The `specializations` of a kernel; empty ones when it has none.
const SpecializationsDraft& specializations_of(const KernelParts& parts);

/// The keys that some specialization has, `option.` keys included, each where it is written first. Points
/// into the draft and the table.
class SpecializationKeys {
 public:
  explicit SpecializationKeys(const KernelParts& parts);

  /// Null when no specialization has it.
  const Text* find(std::string_view key) const;
  bool is_in_matrix(std::string_view key) const { return in_matrix_.contains(key); }
  /// In the order written.
  const std::vector<const Text*>& all() const { return all_; }
  std::vector<std::string> sorted_names() const;

 private:
  void add(const Text& key);

  std::vector<const Text*> all_;
  std::unordered_map<std::string_view, const Text*> by_name_;
  std::unordered_set<std::string_view> in_matrix_;
};

/// One of them.
struct Specialization {
  const Pairs& pairs;       // sorted
  const std::string& text;  // canonical
  /// The targets that it is for, as indices into those of the kernel, ascending; null = all.
  const std::vector<uint32_t>* targets = nullptr;
  uint32_t first_row = UINT32_MAX;     // of the rows that are this specialization; kNoRow: none
  const Selection* written = nullptr;  // the include or the row that it is of; null = of the matrix
  static constexpr uint32_t kNoRow = UINT32_MAX;
};

/// Each specialization once, in plan order. The parts must outlive it, and every slot of `specializations`
/// that was written must be good.
class Specializations {
 public:
  explicit Specializations(const KernelParts& parts);

  /// Calls `visit` for each; gives how many points of the matrix are left. A kernel without specializations
  /// has one without pairs.
  uint64_t visit(const std::function<void(const Specialization& specialization)>& visit) const;

  /// What the rows of a specialization say in their columns `when.*` about the unit of one target:
  /// Unit::selection.
  std::string selection(const Specialization& specialization, uint32_t target) const;

 private:
  // Rows of one specialization, in order: a chain through next_row_.
  struct Chain {
    uint32_t first = 0;
    uint32_t last = 0;
    bool is_for_all_targets = false;
  };
  std::vector<uint32_t> targets_of(const Chain& chain) const;

  const KernelParts& parts_;
  const SpecializationsDraft& draft_;
  Matrix matrix_;
  std::vector<uint32_t> next_row_;                 // of each row, the next of the same specialization
  std::unordered_map<std::string, Chain> chains_;  // by canonical text
  bool has_selections_ = false;
};

}  // namespace kc::manifest
