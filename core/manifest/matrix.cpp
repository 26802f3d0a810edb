#include "manifest/matrix.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace kc::manifest {
namespace {

// Beyond any limit, and far from overflow when it is multiplied by one more list of at most a million.
constexpr uint64_t kUncountable = 1ULL << 40;

}  // namespace

Matrix::Matrix(const SpecializationsDraft& draft) : draft_(draft) {
  if (!draft.matrix) return;
  const std::vector<Axis>& axes = *draft.matrix;
  points_ = 1;
  for (const Axis& axis : axes) points_ = std::min(points_ * axis.values.size(), kUncountable);
  by_key_.resize(axes.size());
  std::iota(by_key_.begin(), by_key_.end(), 0U);
  std::sort(by_key_.begin(), by_key_.end(),
            [&](uint32_t a, uint32_t b) { return axes[a].key.text < axes[b].key.text; });
  for (uint32_t i = 0; i < axes.size(); ++i) {
    AxisIndex& index = axes_[axes[i].key.text];
    index.axis = i;
    for (uint32_t v = 0; v < axes[i].values.size(); ++v) index.values.emplace(axes[i].values[v].text, v);
  }
  if (!draft.exclude) return;
  for (const Selection& exclude : *draft.exclude) {
    std::vector<Condition> conditions;
    for (const NamedText& pair : exclude.pairs) {
      // That they are there was checked when the excludes were read.
      const AxisIndex& index = axes_.at(pair.key.text);
      conditions.push_back({index.axis, index.values.at(pair.value.text)});
    }
    excludes_.push_back(std::move(conditions));
  }
}

bool Matrix::is_excluded(const std::vector<uint32_t>& point) const {
  return std::any_of(excludes_.begin(), excludes_.end(), [&](const std::vector<Condition>& exclude) {
    return std::all_of(exclude.begin(), exclude.end(),
                       [&](const Condition& condition) { return point[condition.axis] == condition.value; });
  });
}

bool Matrix::contains(const Pairs& pairs) const {
  if (!draft_.matrix || pairs.size() != draft_.matrix->size()) return false;
  std::vector<uint32_t> point(pairs.size());
  for (const auto& [key, text] : pairs) {
    const auto index = axes_.find(key);
    if (index == axes_.end()) return false;
    const auto value = index->second.values.find(text);
    if (value == index->second.values.end()) return false;
    point[index->second.axis] = value->second;
  }
  return !is_excluded(point);
}

uint64_t Matrix::visit(const std::function<void(const Pairs& pairs)>& visit) const {
  if (!draft_.matrix) return 0;
  uint64_t left = 0;
  const std::vector<Axis>& axes = *draft_.matrix;
  Pairs pairs(axes.size());
  for (uint32_t i = 0; i < axes.size(); ++i) pairs[i].first = axes[by_key_[i]].key.text;
  std::vector<uint32_t> point(axes.size());
  for (uint64_t n = 0; n < points_; ++n) {
    if (!is_excluded(point)) {
      for (uint32_t i = 0; i < axes.size(); ++i) {
        pairs[i].second = axes[by_key_[i]].values[point[by_key_[i]]].text;
      }
      visit(pairs);
      ++left;
    }
    // The next point: the last key turns fastest.
    for (size_t i = axes.size(); i-- > 0;) {
      if (++point[i] < axes[i].values.size()) break;
      point[i] = 0;
    }
  }
  return left;
}

}  // namespace kc::manifest
