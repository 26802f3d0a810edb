#include "manifest/matrix.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_set>
#include <utility>

namespace kc::manifest {
namespace {

// Beyond any limit, and far from overflow when it is multiplied by one more list of at most a million.
constexpr uint64_t kUncountable = 1ULL << 40;

}  // namespace

Pairs sorted_pairs(const std::vector<NamedText>& pairs) {
  Pairs out;
  out.reserve(pairs.size());
  for (const NamedText& pair : pairs) out.emplace_back(pair.key.text, pair.value.text);
  std::sort(out.begin(), out.end());
  return out;
}

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

uint64_t Matrix::includes() const {
  return draft_.include ? draft_.include->size() : 0;
}

uint64_t Matrix::largest() const {
  uint64_t bytes = 0;
  if (draft_.matrix) {
    for (const Axis& axis : *draft_.matrix) {
      size_t value = 0;
      for (const Text& text : axis.values) value = std::max(value, text.text.size());
      bytes += sizeof(Pairs::value_type) + axis.key.text.size() + value;
    }
  }
  if (draft_.include) {
    for (const Selection& include : *draft_.include) {
      uint64_t sum = 0;
      for (const NamedText& pair : include.pairs) {
        sum += sizeof(Pairs::value_type) + pair.key.text.size() + pair.value.text.size();
      }
      bytes = std::max(bytes, sum);
    }
  }
  return bytes;
}

uint64_t Matrix::longest_value() const {
  size_t out = 0;
  if (draft_.matrix) {
    for (const Axis& axis : *draft_.matrix) {
      for (const Text& value : axis.values) out = std::max(out, value.text.size());
    }
  }
  if (draft_.include) {
    for (const Selection& include : *draft_.include) {
      for (const NamedText& pair : include.pairs) out = std::max(out, pair.value.text.size());
    }
  }
  return out;
}

bool Matrix::is_excluded(const std::vector<uint32_t>& point) const {
  return std::any_of(excludes_.begin(), excludes_.end(), [&](const std::vector<Condition>& exclude) {
    return std::all_of(exclude.begin(), exclude.end(),
                       [&](const Condition& condition) { return point[condition.axis] == condition.value; });
  });
}

bool Matrix::is_in_matrix(const Selection& include) const {
  if (!draft_.matrix || include.pairs.size() != draft_.matrix->size()) return false;
  std::vector<uint32_t> point(draft_.matrix->size());
  for (const NamedText& pair : include.pairs) {
    const auto index = axes_.find(pair.key.text);
    if (index == axes_.end()) return false;
    const auto value = index->second.values.find(pair.value.text);
    if (value == index->second.values.end()) return false;
    point[index->second.axis] = value->second;
  }
  return !is_excluded(point);
}

uint64_t Matrix::visit(const std::function<void(const Pairs& pairs)>& visit) const {
  uint64_t left = 0;
  if (draft_.matrix) {
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
  }
  if (!draft_.include) return left;
  std::unordered_set<std::string> seen;
  for (const Selection& include : *draft_.include) {
    const Pairs pairs = sorted_pairs(include.pairs);
    if (!is_in_matrix(include) && seen.insert(canonical_configuration(pairs)).second) visit(pairs);
  }
  return left;
}

}  // namespace kc::manifest
