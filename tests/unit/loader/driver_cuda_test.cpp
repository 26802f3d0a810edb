// The CUDA driver's table of functions, against stand-ins that lack or fail each of them in turn.
#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "loader/cuda_driver.h"
#include "unit/loader/driver_support.h"

namespace kc::loader {
namespace {

using testing::contains;
using testing::cubin_for;
using testing::CudaCalls;
using testing::Stub;

const std::vector<std::string> kRequired = {"cuInit",
                                            "cuDriverGetVersion",
                                            "cuDeviceGetCount",
                                            "cuDeviceGet",
                                            "cuDeviceGetName",
                                            "cuDeviceGetAttribute",
                                            "cuDeviceTotalMem_v2",
                                            "cuDevicePrimaryCtxRetain",
                                            "cuDevicePrimaryCtxRelease_v2",
                                            "cuCtxPushCurrent_v2",
                                            "cuCtxPopCurrent_v2",
                                            "cuCtxGetCurrent",
                                            "cuCtxGetDevice",
                                            "cuModuleLoadDataEx",
                                            "cuModuleGetFunction",
                                            "cuModuleUnload",
                                            "cuFuncSetAttribute",
                                            "cuGetErrorName",
                                            "cuGetErrorString"};
const std::vector<std::string> kOptional = {"cuLibraryLoadData", "cuLibraryGetKernel", "cuLibraryUnload",
                                            "cuKernelGetFunction"};

Result<std::unique_ptr<Driver>> open_at(const std::string& path) {
  const char* const places[] = {path.c_str()};
  return open_cuda_driver(places);
}

std::unique_ptr<Driver> opened(const Stub& stub) {
  auto driver = open_at(stub.path());
  REQUIRE(driver);
  return std::move(*driver);
}

// All that a kernel's life needs; the first failure, as text, or "".
std::string live(Driver& driver) {
  const auto told = [](const Failure& failure) { return failure.message; };
  const auto refused = [](const Refusal& refusal) {
    return refusal.call + ": " + std::to_string(refusal.code) + " " + refusal.name;
  };
  if (auto count = driver.device_count(); !count) return told(count.error());
  auto device = driver.device(0);
  if (!device) return told(device.error());
  auto context = driver.context(*device, KC_CONTEXT_PRIMARY);
  if (!context) return told(context.error());
  std::string out;
  const base::Bytes image = cubin_for(90, "sm_90a", "kernel", 1);
  if (auto module = driver.load(*device, *context, image); !module) {
    out = refused(module.error());
  } else {
    if (auto function = driver.function(*device, *context, *module, "kernel"); !function) {
      out = refused(function.error());
    } else if (auto shared = driver.request_shared_memory(*device, *context, *function, 100'000); !shared) {
      out = refused(shared.error());
    }
    driver.unload(*device, *context, *module);
  }
  driver.release_context(*device, KC_CONTEXT_PRIMARY);
  return out;
}

}  // namespace

TEST_CASE("a CUDA driver that lacks a required function is refused and both are named") {
  for (const std::string& missing : kRequired) {
    CAPTURE(missing);
    const std::string path = testing::stub_path("cuda_without_" + missing);
    const auto driver = open_at(path);
    REQUIRE_FALSE(driver);
    CHECK(driver.error().status == KC_ERROR_NO_DRIVER);
    CHECK(contains(driver.error().message, path + " lacks " + missing));
    CHECK(contains(driver.error().message, "NVIDIA driver"));
    // Nothing stays loaded of what cannot be used.
    CHECK(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr);
  }
}

TEST_CASE("a CUDA driver that lacks an optional function works without all of its group") {
  for (const std::string& missing : kOptional) {
    CAPTURE(missing);
    const Stub stub("cuda_without_" + missing);
    const auto driver = opened(stub);
    CHECK(live(*driver) == "");
    CHECK(stub.count("cuModuleLoadDataEx") == 1);
    CHECK(stub.count("cuLibraryLoadData") == 0);
    CHECK(stub.count("cuKernelGetFunction") == 0);
    CHECK(stub.count("cuModuleUnload") == 1);
    CHECK(stub.count("modules") == 0);
    CHECK(stub.count("primaries") == 0);
    CHECK(stub.count("misuse") == 0);
  }
}

TEST_CASE("a CUDA driver with all functions is used through libraries") {
  const Stub stub("cuda");
  const auto driver = opened(stub);
  CHECK(live(*driver) == "");
  CHECK(stub.count("cuLibraryLoadData") == 1);
  CHECK(stub.count("cuLibraryUnload") == 1);
  CHECK(stub.count("cuModuleLoadDataEx") == 0);
  CHECK(stub.count("misuse") == 0);
}

TEST_CASE("each CUDA function that fails is told with its number and the next try is a new one") {
  // Those that give nothing back, or whose failure takes nothing from what is wanted.
  const std::vector<std::string> swallowed = {"cuDevicePrimaryCtxRelease_v2",
                                              "cuCtxPopCurrent_v2",
                                              "cuCtxGetCurrent",
                                              "cuCtxGetDevice",
                                              "cuGetErrorName",
                                              "cuGetErrorString"};
  for (const std::string variant : {"cuda", "cuda_without_cuLibraryLoadData"}) {
    const Stub stub(variant);
    std::vector<std::string> functions = kRequired;
    functions.insert(functions.end(), kOptional.begin(), kOptional.end());
    for (const std::string& function : functions) {
      CAPTURE(function);
      const bool unloads = function == "cuLibraryUnload" || function == "cuModuleUnload";
      const bool unused =
          (variant == "cuda") == (function == "cuModuleLoadDataEx" || function == "cuModuleGetFunction") &&
          (function.starts_with("cuModule") || function.starts_with("cuLibrary") ||
           function == "cuKernelGetFunction");
      const bool is_swallowed = std::find(swallowed.begin(), swallowed.end(), function) != swallowed.end();
      const auto driver = opened(stub);
      // The last call of it only: contexts stay balanced where popping fails.
      stub.tell("fail " + function + " 999 at 1");
      const std::string failed = live(*driver);
      if (is_swallowed || unloads || unused) {
        CHECK(failed == "");
      } else {
        const std::string name = function.substr(0, function.find("_v2"));
        CHECK(contains(failed, name));
        CHECK(contains(failed, "999"));
        CHECK(contains(failed, "CUDA_ERROR_UNKNOWN"));
      }
      stub.tell("");
      CHECK(live(*driver) == "");
      // Where popping failed there is one left.
      const CudaCalls calls(stub);
      void* popped = nullptr;
      while (calls.current_context() != nullptr) REQUIRE(calls.pop(&popped) == 0);
    }
  }
}

TEST_CASE("a driver without devices has none of them and says why") {
  const Stub stub("cuda");
  stub.tell("device none");
  const auto driver = opened(stub);
  const auto count = driver->device_count();
  REQUIRE(count);
  CHECK(*count == 0);
  const auto device = driver->device(0);
  REQUIRE_FALSE(device);
  CHECK(device.error().status == KC_ERROR_NO_DEVICE);
  CHECK(device.error().driver_code == 100);
  CHECK(contains(device.error().message, "no CUDA-capable device is detected"));
  CHECK(contains(device.error().message, stub.path()));
  CHECK(contains(device.error().message, "CUDA_VISIBLE_DEVICES"));
  // They may come: a container that is given its GPUs later, a driver that is started.
  stub.tell("");
  CHECK(*driver->device_count() == 1);
}

TEST_CASE("the link stub of the toolkit is no driver") {
  const Stub stub("cuda");
  stub.tell("fail cuInit 34");
  const auto driver = opened(stub);
  const auto count = driver->device_count();
  REQUIRE_FALSE(count);
  CHECK(count.error().status == KC_ERROR_NO_DRIVER);
  CHECK(contains(count.error().message, "only there to link with"));
}

TEST_CASE("a library and a kernel module of two driver versions are told apart from no device") {
  const Stub stub("cuda");
  stub.tell("fail cuInit 803");
  const auto driver = opened(stub);
  const auto device = driver->device(0);
  REQUIRE_FALSE(device);
  CHECK(device.error().status == KC_ERROR_DRIVER);
  CHECK(device.error().driver_code == 803);
  CHECK(contains(device.error().message, "of different versions"));
}

TEST_CASE("devices are described as the driver describes them") {
  const Stub stub("cuda");
  stub.tell("version 12080; device 9.0 NVIDIA H200; device 8.6 NVIDIA A10; device 12.1 NVIDIA GB10");
  const auto driver = opened(stub);
  CHECK(*driver->device_count() == 3);
  const auto device = driver->device(2);
  REQUIRE(device);
  CHECK(device->api == KC_CUDA);
  CHECK(device->ordinal == 2);
  CHECK(device->name == "NVIDIA GB10");
  CHECK(device->target.text == "sm_121");
  CHECK(device->driver_version == 12080);
  CHECK(device->driver_text == "CUDA 12.8");
  CHECK(device->library == stub.path());
  CHECK(device->memory == 16ULL << 30);
  CHECK(device->max_shared_memory == 49152);
  CHECK(device->max_shared_memory_opt_in == 232448);
  for (const int ordinal : {-1, 3, 1000}) {
    const auto none = driver->device(ordinal);
    REQUIRE_FALSE(none);
    CHECK(none.error().status == KC_ERROR_NO_DEVICE);
    CHECK(contains(none.error().message, "has 3 devices"));
  }
}

TEST_CASE("a compute capability that is none is an error of that device") {
  const Stub stub("cuda");
  stub.tell("device 0.0 odd\x1b[31m; device 8.6 NVIDIA A10");
  const auto driver = opened(stub);
  const auto odd = driver->device(0);
  REQUIRE_FALSE(odd);
  CHECK(odd.error().status == KC_ERROR_DRIVER);
  CHECK(contains(odd.error().message, "compute capability 0.0"));
  CHECK(contains(odd.error().message, "odd?[31m"));
  CHECK(driver->device(1));
}

TEST_CASE("the current context is what it was after each call that makes another current") {
  const Stub stub("cuda");
  stub.tell("device 9.0 A; device 9.0 B");
  const CudaCalls calls(stub);
  const auto driver = opened(stub);
  const auto device = driver->device(1);
  REQUIRE(device);
  void* const mine = calls.create(0);
  REQUIRE(calls.push(mine) == 0);
  CHECK(live(*driver) == "");
  CHECK(calls.current_context() == mine);
  for (const char* function :
       {"cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuFuncSetAttribute"}) {
    CAPTURE(function);
    stub.tell(std::string("fail ") + function + " 209");
    CHECK(live(*driver) != "");
    CHECK(calls.current_context() == mine);
  }
  void* popped = nullptr;
  CHECK(calls.pop(&popped) == 0);
  CHECK(calls.current_context() == nullptr);
  calls.destroy(mine);
}

TEST_CASE("the caller's current context is taken where it is one of the device") {
  const Stub stub("cuda");
  stub.tell("device 9.0 A; device 9.0 B");
  const CudaCalls calls(stub);
  const auto driver = opened(stub);
  const auto device = driver->device(1);
  REQUIRE(device);

  const auto none = driver->context(*device, KC_CONTEXT_CURRENT);
  REQUIRE_FALSE(none);
  CHECK(none.error().status == KC_ERROR_ARGUMENT);
  CHECK(contains(none.error().message, "no current context"));

  void* const other = calls.create(0);
  REQUIRE(calls.push(other) == 0);
  const auto foreign = driver->context(*device, KC_CONTEXT_CURRENT);
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().status == KC_ERROR_ARGUMENT);
  CHECK(contains(foreign.error().message, "another device than cuda:1"));

