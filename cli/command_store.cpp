// kc store stats, path, verify, and kc gc.
#include <ctime>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/store_choice.h"
#include "store/gc.h"
#include "util/text.h"

namespace kc::cli {
namespace {

// A time of last use as people read it, in UTC.
std::string time_text(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  if (gmtime_r(&time, &parts) == nullptr) return std::to_string(seconds);
  return util::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1,
                      parts.tm_mday, parts.tm_hour, parts.tm_min);
}

util::Json stats_json(const std::string& folder, const store::Stats& stats) {
  util::Json targets = util::Json::object();
  for (const auto& [name, count] : stats.by_backend_target) targets[name] = count;
  return {{"event", "store"},
          {"path", folder},
          {"entries", stats.entries},
          {"records", stats.records},
          {"bytes", stats.bytes},
          {"by_backend_target", std::move(targets)},
          {"states", stats.states},
          {"temporaries", stats.temporaries},
          {"quarantined", stats.quarantined},
          {"hits", stats.hits},
          {"misses", stats.misses},
          {"puts", stats.puts},
          {"soft_errors", stats.soft_errors},
          {"compile_seconds", stats.compile_seconds},
          {"oldest", stats.oldest_s},
          {"newest", stats.newest_s}};
}

// Behind a count of entries; stores of compilers without a front half have none.
std::string and_records(uint64_t count) {
  return count == 0 ? "" : " and " + util::counted(count, "record");
}

}  // namespace

int command_store_path(const Common& common, const StoreArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments);
  if (!folder) return console.fail(folder.error());
  if (console.is_json()) {
    console.json({{"event", "store"}, {"path", *folder}});
  } else {
    console.result(util::escape(*folder));
  }
  return 0;
}

int command_store_stats(const Common& common, const StoreArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments);
  if (!folder) return console.fail(folder.error());
  const auto stats = store::stats(*folder);
  if (!stats) return console.fail(stats.error());
  for (const std::string& what : stats->unreadable) console.warning({base::ErrorKind::kFailed, what});
  if (console.is_json()) {
    console.json(stats_json(*folder, *stats));
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
  console.result(
      util::format("look-ups     {} hits, {} misses, {} puts", stats->hits, stats->misses, stats->puts));
  console.result(util::format("faults       {} survived, {} damaged files moved aside", stats->soft_errors,
                              stats->quarantined));
  console.result(util::format("other files  {} states, {} temporary", stats->states, stats->temporaries));
  return 0;
}

int command_store_verify(const Common& common, const StoreArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments);
  if (!folder) return console.fail(folder.error());
  const auto report = store::verify(*folder);
  if (!report) return console.fail(report.error());
  for (const std::string& damaged : report->damaged) {
    console.error({base::ErrorKind::kFailed, damaged, {}, {}});
  }
  for (const std::string& newer : report->newer) {
    console.warning({base::ErrorKind::kFailed, newer + " is from a newer kc: left alone", {}, {}});
  }
  if (console.is_json()) {
    console.json({{"event", "summary"},
                  {"entries", report->entries},
                  {"records", report->records},
                  {"damaged", report->damaged.size()},
                  {"newer", report->newer.size()}});
  } else {
    console.result(util::format("kc: {}{} checked, {} damaged",
                                util::counted(report->entries, "entry", "entries"),
                                and_records(report->records), report->damaged.size()));
  }
  return report->damaged.empty() ? 0 : static_cast<int>(base::ErrorKind::kFailed);
}

int command_gc(const Common& common, const GcArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments.store);
  if (!folder) return console.fail(folder.error());
  store::GcOptions options;
  options.max_size = arguments.max_size;
  if (!arguments.max_size && !arguments.max_age)
    options.max_size = choose_store(common, arguments.store).limit_bytes;
  if (options.max_size == uint64_t{0} && !arguments.max_size)
    options.max_size.reset();  // a limit of 0 is none
  if (arguments.max_age)
    options.max_age = std::chrono::duration_cast<std::chrono::seconds>(*arguments.max_age);
  options.dry_run = arguments.dry_run;
  const auto report = store::collect(*folder, options);
  if (!report) return console.fail(report.error());
  if (!report->trouble.empty()) console.warning({base::ErrorKind::kEnvironment, report->trouble});
  if (report->busy) {
    console.note("another collection is at work; nothing was done");
    return 0;
  }
  if (console.is_json()) {
    console.json({{"event", "summary"},
                  {"dry_run", arguments.dry_run},
                  {"entries_before", report->entries_before},
                  {"records_before", report->records_before},
                  {"bytes_before", report->bytes_before},
                  {"entries_removed", report->entries_removed},
                  {"records_removed", report->records_removed},
                  {"bytes_removed", report->bytes_removed},
                  {"temporaries_removed", report->temporaries_removed}});
    return 0;
  }
  if (arguments.dry_run || console.verbosity() > 0) {
    for (const std::string& name : report->removed) console.result(name);
  }
  std::string what = util::format("{} of {}", report->entries_removed,
                                  util::counted(report->entries_before, "entry", "entries"));
  if (report->records_before != 0) {
    what += util::format(" and {} of {}", report->records_removed,
                         util::counted(report->records_before, "record"));
  }
  console.result(util::format("kc: {} {} ({} of {}) and {}", arguments.dry_run ? "would remove" : "removed",
                              what, util::size_text(report->bytes_removed),
                              util::size_text(report->bytes_before),
                              util::counted(report->temporaries_removed, "temporary file")));
  return 0;
}

}  // namespace kc::cli
