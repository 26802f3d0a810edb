// kc store ls and rm.
#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/files.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/store_choice.h"
#include "cli/stored_names.h"
#include "cli/table.h"
#include "cli/times.h"
#include "report/stored_json.h"
#include "store/listing.h"
#include "store/roots.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Digest;
using base::ErrorKind;
using base::Result;
using store::Checked;
using store::EntryHeader;
using store::Kind;
using store::Listed;
using store::Listing;

constexpr int kFailed = static_cast<int>(ErrorKind::kFailed);

// What is said of a file that is not what it should be. Counts what makes the exit code 1.
class Flaws {
 public:
  explicit Flaws(Console& console) : console_(console) {}

  void say(const Listed& listed, const store::Refusal& refusal) {
    const std::string what = store::stored_path(listed.kind, listed.key) + ": " + refusal.why;
    if (refusal.flaw == store::Flaw::kNewer) {
      ++newer_;
      console_.note(util::format("kc: note: {}: left alone", what));
    } else {
      ++damaged_;
      console_.warning({ErrorKind::kFailed, what});
    }
  }
  void say(const std::vector<std::string>& unread) {
    damaged_ += unread.size();
    for (const std::string& what : unread) console_.warning({ErrorKind::kEnvironment, what});
  }

  uint64_t damaged() const { return damaged_; }
  uint64_t newer() const { return newer_; }

 private:
  Console& console_;
  uint64_t damaged_ = 0, newer_ = 0;
};

// Bytes of a unit's name that count for the order: what each entry costs in memory has a bound.
constexpr size_t kSortedBytes = 256;

// What an entry is sorted by, and how to find it again.
struct Place {
  double number = 0;
  std::string name;
  Digest key;

  auto order() const { return std::tie(number, name, key); }
};

Place place_of(EntrySort sort, const Listed& listed, const EntryHeader& header) {
  Place place{.number = 0, .name = {}, .key = listed.key};
  switch (sort) {
    case EntrySort::kKernel:
      place.name = header.entry.kernel.substr(0, kSortedBytes);
      break;
    case EntrySort::kAge:  // what a collection would take first
      place.number = static_cast<double>(listed.used_s);
      break;
    case EntrySort::kSize:
      place.number = -static_cast<double>(listed.disk_bytes);
      break;
    case EntrySort::kSeconds:
      place.number = -header.entry.seconds;
      break;
  }
  return place;
}

std::string origin_text(const store::Origin& origin) {
  constexpr size_t kSignerDigits = 8;
  if (!origin.imported) return "compiled";
  if (origin.signer.empty()) return "imported, unsigned";
  return util::format("imported, {}", util::escape(origin.signer.substr(0, kSignerDigits)));
}

// The name without the target, which has a column of its own.
std::string name_without_target(const store::Entry& entry) {
  std::string name = entry.kernel;
  const std::string end = "@" + entry.target;
  if (name.size() > end.size() && name.ends_with(end)) name.resize(name.size() - end.size());
  return util::escape(name);
}

// On a narrow terminal the unit and its key stay longest.
Table make_table() {
  constexpr size_t kLeastName = 16;
  return Table({{.title = "UNIT"},
                {.title = "TARGET", .rank = 2},
                {.title = "KEY", .rank = 1},
                {.title = "SIZE", .is_right = true, .rank = 3},
                {.title = "COMPILED IN", .is_right = true, .rank = 6},
                {.title = "USED", .is_right = true, .rank = 5},
                {.title = "ORIGIN", .rank = 4}},
               kLeastName);
}

Table::Row row_of(const Listed& listed, const EntryHeader& header, int64_t now_s, bool whole_key) {
  constexpr size_t kKeyDigits = 12;
  const store::Entry& entry = header.entry;
  const std::string key = listed.key.hex();
  return {name_without_target(entry),
          util::escape(entry.target),
          whole_key ? key : key.substr(0, kKeyDigits),
          util::size_text(listed.disk_bytes),
          util::duration_text(entry.seconds),
          age_text(now_s - listed.used_s) + " ago",
          origin_text(entry.origin)};
}