  void* const mine = calls.create(1);
  REQUIRE(calls.push(mine) == 0);
  const auto taken = driver->context(*device, KC_CONTEXT_CURRENT);
  REQUIRE(taken);
  CHECK(*taken == mine);
  driver->release_context(*device, KC_CONTEXT_CURRENT);
  CHECK(stub.count("cuDevicePrimaryCtxRelease_v2") == 0);
  void* popped = nullptr;
  CHECK(calls.pop(&popped) == 0);
  CHECK(calls.pop(&popped) == 0);
  calls.destroy(mine);
  calls.destroy(other);
}

TEST_CASE("what the driver writes into its log is part of the refusal") {
  for (const std::string variant : {"cuda", "cuda_without_cuLibraryLoadData"}) {
    const Stub stub(variant);
    stub.tell("fail cuLibraryLoadData 300; fail cuModuleLoadDataEx 300; jit ptxas fatal: \x1b wrong " +
              std::string(9000, 'x'));
    const auto driver = opened(stub);
    const auto device = driver->device(0);
    REQUIRE(device);
    const auto context = driver->context(*device, KC_CONTEXT_PRIMARY);
    REQUIRE(context);
    const auto module = driver->load(*device, *context, cubin_for(90, "sm_90a", "kernel", 1));
    REQUIRE_FALSE(module);
    CHECK(module.error().log.starts_with("ptxas fatal: ? wrong xxx"));
    CHECK(module.error().log.size() < 4096);
    CHECK(module.error().text == "device kernel image is invalid");
    driver->release_context(*device, KC_CONTEXT_PRIMARY);
  }
}

TEST_CASE("code of another major version is refused when its function is asked for") {
  const Stub stub("cuda");
  const auto driver = opened(stub);
  const auto device = driver->device(0);
  REQUIRE(device);
  const auto context = driver->context(*device, KC_CONTEXT_PRIMARY);
  REQUIRE(context);
  const auto module = driver->load(*device, *context, cubin_for(120, "sm_120", "kernel", 1));
  REQUIRE(module);
  const auto function = driver->function(*device, *context, *module, "kernel");
  REQUIRE_FALSE(function);
  CHECK(function.error().code == 209);
  CHECK(function.error().call == "cuLibraryGetKernel");
  driver->unload(*device, *context, *module);
  driver->release_context(*device, KC_CONTEXT_PRIMARY);
}

}  // namespace kc::loader
