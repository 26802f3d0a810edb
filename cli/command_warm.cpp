// kc warm: fills the store, by compiling or from a bundle.
#include <algorithm>
#include <map>
#include <utility>

#include "base/files.h"
#include "build/warm_from.h"
#include "cli/build_options.h"
#include "cli/build_run.h"
#include "cli/build_text.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/key_choice.h"
#include "cli/store_choice.h"
#include "report/json_lines.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using build::UnitState;
using build::Warmth;

// More lines than this about units of one reason tell nobody anything; -v names all.
constexpr size_t kMostNames = 8;

std::string_view state_name(Warmth state) {
  switch (state) {
    case Warmth::kStored:
      return "stored";
    case Warmth::kThere:
      return "there";
    case Warmth::kOther:
      return "other";
    case Warmth::kNotStored:
      return "not_stored";
  }
  return "not_stored";
}

std::string_view state_name(UnitState state) {
  switch (state) {
    case UnitState::kHit:
      return "hit";
    case UnitState::kSkipped:
      return "skipped";
    case UnitState::kFailed:
      return "failed";
    default:
      return "miss";
  }
}

struct Counts {
  uint64_t hits = 0, misses = 0, skipped = 0, failed = 0;
};

Counts count(const std::vector<build::ExpectedUnit>& units) {
  Counts out;
  for (const build::ExpectedUnit& unit : units) {
    ++(unit.state == UnitState::kHit       ? out.hits
       : unit.state == UnitState::kSkipped ? out.skipped
       : unit.state == UnitState::kFailed  ? out.failed
                                           : out.misses);
  }
  return out;
}

void tell_json(const std::string& path, const build::Warmed& warmed, Console& console) {
  for (const build::WarmedUnit& unit : warmed.units) {
    console.json({{"event", "entry"},
                  {"unit", unit.unit},
                  {"key", unit.key.hex()},
                  {"state", state_name(unit.state)}});
  }
  util::Json summary{{"event", "summary"},
                     {"bundle", path},
                     {"signer", warmed.signer.empty() ? util::Json(nullptr) : util::Json(warmed.signer)},
                     {"entries", warmed.units.size()},
                     {"stored", warmed.stored},
                     {"there", warmed.there},
                     {"other", warmed.other},
                     {"not_stored", warmed.not_stored}};
  if (warmed.expected) {
    for (const build::ExpectedUnit& unit : *warmed.expected) {
      util::Json event{{"event", "unit"},
                       {"unit", unit.unit},
                       {"kernel", unit.kernel},
                       {"target", unit.target},
                       {"request_key", report::digest_or_null(unit.request_key)},
                       {"key", report::digest_or_null(unit.key)},
                       {"state", state_name(unit.state)}};
      if (!unit.reason.empty()) event["reason"] = unit.reason;
      console.json(event);
    }
    const Counts counts = count(*warmed.expected);
    summary["units"] = warmed.expected->size();
    summary["hits"] = counts.hits;
    summary["misses"] = counts.misses;
    summary["skipped"] = counts.skipped;
    summary["failed"] = counts.failed;
  }
  console.json(summary);
}

// Why units will not be hits: a line a reason, the names behind it.
void tell_misses(const std::vector<build::ExpectedUnit>& units, Console& console) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  std::map<std::string_view, size_t> at;
  for (const build::ExpectedUnit& unit : units) {
    if (unit.reason.empty()) continue;
    const auto [found, is_new] = at.try_emplace(unit.reason, reasons.size());
    if (is_new) reasons.push_back({unit.reason, {}});
    reasons[found->second].second.push_back(unit.unit);
  }
  for (const auto& [reason, names] : reasons) {
    const size_t most = console.verbosity() > 0 ? names.size() : kMostNames;
    console.result(util::format("  {} will not: {}: {}", util::counted(names.size(), "unit"),
                                util::escape(reason), util::escape(util::listed(names, most))));
  }
}

void tell_text(const std::string& path, const build::Warmed& warmed, Console& console) {
  if (console.verbosity() < 0) return;
  std::string line =
      util::format("kc: {}, {}: {} stored, {} there before", util::escape(path),
                   warmed.signer.empty() ? "signed by nobody who is trusted" : "signed by " + warmed.signer,
                   util::counted(warmed.stored, "unit"), warmed.there);
  if (warmed.other != 0) line += util::format(", {} with other code", warmed.other);
  if (warmed.not_stored != 0) line += util::format(", {} not stored", warmed.not_stored);
  console.result(line);
  if (!warmed.expected) return;
  const Counts counts = count(*warmed.expected);
  line =
      util::format("kc: {} of {} will be hits", counts.hits, util::counted(warmed.expected->size(), "unit"));
  if (counts.skipped != 0) line += util::format(", {} skipped", counts.skipped);
  console.result(line);
  tell_misses(*warmed.expected, console);
}

int from_bundle(const Common& common, const BuildArguments& arguments, build::Options& options,
                Console& console) {
  if (const auto folder = store_folder(common, arguments.store); !folder) return console.fail(folder.error());
  auto trust = choose_trust(common, arguments.keys);
  if (!trust) return console.fail(trust.error());
  options.trust = std::move(*trust);
  // A folder of a bundle alone is as good a place to warm a store from.
  const bool plans = arguments.names_manifest || base::stat_tuple(arguments.manifest).has_value();
  if (!plans && options.narrowed()) {
    return console.fail({base::ErrorKind::kInput,
                         "units are named, and there is no manifest to find them in",
                         {},
                         "name it with -f"});
  }
  BuildText notes(console, {.results = false});
  const build::Warmed warmed = build::warm_from(options, *arguments.from, plans, notes);
  if (warmed.units.empty() && warmed.code != 0) return warmed.code;
  if (console.is_json()) {
    tell_json(*arguments.from, warmed, console);
  } else {
    tell_text(*arguments.from, warmed, console);
  }
  return warmed.code;
}

}  // namespace

int command_warm(const Common& common, const BuildArguments& arguments, Console& console) {
  auto options = build_options(common, arguments);
  if (!options) return console.fail(options.error());
  if (options->store.mode == store::Mode::kOff || options->store.mode == store::Mode::kReadOnly) {
    return console.fail({base::ErrorKind::kInput,
                         "the store's mode lets nothing be put into it, so there is nothing to warm",
                         {},
                         "--store-mode rw, here or in KC_STORE_MODE"});
  }
  options->warm = true;
  if (arguments.from) return from_bundle(common, arguments, *options, console);
  if (!arguments.keys.keys.empty() || arguments.keys.folder || arguments.keys.trust_unsigned) {
    return console.fail({base::ErrorKind::kInput, "keys are for what --from takes from a bundle"});
  }
  BuildText::What what;
  what.is_dry_run = arguments.dry_run;
  what.is_warm = true;
  what.list_units = arguments.dry_run || !arguments.units.empty();
  return run_build(*options, console, what);
}

}  // namespace kc::cli
