// kc load: loads all that fits on the GPUs of this machine, and says what became of each kernel.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/loader_commands.h"
#include "cli/loader_devices.h"
#include "cli/loader_policy.h"
#include "cli/table.h"
#include "target/target.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;
using kcload::Device;

// One configuration of a kernel, whatever its targets.
struct Configuration {
  std::string kernel;
  std::string configuration;

  std::string name() const { return configuration.empty() ? kernel : kernel + ":" + configuration; }
};

// The code that a kernel has, by maker.
struct Makers {
  bool nvidia = false, amd = false;

  bool has(kc_api api) const { return api == KC_CUDA ? nvidia : amd; }
};

struct Counts {
  size_t loaded = 0, refused = 0, without_code = 0;
};

// What became of a kernel on one device.
struct Outcome {
  size_t loaded = 0;
  size_t refused = 0;
  std::optional<Error> no_code;  // of the first configuration without code
};

class Load {
 public:
  Load(const LoadArguments& arguments, Console& console) : arguments_(arguments), console_(console) {}

  /// Whether all is as it should be.
  Result<bool> run() {
    KC_ASSIGN(bundle_, open_bundle(arguments_.policy));
    KC_TRY(read_entries());
    KC_ASSIGN(const std::vector<Device> devices, find_devices(arguments_.devices, console_));
    for (const Device& device : devices) load_on(device);
    if (all_.loaded == 0 && !configurations_.empty() && is_good_) {
      fault({ErrorKind::kFailed,
             "nothing of it was loaded: it has no code for the maker of any of these devices",
             {arguments_.policy.bundle},
             "`check --device ARCH` tells what it covers"});
    }
    if (console_.is_json()) {
      console_.json({{"event", "summary"},
                     {"path", arguments_.policy.bundle},
                     {"devices", devices.size()},
                     {"loaded", all_.loaded},
                     {"refused", all_.refused},
                     {"no_code", all_.without_code},
                     {"ok", is_good_}});
    }
    return is_good_;
  }

 private:
  Result<void> read_entries() {
    kcload::Error error;
    for (size_t i = 0; i < bundle_.entry_count(); ++i) {
      const kcload::Entry entry = bundle_.entry(i, error);
      if (error) return std::unexpected(error_of(error, arguments_.policy.bundle));
      const kc_entry_info& info = entry.info();
      if (configurations_.empty() || configurations_.back().kernel != info.kernel ||
          configurations_.back().configuration != info.configuration) {
        configurations_.push_back({info.kernel, info.configuration});
      }
      Makers& makers = makers_[info.kernel];
      const auto found = target::parse_target(info.found_target);
      if (!found) return std::unexpected(found.error());
      (found->vendor == target::Vendor::kNvidia ? makers.nvidia : makers.amd) = true;
    }
    return {};
  }

  // Everything stays loaded until all has been tried: as in a program that uses it.
  void load_on(const Device& device) {
    tell_device(device);
    std::map<std::string, Outcome> outcomes;
    std::vector<kcload::Kernel> kernels;
    Counts counts;
    Table table = table_for(device);
    if (is_told()) console_.result(console_.styled(Console::Style::kDim, table.head()));
    for (const Configuration& configuration : configurations_) {
      Outcome& outcome = outcomes[configuration.kernel];
      kcload::Error error;
      kcload::Kernel kernel =
          bundle_.load(configuration.kernel, configuration.configuration, device, {}, error);
      if (!error) {
        ++counts.loaded;
        ++outcome.loaded;
        tell_loaded(configuration, device, kernel, table);
        kernels.push_back(std::move(kernel));
        continue;
      }
      // NO_CODE of a driver that was asked is its refusal.
      const bool is_refused = error.status() != KC_ERROR_NO_CODE || error.driver_code() != 0;
      tell_failed(configuration, device, is_refused, error, table);
      Error told = error_of(error, name_of(device));
      if (is_refused) {
        ++counts.refused;
        ++outcome.refused;
        fault(std::move(told));
      } else {
        ++counts.without_code;
        if (!outcome.no_code) outcome.no_code = std::move(told);
      }
    }
    for (const auto& [kernel, outcome] : outcomes) {
      if (outcome.loaded == 0 && outcome.refused == 0 && outcome.no_code &&
          makers_[kernel].has(device.info().api)) {
        fault(*outcome.no_code);
      }
    }
    if (is_told()) {
      console_.result(util::format("{}: {} loaded, {} refused, {} without code", name_of(device),
                                   counts.loaded, counts.refused, counts.without_code));
    }
    all_.loaded += counts.loaded;
    all_.refused += counts.refused;
    all_.without_code += counts.without_code;
  }

