#include "report/fail_on.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "bundle/bundle.h"
#include "util/text.h"

namespace kc::report {
namespace {

using artifact::Metric;
using base::Result;

constexpr UnitChange kEvents[] = {UnitChange::kAdded, UnitChange::kRemoved, UnitChange::kChanged};

// Far above what a number of a kernel grows by in earnest; a typo beyond it is told.
constexpr uint64_t kMaxPercent = 1'000'000;

bool is_bytes(Metric metric) {
  return metric == Metric::kLocalMemory || metric == Metric::kSharedMemory || metric == Metric::kCode;
}

// `percent` of `number`, rounded down, which compares with whole numbers as the exact value does; the largest
// number when it is larger.
uint64_t share(uint64_t number, uint64_t percent) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const uint64_t rest = number % 100 * percent / 100;
  const uint64_t hundreds = number / 100;
  if (percent != 0 && hundreds > (kMost - rest) / percent) return kMost;
  return hundreds * percent + rest;
}

std::unexpected<base::Error> bad(std::string_view text, const std::string& why, std::string hint) {
  return base::fail(base::ErrorKind::kInput, util::format("--fail-on \"{}\": {}", util::escape(text), why),
                    std::move(hint));
}

std::optional<UnitChange> find_event(std::string_view name) {
  for (const UnitChange event : kEvents) {
    if (change_name(event) == name) return event;
  }
  return std::nullopt;
}

std::unexpected<base::Error> unknown(std::string_view text, std::string_view name) {
  std::vector<std::string> known;
  for (const Metric metric : artifact::kMetrics) known.emplace_back(artifact::metric_name(metric));
  for (const UnitChange event : kEvents) known.emplace_back(change_name(event));
  std::string hint = util::did_you_mean(name, known);
  if (hint.empty()) hint = util::format("known are {}", util::listed(known));
  return bad(text, util::format("there is no metric \"{}\"", util::escape(name)), std::move(hint));
}

}  // namespace

std::optional<std::string> Condition::held_by(const UnitDiff& diff) const {
  if (!metric) return diff.change == event ? std::optional(diff.text()) : std::nullopt;
  const auto change = std::find_if(diff.numbers.begin(), diff.numbers.end(),
                                   [&](const artifact::Change& c) { return c.metric == *metric; });
  if (change == diff.numbers.end()) return std::nullopt;
  const auto [less, more] =
      is_decrease ? std::pair(change->after, change->before) : std::pair(change->before, change->after);
  const uint64_t most = is_percent ? share(change->before, allowed) : allowed;
  if (more <= less || more - less <= most) return std::nullopt;
  return artifact::text_of({*change});
}

bool Condition::can_compare(const UnitDiff& diff) const {
  const auto knows = [&](const std::optional<bundle::Record>& record) {
    return record && artifact::numbers_of(record->facts, record->artifact_size).of(*metric).has_value();
  };
  return knows(diff.before) && knows(diff.after);
}

Result<Condition> parse_condition(std::string_view text) {
  Condition out;
  out.text = text;
  const size_t sign = text.find_first_of("+-");
  const std::string_view name = text.substr(0, sign);
  out.metric = artifact::find_metric(name);
  if (!out.metric) {
    const std::optional<UnitChange> event = find_event(name);
    if (!event) return unknown(text, name);
    out.event = *event;
    if (sign == std::string_view::npos) return out;
    return bad(text, util::format("\"{}\" takes no amount", name), util::format("write `{}`", name));
  }
  if (sign == std::string_view::npos) return out;
  out.is_decrease = text[sign] == '-';
  std::string_view amount = text.substr(sign + 1);
  out.is_percent = amount.ends_with('%');
  std::optional<uint64_t> number;
  if (out.is_percent) {
    amount.remove_suffix(1);
    number = util::parse_number(amount, 0, kMaxPercent);
  } else if (is_bytes(*out.metric)) {
    number = util::parse_size(amount);
  } else {
    number = util::parse_number(amount, 0, std::numeric_limits<uint64_t>::max());
  }
  if (!number) {
    const std::string_view expected = out.is_percent          ? "a whole number of percent up to a million"
                                      : is_bytes(*out.metric) ? "a size"
                                                              : "a whole number";
    return bad(
        text, util::format("\"{}\" is not {}", util::escape(amount), expected),
        util::format("write `{0}`, `{0}+{1}` or `{0}+10%`", name, is_bytes(*out.metric) ? "4KiB" : "8"));
  }
  out.allowed = *number;
  return out;
}

}  // namespace kc::report
