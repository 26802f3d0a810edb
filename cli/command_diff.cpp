// kc diff: what differs between two bundles, and whether that is a failure.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifact/compare.h"
#include "bundle/bundle.h"
#include "cli/command.h"
#include "cli/console.h"
#include "report/bundle_diff.h"
#include "report/bundle_json.h"
#include "report/fail_on.h"
#include "report/unit_filter.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::ErrorKind;
using base::Result;
using bundle::Reader;
using report::Condition;
using report::UnitChange;
using report::UnitDiff;

// Conditions that hold, told when the last unit was compared. Of each more than a screen of units are only
// counted.
class Failures {
 public:
  explicit Failures(const std::vector<Condition>& conditions)
      : conditions_(conditions),
        told_(conditions.size()),
        units_(conditions.size()),
        compared_(conditions.size()) {}

  /// The conditions that hold for the unit, as written.
  std::vector<std::string> check(const UnitDiff& diff) {
    std::vector<std::string> out;
    is_in_both_ = is_in_both_ || (diff.before && diff.after);
    for (size_t c = 0; c < conditions_.size(); ++c) {
      const Condition& condition = conditions_[c];
      compared_[c] = compared_[c] || !condition.metric || condition.can_compare(diff);
      const auto why = condition.held_by(diff);
      if (!why) continue;
      out.push_back(condition.text);
      if (++units_[c] <= kTold) told_[c].push_back(util::format("{}: {}", diff.record().unit(), *why));
    }
    return out;
  }

  /// Those that held for any unit, as written.
  std::vector<std::string> held() const {
    std::vector<std::string> out;
    for (size_t c = 0; c < conditions_.size(); ++c) {
      if (units_[c] != 0) out.push_back(conditions_[c].text);
    }
    return out;
  }

  void tell(Console& console) const {
    for (size_t c = 0; c < conditions_.size(); ++c) {
      if (is_in_both_ && !compared_[c]) warn(conditions_[c], console);
      const auto error = [&](const std::string& text) {
        const std::string message = util::format("--fail-on {}: {}", conditions_[c].text, text);
        console.error({ErrorKind::kFailed, message, {}, {}});
      };
      for (const std::string& text : told_[c]) error(text);
      if (units_[c] > kTold) {
        error(util::format("and {}", util::counted(units_[c] - kTold, "more unit", "more units")));
      }
    }
  }

 private:
  // A condition that cannot hold must not look like one that was kept.
  static void warn(const Condition& condition, Console& console) {
    const std::string_view metric = artifact::metric_name(*condition.metric);
    const bool is_spills = condition.metric == artifact::Metric::kSpills;
    console.warning(
        {ErrorKind::kFailed,
         util::format("--fail-on {} has nothing to compare: no unit tells its {} in both bundles",
                      condition.text, metric),
         {},
         is_spills ? "cubins do not tell spills, Loom only with its option report: use local_memory" : ""});
  }

  static constexpr uint64_t kTold = 20;

  const std::vector<Condition>& conditions_;
  std::vector<std::vector<std::string>> told_;  // parallel to conditions_
  std::vector<uint64_t> units_;                 // for how many each holds
  std::vector<bool> compared_;                  // whether a unit has what each compares
  bool is_in_both_ = false;                     // a unit
};

Result<std::vector<Condition>> parse_conditions(const std::vector<std::string>& texts) {
  std::vector<Condition> out;
  for (const std::string& text : texts) {
    KC_ASSIGN(Condition condition, report::parse_condition(text));
    out.push_back(std::move(condition));
  }
  return out;
}

// What differs between the bundles as a whole; empty for nothing.
std::string bundle_text(const Reader& before, const Reader& after) {
  std::vector<std::string> parts;
  const bundle::Info& a = before.info();
  const bundle::Info& b = after.info();
  if (a.name != b.name) parts.push_back(util::format("name {} -> {}", a.name, b.name));
  if (a.release != b.release) parts.push_back(util::format("release {} -> {}", a.release, b.release));
  if (a.partial != b.partial) parts.emplace_back(b.partial ? "now partial" : "no longer partial");
  if (a.subset != b.subset) parts.emplace_back(b.subset ? "now a subset" : "no longer a subset");
  return util::escape(util::join(parts, ", "));
}

// A line of what has changed; nothing of a unit that is the same.
void print_unit(const UnitDiff& diff, Console& console) {
  using Style = Console::Style;
  const std::string unit = util::escape(diff.record().unit());
  switch (diff.change) {
    case UnitChange::kAdded:
      console.result(console.styled(Style::kGreen, "+ " + unit));
      break;
    case UnitChange::kRemoved:
      console.result(console.styled(Style::kRed, "- " + unit));
      break;
    case UnitChange::kChanged: {
      std::string text = diff.text();
      if (console.verbosity() > 0) {
        const std::string compiler = report::compiler_text(*diff.before, *diff.after);
        if (!compiler.empty()) text += ", " + compiler;
      }
      console.result(util::format("{}  {}", console.styled(Style::kYellow, "~ " + unit), util::escape(text)));
      break;
    }
    case UnitChange::kSame:
      break;
  }
}

Result<int> diff(const DiffArguments& arguments, Console& console) {
  KC_ASSIGN(const std::vector<Condition> conditions, parse_conditions(arguments.fail_on));
  KC_ASSIGN(Reader before, Reader::open(arguments.before));
  KC_ASSIGN(Reader after, Reader::open(arguments.after));
  Reader* const bundles[] = {&before, &after};
  KC_TRY(report::check_patterns(arguments.units, bundles));

  const bool is_told = !console.is_json() && console.verbosity() >= 0;
  if (console.is_json()) console.json(report::bundles_json(before, after));
  if (const std::string text = bundle_text(before, after); is_told && !text.empty()) {
    console.result(util::format("{}  {}", console.styled(Console::Style::kYellow, "~ bundle"), text));
  }
  Failures failures(conditions);
  KC_ASSIGN(const report::DiffCounts counts,
            report::diff_bundles(before, after, arguments.units, [&](const UnitDiff& unit) {
              const std::vector<std::string> held = failures.check(unit);
              if (is_told) print_unit(unit, console);
              if (console.is_json() && unit.change != UnitChange::kSame) {
                console.json(report::diff_json(unit, held));
              }
              // Without a reader of stdout the exit code still tells whether a condition holds.
              return true;
            }));
  if (console.is_json()) {
    console.json({{"event", "summary"},
                  {"added", counts.added},
                  {"removed", counts.removed},
                  {"changed", counts.changed},
                  {"same", counts.same},
                  {"failed_on", failures.held()}});
  } else if (is_told) {
    console.result(util::format("kc: {} added, {} removed, {} changed, {} the same", counts.added,
                                counts.removed, counts.changed, counts.same));
  }
  failures.tell(console);
  return failures.held().empty() ? 0 : static_cast<int>(ErrorKind::kFailed);
}

}  // namespace

int command_diff(const Common&, const DiffArguments& arguments, Console& console) {
  const Result<int> result = diff(arguments, console);
  return result ? *result : console.fail(result.error());
}

}  // namespace kc::cli
