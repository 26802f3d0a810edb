// kc store pin, unpin, pins.
#include <string>
#include <vector>

#include "base/files.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/needed_keys.h"
#include "cli/store_choice.h"
#include "cli/table.h"
#include "store/layout.h"
#include "store/roots.h"
#include "util/text.h"
#include "util/time.h"

namespace kc::cli {
namespace {

using base::ErrorKind;

util::Json pin_json(const store::Pin& pin, const store::Holding& held) {
  return {{"event", "pin"},
          {"name", pin.name},
          {"source", pin.source},
          {"time", pin.time_s},
          {"entries", pin.keys.entries.size()},
          {"records", pin.keys.records.size()},
          {"bytes", held.bytes},
          {"missing", held.missing}};
}

Table make_table() {
  constexpr size_t kLeastName = 16;
  return Table({{.title = "NAME"},
                {.title = "ENTRIES", .is_right = true, .rank = 4},
                {.title = "RECORDS", .is_right = true, .rank = 5},
                {.title = "HELD", .is_right = true, .rank = 1},
                {.title = "MISSING", .is_right = true, .rank = 2},
                {.title = "FROM", .rank = 3}},
               kLeastName);
}

Table::Row row_of(const store::Pin& pin, const store::Holding& held) {
  return {pin.name,
          std::to_string(pin.keys.entries.size()),
          std::to_string(pin.keys.records.size()),
          util::size_text(held.bytes),
          std::to_string(held.missing),
          util::escape(pin.source)};
}

std::string made_text(const store::Pin& pin, const store::Holding& held) {
  std::string keys = util::counted(pin.keys.entries.size(), "entry", "entries");
  if (!pin.keys.records.empty()) keys += " and " + util::counted(pin.keys.records.size(), "record");
  std::string text =
      util::format("kc: pinned {} as {}, {} in the store", keys, pin.name, util::size_text(held.bytes));
  if (held.missing != 0) text += util::format(", {} not there yet", held.missing);
  return text;
}

}  // namespace

int command_store_pin(const Common& common, const PinArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments.store);
  if (!folder) return console.fail(folder.error());
  // Before the keys are computed, which may take a while.
  if (const auto checked = store::check_pin_name(arguments.name); !checked)
    return console.fail(checked.error());
  const auto needed = needed_keys(common, arguments.store, arguments.file, arguments.targets, console);
  if (!needed) return needed.error();
  const store::Pin pin{arguments.name, arguments.file, base::wall_clock_ns() / store::kSecondNs,
                       needed->keys};
  if (const auto written = store::write_pin(*folder, pin); !written) return console.fail(written.error());
  const auto held = store::holding(*folder, pin.keys);
  if (!held) return console.fail(held.error());
  if (console.is_json()) {
    console.json(pin_json(pin, *held));
  } else {
    console.result(made_text(pin, *held));
  }
  return 0;
}

int command_store_unpin(const Common& common, const PinArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments.store);
  if (!folder) return console.fail(folder.error());
  const auto removed = store::remove_pin(*folder, arguments.name);
  if (!removed) return console.fail(removed.error());
  if (!*removed) {
    const auto names = store::pin_names(*folder);
    if (!names) return console.fail(names.error());
    std::string hint = util::did_you_mean(arguments.name, *names);
    if (hint.empty()) hint = names->empty() ? "nothing is pinned" : "pinned are " + util::listed(*names);
    return console.fail(
        {ErrorKind::kInput, util::format("no pin is named \"{}\"", arguments.name), {}, std::move(hint)});
  }
  if (console.is_json()) {
    console.json({{"event", "unpinned"}, {"name", arguments.name}});
  } else {
    console.result(util::format("kc: {} is pinned no more", arguments.name));
  }
  return 0;
}

int command_store_pins(const Common& common, const StoreArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments);
  if (!folder) return console.fail(folder.error());
  const auto pins = store::read_pins(*folder);
  if (!pins) return console.fail(pins.error());
  std::vector<store::Holding> held;
  for (const store::Pin& pin : *pins) {
    auto holding = store::holding(*folder, pin.keys);
    if (!holding) return console.fail(holding.error());
    held.push_back(*holding);
  }
  if (console.is_json()) {
    for (size_t i = 0; i < held.size(); ++i) console.json(pin_json((*pins)[i], held[i]));
    return 0;
  }
  if (pins->empty()) {
    console.note("nothing is pinned");
    return 0;
  }
  Table table = make_table();
  for (size_t i = 0; i < held.size(); ++i) table.measure(row_of((*pins)[i], held[i]));
  table.fit(console.width());
  console.result(console.styled(Console::Style::kDim, table.head()));
  for (size_t i = 0; i < held.size(); ++i) console.result(table.line(row_of((*pins)[i], held[i])));
  return 0;
}

}  // namespace kc::cli
