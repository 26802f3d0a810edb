// kc store stats.
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/store_choice.h"
#include "cli/times.h"
#include "store/stats.h"
#include "util/text.h"

namespace kc::cli {
namespace {

double saved_seconds(const store::Stats& stats) {
  return static_cast<double>(stats.counters.saved_ms) / 1000;
}

util::Json stats_json(const std::string& folder, const store::Stats& stats,
                      const std::vector<store::TierStats>& tiers) {
  util::Json targets = util::Json::object();
  for (const auto& [name, count] : stats.by_backend_target) targets[name] = count;
  util::Json under = util::Json::array();
  for (const store::TierStats& tier : tiers) {
    under.push_back({{"path", tier.directory},
                     {"entries", tier.entries},
                     {"records", tier.records},
                     {"bytes", tier.bytes}});
  }
  return {{"event", "store"},
          {"path", folder},
          {"entries", stats.entries},
          {"records", stats.records},
          {"bytes", stats.bytes},
          {"by_backend_target", std::move(targets)},
          {"states", stats.states},
          {"temporaries", stats.temporaries},
          {"quarantined", stats.quarantined},
          {"pins", stats.pins},
          {"hits", stats.counters.hits},
          {"misses", stats.counters.misses},
          {"puts", stats.counters.puts},
          {"soft_errors", stats.counters.soft_errors},
          {"saved_seconds", saved_seconds(stats)},
          {"compile_seconds", stats.compile_seconds},
          {"oldest", stats.oldest_s},
          {"newest", stats.newest_s},
          {"locks", stats.has_locks ? util::Json(*stats.has_locks) : util::Json()},
          {"read_only", std::move(under)}};
}

}  // namespace

int command_store_stats(const Common& common, const StoreArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments);
  if (!folder) return console.fail(folder.error());
  const auto stats = store::stats(*folder);
  if (!stats) return console.fail(stats.error());
  const auto tiers = store::tier_stats(choose_store(common, arguments).read_only_directories);
  for (const std::string& what : stats->unreadable) console.warning({base::ErrorKind::kFailed, what});
  for (const store::TierStats& tier : tiers) {
    if (!tier.trouble.empty()) console.warning({base::ErrorKind::kFailed, tier.trouble});
  }
  if (console.is_json()) {
    console.json(stats_json(*folder, *stats, tiers));
    return 0;
  }
  console.result(util::format("store        {}", util::escape(*folder)));
  console.result(util::format("entries      {}", stats->entries));
  for (const auto& [name, count] : stats->by_backend_target)
    console.result(util::format("  {:<20} {}", name, count));
  console.result(util::format("records      {}", stats->records));
  console.result(util::format("size         {}", util::size_text(stats->bytes)));
  if (stats->entries != 0) {
    console.result(
        util::format("last used    {} to {}", time_text(stats->oldest_s), time_text(stats->newest_s)));
    console.result(
        util::format("compile time {} in these entries", util::duration_text(stats->compile_seconds)));
  }
  console.result(util::format("look-ups     {} hits, {} misses, {} puts", stats->counters.hits,
                              stats->counters.misses, stats->counters.puts));
  console.result(
      util::format("saved        {} of compiling, by the hits", util::duration_text(saved_seconds(*stats))));
  console.result(util::format("faults       {} survived, {} damaged files moved aside",
                              stats->counters.soft_errors, stats->quarantined));
  console.result(util::format("other files  {} states, {}, {} temporary", stats->states,
                              util::counted(stats->pins, "pin"), stats->temporaries));
  if (stats->has_locks == false) {
    console.result("locks        none on this file system: two builds at once may compile one unit twice");
  }
  for (const store::TierStats& tier : tiers) {
    console.result(util::format("read-only    {}: {}, {}, {}", util::escape(tier.directory),
                                util::counted(tier.entries, "entry", "entries"),
                                util::counted(tier.records, "record"), util::size_text(tier.bytes)));
  }
  return 0;
}

}  // namespace kc::cli
