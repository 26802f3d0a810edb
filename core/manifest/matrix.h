// The specializations of one kernel, in plan order: the matrix less its excludes, then the includes.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "manifest/draft.h"

namespace kc::manifest {

/// Over one SpecializationsDraft, which must outlive it and in which every slot that was written is good.
class Matrix {
 public:
  explicit Matrix(const SpecializationsDraft& draft);

  /// Of the matrix before its excludes; saturates far above kMaxUnits.
  uint64_t points() const { return points_; }
  uint64_t excludes() const { return excludes_.size(); }
  uint64_t includes() const;
  /// Bytes of the keys and values of the largest specialization.
  uint64_t largest() const;

  /// Bytes of the longest value.
  uint64_t longest_value() const;

  /// Calls `visit` for each specialization once; gives how many points of the matrix are left. Costs
  /// (points() + includes()) x excludes() comparisons.
  uint64_t visit(const std::function<void(const Pairs& pairs)>& visit) const;

 private:
  // A condition of an exclude: the value of one axis, both by index.
  struct Condition {
    uint32_t axis;
    uint32_t value;
  };
  // A matrix axis by its key, and where each of its values stands.
  struct AxisIndex {
    uint32_t axis = 0;
    std::unordered_map<std::string_view, uint32_t> values;
  };
  bool is_excluded(const std::vector<uint32_t>& point) const;
  bool is_in_matrix(const Selection& include) const;

  const SpecializationsDraft& draft_;
  std::unordered_map<std::string_view, AxisIndex> axes_;
  std::vector<uint32_t> by_key_;  // axes in the order of their keys
  std::vector<std::vector<Condition>> excludes_;
  uint64_t points_ = 0;
};

/// The pairs sorted by key.
Pairs sorted_pairs(const std::vector<NamedText>& pairs);

}  // namespace kc::manifest
