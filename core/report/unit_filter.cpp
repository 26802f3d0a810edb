#include "report/unit_filter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "manifest/names.h"
#include "util/text.h"

namespace kc::report {
namespace {

using base::Result;
using bundle::Reader;
using bundle::Record;

// Every record of every bundle, until `visit` gives false.
Result<void> walk(std::span<Reader* const> bundles, const std::function<bool(const Record&)>& visit) {
  for (Reader* bundle : bundles) {
    for (uint32_t i = 0; i < bundle->record_count(); ++i) {
      KC_ASSIGN(const Record record, bundle->record(i));
      if (!visit(record)) return {};
    }
  }
  return {};
}

// Work for a hint, in pairs of bytes that are compared: a quarter of a second. A million units with names of
// 200 bytes would take minutes.
constexpr uint64_t kMostSteps = 100'000'000;

// Of the kernels and units the one nearest to `pattern`, as a hint; may be empty. The best so far is asked
// about again with each record: so no list of a million names is made.
Result<std::string> hint_for(const std::string& pattern, std::span<Reader* const> bundles) {
  std::string best;
  uint64_t steps = 0;
  KC_TRY(walk(bundles, [&](const Record& record) {
    const std::string unit = record.unit();
    const std::array<std::string, 4> candidates = {record.kernel, unit.substr(0, unit.rfind('@')), unit,
                                                   best};
    const size_t count = candidates.size() - (best.empty() ? 1 : 0);
    best = util::nearest(pattern, std::span(candidates).first(count)).value_or(best);
    for (const std::string& candidate : candidates) steps += pattern.size() * candidate.size();
    return steps < kMostSteps;
  }));
  if (best.empty()) return std::string();
  return util::did_you_mean(pattern, std::span(&best, 1));
}

}  // namespace

bool is_named(const Record& record, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return true;
  const std::string unit = record.unit();
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return manifest::is_named(pattern, unit, record.kernel);
  });
}

Result<void> check_patterns(const std::vector<std::string>& patterns, std::span<Reader* const> bundles) {
  if (patterns.empty()) return {};
  std::vector<bool> used(patterns.size());
  size_t left = patterns.size();
  KC_TRY(walk(bundles, [&](const Record& record) {
    const std::string unit = record.unit();
    for (size_t p = 0; p < patterns.size(); ++p) {
      if (used[p] || !manifest::is_named(patterns[p], unit, record.kernel)) continue;
      used[p] = true;
      --left;
    }
    return left != 0;
  }));
  if (left == 0) return {};
  const auto unused = static_cast<size_t>(std::find(used.begin(), used.end(), false) - used.begin());
  KC_ASSIGN(std::string hint, hint_for(patterns[unused], bundles));
  return base::fail(
      base::ErrorKind::kInput,
      util::format("no unit or kernel in {} is named \"{}\"",
                   bundles.size() == 1 ? "the bundle" : "either bundle", util::escape(patterns[unused])),
      std::move(hint));
}

}  // namespace kc::report
