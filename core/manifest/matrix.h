// The matrix of one kernel less its excludes.
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

  /// Before the excludes; saturates far above kMaxUnits.
  uint64_t points() const { return points_; }
  uint64_t excludes() const { return excludes_.size(); }

  /// Whether it gives the specialization `pairs`. Costs excludes() comparisons.
  bool contains(const Pairs& pairs) const;
  /// Calls `visit` for each point that is left, in order, the pairs sorted by key; gives how many there are.
  /// Costs points() x excludes() comparisons.
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

  const SpecializationsDraft& draft_;
  std::unordered_map<std::string_view, AxisIndex> axes_;
  std::vector<uint32_t> by_key_;  // axes in the order of their keys
  std::vector<std::vector<Condition>> excludes_;
  uint64_t points_ = 0;
};

}  // namespace kc::manifest