// Two passes over the entries that are named: the first finds damage, measures and sorts, the second prints.
// What it remembers of each is bounded.
class Lister {
 public:
  Lister(const Listing& listing, const ListArguments& arguments, Console& console)
      : listing_(listing),
        arguments_(arguments),
        console_(console),
        flaws_(console),
        check_(arguments.names) {}

  Result<int> run() {
    look();
    KC_TRY(check_.finish());
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) { return a.order() < b.order(); });
    print();
    return flaws_.damaged() == 0 ? 0 : kFailed;
  }

 private:
  void look() {
    flaws_.say(listing_.entries([&](const Listed& listed, const Checked<EntryHeader>& header) {
      ++all_entries_;
      if (!header) {
        flaws_.say(listed, header.error());
      } else if (check_.is_named(header->entry.kernel)) {
        bytes_ += listed.disk_bytes;
        places_.push_back(place_of(arguments_.sort, listed, *header));
        if (!console_.is_json()) table_.measure(row(listed, *header));
      }
      return true;
    }));
    flaws_.say(listing_.records([&](const Listed& listed, const Checked<store::Record>& record) {
      if (!record) {
        flaws_.say(listed, record.error());
      } else if (check_.is_named(record->unit)) {
        ++records_;
      }
      return true;
    }));
  }

  void print() {
    if (!console_.is_json() && !places_.empty()) {
      table_.fit(console_.width());
      console_.result(console_.styled(Console::Style::kDim, table_.head()));
    }
    for (const Place& place : places_) {
      const auto seen = listing_.entry(place.key);
      if (!seen || !seen->second) continue;  // collected since
      const bool is_told = console_.is_json() ? console_.json(report::entry_json(seen->first, *seen->second))
                                              : console_.result(table_.line(row(seen->first, *seen->second)));
      if (!is_told) return;
    }
    if (console_.is_json()) {
      console_.json({{"event", "summary"},
                     {"entries", places_.size()},
                     {"bytes", bytes_},
                     {"records", records_},
                     {"damaged", flaws_.damaged()},
                     {"newer", flaws_.newer()}});
      return;
    }
    const std::string count =
        arguments_.names.empty()
            ? util::counted(places_.size(), "entry", "entries")
            : util::format("{} of {}", places_.size(), util::counted(all_entries_, "entry", "entries"));
    console_.result(util::format("kc: {}, {}, and {}", count, util::size_text(bytes_),
                                 util::counted(records_, "record")));
  }

  Table::Row row(const Listed& listed, const EntryHeader& header) const {
    return row_of(listed, header, now_s_, console_.verbosity() > 0);
  }

  const Listing& listing_;
  const ListArguments& arguments_;
  Console& console_;
  Flaws flaws_;
  PatternCheck check_;
  const int64_t now_s_ = base::wall_clock_ns() / store::kSecondNs;
  Table table_ = make_table();
  std::vector<Place> places_;
  uint64_t all_entries_ = 0, records_ = 0, bytes_ = 0;
};

// What is to be removed, and what must not be.
class Removal {
 public:
  Removal(const Listing& listing, const RemoveArguments& arguments, Console& console)
      : listing_(listing), arguments_(arguments), console_(console) {}

  Result<int> run(const std::string& folder) {
    KC_ASSIGN(names_, find_stored(listing_, arguments_.names));
    if (names_.damaged != 0) {
      console_.warning(
          {ErrorKind::kFailed,
           util::format("of {} nobody can tell the unit", util::counted(names_.damaged, "damaged file")),
           {},
           "`kc store verify` names them; they can be removed by their keys"});
    }
    KC_ASSIGN(const auto leading,
              store::records_leading_to(folder, {names_.entries.begin(), names_.entries.end()}));
    names_.records.insert(leading.begin(), leading.end());
    KC_ASSIGN(const bool may, check_pins(folder));
    if (!may) return kFailed;
    // Records first: one whose entry is gone is only a detour, but an entry without its records is found
    // again by whoever links it.
    for (const Digest& key : names_.records) KC_TRY(remove(Kind::kRecord, key));
    for (const Digest& key : names_.entries) KC_TRY(remove(Kind::kEntry, key));
    finish();
    return 0;
  }

