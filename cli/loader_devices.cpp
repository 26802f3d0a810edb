#include "cli/loader_devices.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "cli/console.h"
#include "cli/loader_policy.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;
using kcload::Device;

constexpr std::array<std::pair<kc_api, const char*>, 2> kApis{{{KC_CUDA, "cuda"}, {KC_HIP, "hip"}}};

// Whatever a driver says, without it nothing can be loaded: that is the machine's fault.
Error environment_error(const kcload::Error& error, const std::string& place) {
  Error out = error_of(error, place);
  if (out.kind != ErrorKind::kInternal) out.kind = ErrorKind::kEnvironment;
  return out;
}

Result<std::vector<Device>> all_of(kc_api api, const std::string& place) {
  kcload::Error error;
  std::vector<Device> out = Device::all(api, error);
  if (error) return std::unexpected(environment_error(error, place));
  if (out.empty()) return base::fail_at(ErrorKind::kEnvironment, {place}, "its driver has no device");
  return out;
}

Result<std::vector<Device>> all_devices(Console& console) {
  std::vector<Device> out;
  std::vector<Error> problems;
  for (const auto& [api, name] : kApis) {
    kcload::Error error;
    const std::vector<Device> devices = Device::all(api, error);
    out.insert(out.end(), devices.begin(), devices.end());
    if (!error) continue;
    Error problem = environment_error(error, name);
    // That one maker's driver is not there is how most machines are.
    if (error.status() != KC_ERROR_NO_DRIVER && error.status() != KC_ERROR_NO_DEVICE && !out.empty()) {
      console.warning(problem);
    }
    problems.push_back(std::move(problem));
  }
  if (!out.empty()) return out;
  for (const Error& problem : problems) console.error(problem);
  return base::fail(ErrorKind::kEnvironment, "no device: there is nothing to load on",
                    "`check --device ARCH` needs none");
}

Result<std::vector<Device>> named(const std::string& name) {
  for (const auto& [api, prefix] : kApis) {
    if (name == prefix) return all_of(api, name);
    if (!name.starts_with(prefix) || name[std::string_view(prefix).size()] != ':') continue;
    const auto ordinal = util::parse_number(name.substr(std::string_view(prefix).size() + 1), 0,
                                            std::numeric_limits<int>::max());
    if (!ordinal) break;
    kcload::Error error;
    const Device device = Device::get(api, static_cast<int>(*ordinal), error);
    if (error) return std::unexpected(environment_error(error, name));
    return std::vector{device};
  }
  return base::fail(ErrorKind::kInput, util::format("\"{}\" is no device", name),
                    "devices are cuda:N and hip:N, counted from 0, or cuda and hip for all of them");
}

}  // namespace

std::string name_of(const Device& device) {
  const kc_device_info& info = device.info();
  for (const auto& [api, name] : kApis) {
    if (api == info.api) return util::format("{}:{}", name, info.ordinal);
  }
  return util::format("{}", info.ordinal);
}

util::Json device_json(const Device& device) {
  const kc_device_info& info = device.info();
  return {{"event", "device"},       {"device", name_of(device)},  {"name", info.name},
          {"target", info.target},   {"driver", info.driver_text}, {"driver_version", info.driver_version},
          {"library", info.library}, {"memory", info.memory}};
}

Result<std::vector<Device>> find_devices(const std::vector<std::string>& names, Console& console) {
  if (names.empty()) return all_devices(console);
  std::vector<Device> out;
  for (const std::string& name : names) {
    KC_ASSIGN(const std::vector<Device> devices, named(name));
    for (const Device& device : devices) {
      const auto is_same = [&](const Device& other) { return other.get() == device.get(); };
      if (std::ranges::none_of(out, is_same)) out.push_back(device);
    }
  }
  return out;
}

}  // namespace kc::cli
