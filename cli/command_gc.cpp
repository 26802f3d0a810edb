// kc gc.
#include <chrono>
#include <string>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/needed_keys.h"
#include "cli/store_choice.h"
#include "store/gc.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::ErrorKind;

// The limits, without what is to be kept.
store::GcOptions gc_options(const Common& common, const GcArguments& arguments, const Console& console) {
  store::GcOptions options;
  options.only_keep = arguments.only_keep;
  options.dry_run = arguments.dry_run;
  options.list_removed = console.verbosity() > 0;
  options.max_size = arguments.max_size;
  if (!arguments.max_size && !arguments.max_age && !arguments.only_keep) {
    const uint64_t limit = choose_store(common, arguments.store).limit_bytes;
    if (limit != 0) options.max_size = limit;  // 0 is none
  }
  if (arguments.max_age)
    options.max_age = std::chrono::duration_cast<std::chrono::seconds>(*arguments.max_age);
  return options;
}

// Why --only-keep would empty the store; nothing when it would not.
base::Result<void> check_only_keep(const std::string& folder, const GcArguments& arguments) {
  if (!arguments.only_keep || !arguments.keep.empty()) return {};
  KC_ASSIGN(const std::vector<std::string> pins, store::pin_names(folder));
  if (!pins.empty()) return {};
  return base::fail(ErrorKind::kInput, "--only-keep with nothing to keep would empty the store",
                    "say what with --keep, or use --max-size 0");
}

bool is_over_limit(const store::GcOptions& options, const store::GcReport& report) {
  return options.max_size && report.bytes_kept > *options.max_size;
}

uint64_t bytes_after(const store::GcReport& report) {
  return report.bytes_before - report.bytes_removed;
}

void print_json(const store::GcOptions& options, const store::GcReport& report, Console& console) {
  for (const std::string& path : report.removed) console.json({{"event", "removed"}, {"path", path}});
  console.json({{"event", "summary"},
                {"dry_run", options.dry_run},
                {"busy", report.busy},
                {"entries_before", report.entries_before},
                {"records_before", report.records_before},
                {"bytes_before", report.bytes_before},
                {"entries_removed", report.entries_removed},
                {"records_removed", report.records_removed},
                {"bytes_removed", report.bytes_removed},
                {"bytes_after", bytes_after(report)},
                {"entries_kept", report.entries_kept},
                {"records_kept", report.records_kept},
                {"bytes_kept", report.bytes_kept},
                {"over_limit", is_over_limit(options, report)},
                {"temporaries_removed", report.temporaries_removed},
                {"states_removed", report.states_removed}});
}

void print_text(const store::GcOptions& options, const store::GcReport& report, Console& console) {
  for (const std::string& path : report.removed) console.result(path);
  std::string what = util::format("{} of {}", report.entries_removed,
                                  util::counted(report.entries_before, "entry", "entries"));
  if (report.records_before != 0) {
    what +=
        util::format(" and {} of {}", report.records_removed, util::counted(report.records_before, "record"));
  }
  what += util::format(" ({} of {}) and {}", util::size_text(report.bytes_removed),
                       util::size_text(report.bytes_before),
                       util::counted(report.temporaries_removed, "temporary file"));
  if (report.states_removed != 0) what += " and " + util::counted(report.states_removed, "state");
  std::string left = util::size_text(bytes_after(report)) + " left";
  if (report.entries_kept + report.records_kept != 0)
    left += util::format(", {} of them kept", util::size_text(report.bytes_kept));
  console.result(util::format("kc: {} {}; {}", options.dry_run ? "would remove" : "removed", what, left));
}

}  // namespace

int command_gc(const Common& common, const GcArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments.store);
  if (!folder) return console.fail(folder.error());
  if (const auto checked = check_only_keep(*folder, arguments); !checked)
    return console.fail(checked.error());
  store::GcOptions options = gc_options(common, arguments, console);
  store::KeySet keep;
  for (const std::string& file : arguments.keep) {
    const auto needed = needed_keys(common, arguments.store, file, {}, console);
    if (!needed) return needed.error();
    keep.add(needed->keys);
  }
  options.keep = &keep;
  const auto report = store::collect(*folder, options);
  if (!report) return console.fail(report.error());
  if (!report->trouble.empty()) console.warning({ErrorKind::kEnvironment, report->trouble});
  if (is_over_limit(options, *report)) {
    console.warning({ErrorKind::kFailed,
                     util::format("what is kept takes {}, which is more than the limit of {}",
                                  util::size_text(report->bytes_kept), util::size_text(*options.max_size)),
                     {},
                     arguments.keep.empty() ? "`kc store pins` lists what is pinned" : ""});
  }
  if (report->busy) console.note("another collection is at work; nothing was done");
  if (console.is_json()) {
    print_json(options, *report, console);
  } else if (!report->busy) {
    print_text(options, *report, console);
  }
  return 0;
}

}  // namespace kc::cli
