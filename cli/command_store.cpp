// kc store path, verify.
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/store_choice.h"
#include "store/gc.h"
#include "util/text.h"

namespace kc::cli {
namespace {

// Stores of compilers without a front half have no records, and most no pins.
std::string checked_text(const store::VerifyReport& report) {
  std::vector<std::string> parts{util::counted(report.entries, "entry", "entries")};
  if (report.records != 0) parts.push_back(util::counted(report.records, "record"));
  if (report.pins != 0) parts.push_back(util::counted(report.pins, "pin"));
  return util::listed(parts);
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

int command_store_verify(const Common& common, const StoreVerifyArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments.store);
  if (!folder) return console.fail(folder.error());
  const auto report = store::verify(*folder, arguments.repair);
  if (!report) return console.fail(report.error());
  for (const std::string& damaged : report->damaged) {
    console.error({base::ErrorKind::kFailed, damaged, {}, {}});
  }
  for (const std::string& newer : report->newer) {
    console.warning({base::ErrorKind::kFailed, newer + " is from a newer kc: left alone", {}, {}});
  }
  if (!report->trouble.empty()) console.warning({base::ErrorKind::kEnvironment, report->trouble});
  const size_t damaged = report->damaged.size();
  if (console.is_json()) {
    console.json({{"event", "summary"},
                  {"entries", report->entries},
                  {"records", report->records},
                  {"pins", report->pins},
                  {"damaged", damaged},
                  {"repaired", report->repaired},
                  {"newer", report->newer.size()}});
  } else {
    std::string line = util::format("kc: {} checked, {} damaged", checked_text(*report), damaged);
    if (arguments.repair) line += util::format(", {} moved aside", report->repaired);
    console.result(line);
  }
  return report->repaired == damaged ? 0 : static_cast<int>(base::ErrorKind::kFailed);
}

}  // namespace kc::cli