  void fault(const Error& error) {
    is_good_ = false;
    console_.error(error);
  }

  bool is_told() const { return !console_.is_json() && console_.verbosity() >= 0; }

  void tell_device(const Device& device) {
    const kc_device_info& info = device.info();
    if (console_.is_json()) {
      console_.json(device_json(device));
    } else if (is_told()) {
      console_.result(util::format("{}: {}, {}, {}", name_of(device), util::escape(info.name),
                                   util::escape(info.target), util::escape(info.driver_text)));
    }
  }

  Table table_for(const Device& device) const {
    constexpr size_t kLeastName = 20;
    Table table({{.title = "KERNEL"}, {.title = "STATE"}, {.title = "CODE FOR"}, {.title = "FIT", .rank = 1}},
                kLeastName);
    for (const Configuration& configuration : configurations_) {
      table.measure(
          {util::escape(configuration.name()), "refused", util::escape(device.target()), "by rule"});
    }
    table.fit(console_.width());
    return table;
  }

  void tell_loaded(const Configuration& configuration, const Device& device, const kcload::Kernel& kernel,
                   const Table& table) {
    kcload::Error error;
    const kcload::EntryView entry = kernel.entry();
    const bool is_exact = entry.fit(std::string(device.target()), error) == KC_FIT_EXACT;
    if (console_.is_json()) {
      console_.json({{"event", "load"},
                     {"device", name_of(device)},
                     {"kernel", configuration.kernel},
                     {"configuration", configuration.configuration},
                     {"state", "loaded"},
                     {"unit", entry.unit()},
                     {"found_target", entry.found_target()},
                     {"fit", is_exact ? "exact" : "by_rule"}});
    } else if (is_told()) {
      console_.result(table.line({util::escape(configuration.name()), "loaded",
                                  util::escape(entry.found_target()), is_exact ? "exact" : "by rule"}));
    }
  }

  void tell_failed(const Configuration& configuration, const Device& device, bool is_refused,
                   const kcload::Error& error, const Table& table) {
    if (console_.is_json()) {
      console_.json({{"event", "load"},
                     {"device", name_of(device)},
                     {"kernel", configuration.kernel},
                     {"configuration", configuration.configuration},
                     {"state", is_refused ? "refused" : "no_code"},
                     {"status", kc_status_name(error.status())},
                     {"driver_code", error.driver_code()},
                     {"message", error.what()}});
    } else if (is_told()) {
      console_.result(
          table.line({util::escape(configuration.name()), is_refused ? "refused" : "no code", "", ""}));
    }
  }

  const LoadArguments& arguments_;
  Console& console_;
  kcload::Bundle bundle_;
  std::vector<Configuration> configurations_;  // in the bundle's order
  std::map<std::string, Makers> makers_;       // by kernel
  Counts all_;
  bool is_good_ = true;
};

}  // namespace

int load_bundle(const LoadArguments& arguments, Console& console) {
  const Result<bool> is_good = Load(arguments, console).run();
  if (!is_good) return console.fail(is_good.error());
  return *is_good ? 0 : static_cast<int>(ErrorKind::kFailed);
}

}  // namespace kc::cli
