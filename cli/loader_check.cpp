// kc check: has every kernel of a bundle code for these devices? No GPU is asked.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/loader_commands.h"
#include "cli/loader_policy.h"
#include "cli/table.h"
#include "target/target.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;
using target::Target;

// What a configuration's best code is for a device, worst first.
enum class Cover : uint8_t { kNo, kDriverTooOld, kByRule, kExact };

struct Configuration {
  std::vector<Cover> covers;  // a device
};
struct Kernel {
  std::map<std::string, Configuration> configurations;
};
using Kernels = std::map<std::string, Kernel>;

// A kernel on a device: how many of its configurations are what.
struct Cell {
  size_t exact = 0, by_rule = 0, driver_too_old = 0;
  std::vector<std::string> missing;  // configurations without code that the driver takes

  size_t covered() const { return exact + by_rule; }
  bool is_covered() const { return missing.empty(); }
  const char* state() const {
    if (is_covered()) return by_rule == 0 ? "exact" : "by_rule";
    if (covered() != 0) return "partial";
    return driver_too_old == missing.size() ? "driver_too_old" : "no";
  }
  std::string text() const {
    if (covered() != 0 && !is_covered()) {
      return util::format("{} of {}", covered(), covered() + missing.size());
    }
    std::string out = state();
    std::ranges::replace(out, '_', ' ');
    return out;
  }
};

Cell cell_of(const Kernel& kernel, size_t device) {
  Cell cell;
  for (const auto& [name, configuration] : kernel.configurations) {
    switch (configuration.covers[device]) {
      case Cover::kExact:
        ++cell.exact;
        continue;
      case Cover::kByRule:
        ++cell.by_rule;
        continue;
      case Cover::kDriverTooOld:
        ++cell.driver_too_old;
        break;
      case Cover::kNo:
        break;
    }
    cell.missing.push_back(name);
  }
  return cell;
}

class Check {
 public:
  Check(const CheckArguments& arguments, Console& console) : arguments_(arguments), console_(console) {}

  Result<bool> run() {
    KC_TRY(read_devices());
    KC_ASSIGN(bundle_, open_bundle(arguments_.policy));
    KC_TRY(read_entries());
    return report();
  }

 private:
  Result<void> read_devices() {
    for (const std::string& name : arguments_.devices) {
      KC_ASSIGN(Target device, target::parse_target(name));
      if (std::ranges::find(devices_, device) == devices_.end()) devices_.push_back(std::move(device));
    }
    const auto is_nvidia = [](const Target& device) { return device.vendor == target::Vendor::kNvidia; };
    if (arguments_.driver && std::ranges::none_of(devices_, is_nvidia)) {
      return base::fail(ErrorKind::kInput,
                        "--driver is about NVIDIA's driver, and no device is one of NVIDIA's",
                        "name one with --device, such as sm_90");
    }
    return {};
  }

  Result<void> read_entries() {
    kcload::Error error;
    for (size_t i = 0; i < bundle_.entry_count(); ++i) {
      const kcload::Entry entry = bundle_.entry(i, error);
      if (error) return std::unexpected(error_of(error, arguments_.policy.bundle));
      Configuration& configuration = kernels_[entry.info().kernel].configurations[entry.info().configuration];
      configuration.covers.resize(devices_.size());
      for (size_t d = 0; d < devices_.size(); ++d) {
        const kc_fit fit = entry.fit(devices_[d].text, error);
        if (error) return std::unexpected(error_of(error, arguments_.policy.bundle));
        configuration.covers[d] = std::max(configuration.covers[d], cover_of(entry.info(), fit, devices_[d]));
      }
    }
    return {};
  }

  Cover cover_of(const kc_entry_info& entry, kc_fit fit, const Target& device) const {
    if (fit == KC_FIT_NONE) return Cover::kNo;
    if (device.vendor == target::Vendor::kNvidia && arguments_.driver &&
        entry.lowest_driver > *arguments_.driver) {
      return Cover::kDriverTooOld;
    }
    return fit == KC_FIT_EXACT ? Cover::kExact : Cover::kByRule;
  }

  bool report() {
    std::vector<std::vector<Cell>> cells;
    size_t uncovered = 0;
    for (const auto& [name, kernel] : kernels_) {
      std::vector<Cell>& row = cells.emplace_back();
      for (size_t d = 0; d < devices_.size(); ++d) row.push_back(cell_of(kernel, d));
      if (!std::ranges::all_of(row, &Cell::is_covered)) ++uncovered;
    }
    if (console_.is_json()) {
      print_json(cells, uncovered);
    } else if (console_.verbosity() >= 0) {
      print_tables(cells);
    }
    print_missing(cells);
    if (!console_.is_json() && console_.verbosity() >= 0) {
      console_.result(util::format("{}: {}, {} {}", util::escape(arguments_.policy.bundle),
                                   util::counted(kernels_.size(), "kernel"),
                                   uncovered == 0 ? "all" : util::format("{} not", uncovered), "covered"));
    }
    return uncovered == 0;
  }

