// The HIP runtime's table of functions, against stand-ins that lack or fail each of them in turn.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "loader/hip_driver.h"
#include "unit/loader/driver_support.h"

namespace kc::loader {
namespace {

using testing::contains;
using testing::hsaco_for;
using testing::Stub;

const std::vector<std::string> kRequired = {"hipGetDeviceCount", "hipGetDevice",         "hipSetDevice",
                                            "hipModuleLoadData", "hipModuleGetFunction", "hipModuleUnload",
                                            "hipGetErrorName",   "hipGetErrorString"};
const std::vector<std::string> kOptional = {"hipInit", "hipRuntimeGetVersion", "hipDriverGetVersion",
                                            "hipGetDevicePropertiesR0600", "hipGetDeviceProperties"};

Result<std::unique_ptr<Driver>> open_at(const std::string& path) {
  const char* const places[] = {path.c_str()};
  return open_hip_driver(places);
}

std::unique_ptr<Driver> opened(const Stub& stub) {
  auto driver = open_at(stub.path());
  REQUIRE(driver);
  return std::move(*driver);
}

// All that a kernel's life needs; the first failure, as text, or "".
std::string live(Driver& driver, int ordinal = 0) {
  const auto refused = [](const Refusal& refusal) {
    return refusal.call + ": " + std::to_string(refusal.code) + " " + refusal.name;
  };
  auto device = driver.device(ordinal);
  if (!device) return device.error().message;
  auto context = driver.context(*device, KC_CONTEXT_PRIMARY);
  if (!context) return context.error().message;
  std::string out;
  const base::Bytes image = hsaco_for("gfx942", "kernel", 1);
  if (auto module = driver.load(*device, *context, image); !module) {
    out = refused(module.error());
  } else {
    if (auto function = driver.function(*device, *context, *module, "kernel"); !function) {
      out = refused(function.error());
    } else if (auto shared = driver.request_shared_memory(*device, *context, *function, 60'000); !shared) {
      out = refused(shared.error());
    }
    driver.unload(*device, *context, *module);
  }
  driver.release_context(*device, KC_CONTEXT_PRIMARY);
  return out;
}

}  // namespace

TEST_CASE("a HIP runtime that lacks a required function is refused and both are named") {
  for (const std::string& missing : kRequired) {
    CAPTURE(missing);
    const std::string path = testing::stub_path("hip_without_" + missing);
    const auto driver = open_at(path);
    REQUIRE_FALSE(driver);
    CHECK(driver.error().status == KC_ERROR_NO_DRIVER);
    CHECK(contains(driver.error().message, path + " lacks " + missing));
    CHECK(contains(driver.error().message, "HIP runtime"));
    CHECK(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr);
  }
}

TEST_CASE("a HIP runtime that lacks an optional function works with what stands in for it") {
  for (const std::string& missing : kOptional) {
    CAPTURE(missing);
    const Stub stub("hip_without_" + missing);
    stub.tell("version 50731921; device gfx90a:sramecc+:xnack- AMD Instinct MI250X");
    const auto driver = opened(stub);
    CHECK(live(*driver) == "");
    const auto device = driver->device(0);
    REQUIRE(device);
    CHECK(device->driver_text == "HIP 5.7.31921");
    CHECK(device->target.text == "gfx90a:sramecc+:xnack-");
    CHECK(device->name == "AMD Instinct MI250X");
    CHECK(device->memory == 192ULL << 30);
    CHECK(device->max_shared_memory == 65536);
    CHECK(device->max_shared_memory_opt_in == 65536);
    CHECK(stub.count("modules") == 0);
    CHECK(stub.count("misuse") == 0);
  }
}

TEST_CASE("each HIP function that fails is told with its number and the next try is a new one") {
  for (const std::string function :
       {"hipInit", "hipGetDeviceCount", "hipRuntimeGetVersion", "hipGetDevicePropertiesR0600", "hipGetDevice",
        "hipModuleLoadData", "hipModuleGetFunction"}) {
    CAPTURE(function);
    const Stub stub("hip");
    const auto driver = opened(stub);
    stub.tell("fail " + function + " 999 at 1");
    const std::string failed = live(*driver);
    // A call to make a device current is told as one.
    CHECK(contains(failed, function == "hipGetDevice" ? "hipSetDevice" : function));
    CHECK(contains(failed, "999"));
    CHECK(contains(failed, "hipErrorUnknown"));
    stub.tell("");
    CHECK(live(*driver) == "");
    CHECK(stub.count("modules") == 0);
    CHECK(stub.count("misuse") == 0);
  }
}

TEST_CASE("the current HIP device is what it was after each call") {
  const Stub stub("hip");
  const auto set = stub.get<int (*)(int)>("hipSetDevice");
  const auto get = stub.get<int (*)(int*)>("hipGetDevice");
  const auto current = [&] {
    int device = -1;
    REQUIRE(get(&device) == 0);
    return device;
  };
  for (const std::string told :
       {"", "fail hipModuleLoadData 209;", "fail hipModuleGetFunction 500;", "fail hipModuleUnload 999;"}) {
    CAPTURE(told);
    stub.tell(told + "device gfx942 A; device gfx942 B; device gfx942 C");
    const auto driver = opened(stub);
    REQUIRE(set(2) == 0);
    CHECK((live(*driver, 1) == "") == (told.empty() || contains(told, "Unload")));
    CHECK(current() == 2);
    CHECK(stub.count("misuse") == 0);
  }
  CHECK(set(0) == 0);
}

TEST_CASE("a device that cannot be made current refuses a load by that") {
  const Stub stub("hip");
  stub.tell("device gfx942 A; device gfx942 B; fail hipSetDevice 101");
  const auto driver = opened(stub);
  CHECK(live(*driver, 0) == "");
  CHECK(contains(live(*driver, 1), "hipSetDevice: 101"));
}

TEST_CASE("a HIP runtime without devices has none of them and says why") {
  const Stub stub("hip");
  stub.tell("device none");
  const auto driver = opened(stub);
  const auto count = driver->device_count();
  REQUIRE(count);
  CHECK(*count == 0);
  const auto device = driver->device(0);
  REQUIRE_FALSE(device);
  CHECK(device.error().status == KC_ERROR_NO_DEVICE);
  CHECK(device.error().driver_code == 100);
  CHECK(contains(device.error().message, "/dev/kfd"));
  stub.tell("");
  CHECK(*driver->device_count() == 1);
}

TEST_CASE("an architecture that cannot be read is an error of that device") {
  const Stub stub("hip");
  stub.tell("device 9.0 not a gfx; device gfx9999 too new; device gfx1100 Radeon");
  const auto driver = opened(stub);
  const auto first = driver->device(0);
  REQUIRE_FALSE(first);
  CHECK(first.error().status == KC_ERROR_DRIVER);
  CHECK(contains(first.error().message, "does not say what architecture it has"));
  const auto second = driver->device(1);
  REQUIRE_FALSE(second);
  CHECK(contains(second.error().message, "says that it is gfx9999"));
  const auto third = driver->device(2);
  REQUIRE(third);
  CHECK(third->target.text == "gfx1100");
  const auto none = driver->device(3);
  REQUIRE_FALSE(none);
  CHECK(none.error().status == KC_ERROR_NO_DEVICE);
  CHECK(contains(none.error().message, "has 3 devices"));
}

TEST_CASE("HIP has one context for all") {
  const Stub stub("hip");
  const auto driver = opened(stub);
  const auto device = driver->device(0);
  REQUIRE(device);
  for (const kc_context which : {KC_CONTEXT_PRIMARY, KC_CONTEXT_CURRENT}) {
    const auto context = driver->context(*device, which);
    REQUIRE(context);
    CHECK(*context == nullptr);
    driver->release_context(*device, which);
  }
}

}  // namespace kc::loader