 private:
  // False when something is pinned: nothing is removed then.
  Result<bool> check_pins(const std::string& folder) {
    if (arguments_.force) return true;
    KC_ASSIGN(const std::vector<store::Pin> pins, store::read_pins(folder));
    bool may = true;
    for (const store::Pin& pin : pins) {
      uint64_t pinned = 0;
      for (const Digest& key : names_.entries) pinned += pin.keys.entries.contains(key) ? 1 : 0;
      for (const Digest& key : names_.records) pinned += pin.keys.records.contains(key) ? 1 : 0;
      if (pinned == 0) continue;
      may = false;
      console_.error(
          {ErrorKind::kFailed,
           util::format("the pin {} keeps {} of them: nothing was removed", pin.name,
                        util::counted(pinned, "file")),
           {},
           util::format("`kc store unpin {}` gives them free, --force removes them all the same", pin.name)});
    }
    return may;
  }

  Result<void> remove(Kind kind, const Digest& key) {
    std::string unit;
    uint64_t bytes = 0;
    if (kind == Kind::kEntry) {
      if (const auto seen = listing_.entry(key)) {
        bytes = seen->first.disk_bytes;
        if (seen->second) unit = seen->second->entry.kernel;
      }
    } else if (const auto seen = listing_.record(key)) {
      bytes = seen->first.disk_bytes;
      if (seen->second) unit = seen->second->unit;
    }
    if (!arguments_.dry_run) {
      KC_ASSIGN(const bool was_there, listing_.remove(kind, key));
      if (!was_there) return {};
    }
    ++(kind == Kind::kEntry ? entries_ : records_);
    bytes_ += bytes;
    const char* const name = kind == Kind::kEntry ? "entry" : "record";
    if (console_.is_json()) {
      console_.json({{"event", "removed"},
                     {"kind", name},
                     {kind == Kind::kEntry ? "key" : "request_key", key.hex()},
                     {"unit", unit},
                     {"disk_bytes", bytes}});
    } else if (arguments_.dry_run || console_.verbosity() > 0) {
      console_.result(util::format("{:<6} {} {}", name, key.hex(), util::escape(unit)));
    }
    return {};
  }

  void finish() {
    if (console_.is_json()) {
      console_.json({{"event", "summary"},
                     {"dry_run", arguments_.dry_run},
                     {"entries_removed", entries_},
                     {"records_removed", records_},
                     {"bytes_removed", bytes_}});
      return;
    }
    console_.result(util::format("kc: {} {} and {} ({})", arguments_.dry_run ? "would remove" : "removed",
                                 util::counted(entries_, "entry", "entries"),
                                 util::counted(records_, "record"), util::size_text(bytes_)));
  }

  const Listing& listing_;
  const RemoveArguments& arguments_;
  Console& console_;
  StoredNames names_;
  uint64_t entries_ = 0, records_ = 0, bytes_ = 0;
};

}  // namespace

int command_store_ls(const Common& common, const ListArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments.store);
  if (!folder) return console.fail(folder.error());
  const auto listing = Listing::open(*folder);
  if (!listing) return console.fail(listing.error());
  const Result<int> code = Lister(*listing, arguments, console).run();
  return code ? *code : console.fail(code.error());
}

int command_store_rm(const Common& common, const RemoveArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments.store);
  if (!folder) return console.fail(folder.error());
  const auto access = arguments.dry_run ? store::Access::kRead : store::Access::kChange;
  const auto listing = Listing::open(*folder, access);
  if (!listing) return console.fail(listing.error());
  const Result<int> code = Removal(*listing, arguments, console).run(*folder);
  return code ? *code : console.fail(code.error());
}

}  // namespace kc::cli