  // As many devices beside each other as the terminal has room for, the others below.
  void print_tables(const std::vector<std::vector<Cell>>& cells) {
    constexpr size_t kLeastName = 16;
    constexpr size_t kGap = 2;
    size_t name = kLeastName;
    for (const auto& [kernel, unused] : kernels_) name = std::max(name, kernel.size());
    const size_t width = console_.width();
    if (width != 0) name = std::min(name, std::max(kLeastName, width / 3));
    for (size_t first = 0; first < devices_.size();) {
      std::vector<Table::Column> columns{{.title = "KERNEL"}};
      size_t used = name;
      size_t end = first;
      for (; end < devices_.size(); ++end) {
        size_t cell = devices_[end].text.size();
        for (const std::vector<Cell>& row : cells) cell = std::max(cell, row[end].text().size());
        if (width != 0 && end != first && used + kGap + cell > width) break;
        used += kGap + cell;
        columns.push_back({.title = util::escape(devices_[end].text)});
      }
      Table table(std::move(columns), kLeastName);
      std::vector<Table::Row> rows;
      size_t k = 0;
      for (const auto& [kernel, unused] : kernels_) {
        Table::Row& row = rows.emplace_back(Table::Row{util::escape(kernel)});
        for (size_t d = first; d < end; ++d) row.push_back(cells[k][d].text());
        table.measure(row);
        ++k;
      }
      table.fit(width);
      console_.result(console_.styled(Console::Style::kDim, table.head()));
      for (const Table::Row& row : rows) console_.result(table.line(row));
      first = end;
    }
  }

  void print_json(const std::vector<std::vector<Cell>>& cells, size_t uncovered) {
    size_t k = 0;
    for (const auto& [name, kernel] : kernels_) {
      for (size_t d = 0; d < devices_.size(); ++d) {
        const Cell& cell = cells[k][d];
        console_.json({{"event", "cover"},
                       {"kernel", name},
                       {"device", devices_[d].text},
                       {"state", cell.state()},
                       {"configurations", kernel.configurations.size()},
                       {"exact", cell.exact},
                       {"by_rule", cell.by_rule},
                       {"driver_too_old", cell.driver_too_old},
                       {"missing", cell.missing}});
      }
      ++k;
    }
    util::Json devices = util::Json::array();
    for (const Target& device : devices_) devices.push_back(device.text);
    console_.json({{"event", "summary"},
                   {"path", arguments_.policy.bundle},
                   {"devices", devices},
                   {"driver", arguments_.driver ? util::Json(*arguments_.driver) : util::Json()},
                   {"kernels", kernels_.size()},
                   {"uncovered", uncovered},
                   {"ok", uncovered == 0}});
  }

  // Why, and what to do: once a kernel and device, of its first configuration.
  void print_missing(const std::vector<std::vector<Cell>>& cells) {
    constexpr size_t kMost = 20;  // more than a screen of them is the table's task
    size_t told = 0, more = 0;
    size_t k = 0;
    for (const auto& [name, kernel] : kernels_) {
      for (size_t d = 0; d < devices_.size(); ++d) {
        const Cell& cell = cells[k][d];
        if (cell.is_covered()) continue;
        if (told == kMost && console_.verbosity() <= 0) {
          ++more;
        } else {
          console_.error(why(name, kernel, cell, d));
          ++told;
        }
      }
      ++k;
    }
    if (more != 0) {
      console_.error({ErrorKind::kFailed,
                      util::format("{} more without code, see the table", util::counted(more, "kernel")),
                      {},
                      "-v tells why of each"});
    }
  }

  Error why(const std::string& name, const Kernel& kernel, const Cell& cell, size_t d) {
    const std::string& configuration = cell.missing.front();
    const std::string& device = devices_[d].text;
    Error out;
    kcload::Error error;
    if (kernel.configurations.at(configuration).covers[d] == Cover::kDriverTooOld) {
      const kcload::Entry entry = bundle_.find(name, configuration, device, error);
      const uint32_t needed = error ? 0 : entry.info().lowest_driver;
      out = {ErrorKind::kFailed,
             util::format("driver {} is too old for {} on {}: its code needs {} or newer", *arguments_.driver,
                          name_of(name, configuration), device, needed),
             {arguments_.policy.bundle},
             util::format("install driver {} or newer there, or compile with an older toolkit", needed)};
    } else {
      bundle_.find(name, configuration, device, error);
      out = error_of(error, arguments_.policy.bundle);
    }
    if (cell.missing.size() > 1) {
      const std::string others = util::format("the same for {} of this kernel",
                                              util::counted(cell.missing.size() - 1, "other configuration"));
      out.hint += out.hint.empty() ? others : "\n  " + others;
    }
    return out;
  }

  static std::string name_of(const std::string& kernel, const std::string& configuration) {
    return configuration.empty() ? kernel : kernel + ":" + configuration;
  }

  const CheckArguments& arguments_;
  Console& console_;
  std::vector<Target> devices_;
  kcload::Bundle bundle_;
  Kernels kernels_;
};

}  // namespace

int check_bundle(const CheckArguments& arguments, Console& console) {
  const Result<bool> is_covered = Check(arguments, console).run();
  if (!is_covered) return console.fail(is_covered.error());
  return *is_covered ? 0 : static_cast<int>(ErrorKind::kFailed);
}

}  // namespace kc::cli
