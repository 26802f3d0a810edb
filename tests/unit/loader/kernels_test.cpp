// Devices and kernels through the C functions, against stand-ins for drivers.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "unit/loader/kernel_support.h"

namespace kc::loader {
namespace {

using testing::add_unit;
using testing::Bundle;
using testing::bytes_of;
using testing::check_nothing_left;
using testing::contains;
using testing::Input;
using testing::load_kernel;
using testing::LoadedKernel;
using testing::Machine;
using testing::machine;
using testing::open_bytes;
using testing::Outcome;

std::string target_of(const Outcome& outcome) {
  REQUIRE_MESSAGE(outcome, outcome.message);
  return kc_entry_get_info(kc_kernel_entry(outcome.kernel.get()))->found_target;
}

// K01: `a` for both, `b` for the lower one, `c` with the suffix that runs on exactly one.
Input k01() {
  Input input;
  add_unit(input, "a", "sm_120", "sm_120");
  add_unit(input, "a", "sm_121", "sm_121");
  add_unit(input, "b", "sm_120", "sm_120");
  add_unit(input, "c", "sm_120", "sm_120a");
  return input;
}

template <typename Call>
void check_argument(const Call& call, const std::string& part) {
  kc_error* error = nullptr;
  CHECK(call(&error) == KC_ERROR_ARGUMENT);
  const std::unique_ptr<kc_error, testing::Closer> owned(error);
  REQUIRE(error != nullptr);
  CHECK(kc_error_status(error) == KC_ERROR_ARGUMENT);
  CHECK(contains(kc_error_message(error), part));
  // Without a place for the error it is the same.
  CHECK(call(nullptr) == KC_ERROR_ARGUMENT);
}

}  // namespace

TEST_CASE("K01: the exact code is taken and the refusal of the other asks for it") {
  const Machine& all = machine();
  const base::Bytes bytes = bytes_of(k01());
  const Bundle bundle = open_bytes(bytes);
  const kc_device* const device = all.nvidia[testing::kFirstGb10];
  for (const std::string function : {"cuLibraryGetKernel", "cuLibraryLoadData"}) {
    all.tell_cuda("fail " + function + " 209 sm 120");
    const Outcome a = load_kernel(bundle, "a", device);
    CHECK(target_of(a) == "sm_121");
    const Outcome b = load_kernel(bundle, "b", device);
    CHECK(b.status == KC_ERROR_NO_CODE);
    CHECK(b.driver_code == 209);
    for (const char* const part : {"kernel \"b\"", "NVIDIA GB10", "sm_121", "CUDA 13.0", "toolkit 13.4",
                                   "the bundle has this kernel for: sm_120\n", "add sm_121"}) {
      CHECK(contains(b.message, part));
    }
    CHECK(a.function() != nullptr);

    const long asked = all.cuda.count(function);
    const Outcome c = load_kernel(bundle, "c", device);
    CHECK(c.status == KC_ERROR_NO_CODE);
    CHECK(c.driver_code == 0);
    CHECK(contains(c.message, "sm_120a"));
    CHECK(contains(c.message, "add sm_121"));
    CHECK(all.cuda.count(function) == asked);
  }
  check_nothing_left(all);
}

TEST_CASE("K03: every number is explained and the other kernels load") {
  const Machine& all = machine();
  Input input;
  for (const char* const kernel : {"a", "b", "c"}) add_unit(input, kernel, "sm_90", "sm_90a");
  const base::Bytes bytes = bytes_of(input);
  const Bundle bundle = open_bytes(bytes);
  for (const int ordinal : {testing::kOldDriver, testing::kFirstH200}) {
    const kc_device* const device = all.nvidia[static_cast<size_t>(ordinal)];
    const bool is_old = ordinal == testing::kOldDriver;
    for (const int code : {221, 222, 209, 200, 300, 999}) {
      CAPTURE(ordinal);
      CAPTURE(code);
      all.tell_cuda("fail cuLibraryGetKernel " + std::to_string(code) + " symbol b; text " +
                    std::to_string(code) + " in the driver's own words");
      const Outcome a = load_kernel(bundle, "a", device);
      const Outcome b = load_kernel(bundle, "b", device);
      const Outcome c = load_kernel(bundle, "c", device);
      CHECK(a);
      CHECK(c);
      const kc_status wanted = code == 209 ? KC_ERROR_NO_CODE : KC_ERROR_DRIVER;
      CHECK(b.status == (is_old ? KC_ERROR_DRIVER_TOO_OLD : wanted));
      CHECK(b.driver_code == code);
      for (const std::string& part :
           {std::string("kernel \"b\""), std::string("NVIDIA H200"),
            std::string(is_old ? "CUDA 12.8" : "CUDA 13.0"), std::string("toolkit 13.4"),
            "error " + std::to_string(code), std::string("in the driver's own words"),
            std::string("likely cause: "), std::string("cure: ")}) {
        CAPTURE(b.message);
        CHECK(contains(b.message, part));
      }
    }
  }
  check_nothing_left(all);
}

TEST_CASE("on eight devices of three kinds each gets the code that suits it best") {
  const Machine& all = machine();
  Input input;
  for (const char* const target : {"sm_80", "sm_86", "sm_90", "sm_120", "sm_121"}) {
    add_unit(input, "k", target, std::string(target) == "sm_90" ? "sm_90a" : target);
  }
  add_unit(input, "k", "gfx11-generic", "gfx11-generic");
  add_unit(input, "k", "gfx942", "gfx942");
  const base::Bytes bytes = bytes_of(input);
  const Bundle bundle = open_bytes(bytes);
  std::vector<Outcome> kernels;
  for (const kc_device* const device : all.nvidia) kernels.push_back(load_kernel(bundle, "k", device));
  const char* const wanted[] = {"sm_90a", "sm_90a", "sm_90a", "sm_121", "sm_121", "sm_121", "sm_86", "sm_86"};
  for (size_t i = 0; i < 8; ++i) CHECK(target_of(kernels[i]) == wanted[i]);
  CHECK(all.cuda.count("modules") == 8);
  CHECK(all.cuda.count("primaries") == 8);
  CHECK(target_of(load_kernel(bundle, "k", all.amd[0])) == "gfx942");
  CHECK(target_of(load_kernel(bundle, "k", all.amd[1])) == "gfx11-generic");
  kernels.clear();
  check_nothing_left(all);
}

TEST_CASE("after a refusal of the best match the next is loaded") {
  const Machine& all = machine();
  const base::Bytes bytes = bytes_of(k01());
  const Bundle bundle = open_bytes(bytes);
  const kc_device* const device = all.nvidia[testing::kFirstGb10];
  for (const int code : {200, 209, 218, 221, 222, 300, 301, 500, 999}) {
    CAPTURE(code);
    all.tell_cuda("fail cuLibraryLoadData " + std::to_string(code) + " sm 121");
    CHECK(target_of(load_kernel(bundle, "a", device)) == "sm_120");
    CHECK(all.cuda.count("cuLibraryLoadData") == 2);
  }
  // What does not speak of the code ends it.
  all.tell_cuda("fail cuLibraryLoadData 2 sm 121");
  Outcome outcome = load_kernel(bundle, "a", device);
  CHECK(outcome.status == KC_ERROR_DRIVER);
  CHECK(outcome.driver_code == 2);
  CHECK(all.cuda.count("cuLibraryLoadData") == 1);
  // When all are refused the first counts, and the others are named.
  all.tell_cuda("fail cuLibraryLoadData 221 sm 121; fail cuLibraryLoadData 209 sm 120");
  outcome = load_kernel(bundle, "a", device);
  CHECK(outcome.driver_code == 221);
  CHECK(contains(outcome.message, "refused too: code for sm_120"));
  check_nothing_left(all);
}

TEST_CASE("kernels load on AMD as on NVIDIA") {
  const Machine& all = machine();
  Input input;
  add_unit(input, "k", "gfx1151", "gfx1151");
  add_unit(input, "k", "gfx11-generic", "gfx11-generic");
  const base::Bytes bytes = bytes_of(input);
  const Bundle bundle = open_bytes(bytes);
  CHECK(target_of(load_kernel(bundle, "k", all.amd[1])) == "gfx1151");
  all.tell_hip("fail hipModuleLoadData 209 mach 0x4a");
  CHECK(target_of(load_kernel(bundle, "k", all.amd[1])) == "gfx11-generic");
  all.tell_hip("fail hipModuleLoadData 209");
  const Outcome refused = load_kernel(bundle, "k", all.amd[1]);
  CHECK(refused.status == KC_ERROR_NO_CODE);
  CHECK(refused.driver_code == 209);
  CHECK(contains(refused.message, "hip:1 (AMD Radeon 8060S, gfx1151; driver: HIP 6.2.41133)"));
  const Outcome none = load_kernel(bundle, "k", all.amd[0]);
  CHECK(none.status == KC_ERROR_NO_CODE);
  CHECK(none.driver_code == 0);
  CHECK(contains(none.message, "add gfx942 to"));
  check_nothing_left(all);
}

TEST_CASE("an entry that does not fit is not brought to the driver") {
  const Machine& all = machine();
  const base::Bytes bytes = bytes_of(k01());
  const Bundle bundle = open_bytes(bytes);
  kc_entry* entry = nullptr;
  REQUIRE(kc_find(bundle.get(), "a", nullptr, "sm_120", &entry, nullptr) == KC_OK);
  const std::unique_ptr<kc_entry, testing::Closer> owned(entry);
  const auto load = [&](const kc_device* device) {
    return testing::outcome_of([&](kc_kernel** loaded, kc_error** error) {
      return kc_load_entry(entry, device, nullptr, loaded, error);
    });
  };
  const Outcome none = load(all.nvidia[testing::kFirstH200]);
  CHECK(none.status == KC_ERROR_NO_CODE);
  CHECK(contains(none.message, "has no code that runs on sm_90; it has code for sm_120"));
  CHECK(load(all.amd[0]).status == KC_ERROR_NO_CODE);
  CHECK(all.cuda.count("cuLibraryLoadData") == 0);
  CHECK(all.cuda.count("cuDevicePrimaryCtxRetain") == 0);
  // Of this entry and no other, though there is a better one.
  CHECK(target_of(load(all.nvidia[testing::kFirstGb10])) == "sm_120");
  check_nothing_left(all);
}

TEST_CASE("shared memory above the default limit is requested and requests only grow") {
  const Machine& all = machine();
  const testing::CudaCalls calls(all.cuda);
  Input input;
  add_unit(input, "k", "sm_90", "sm_90a");  // 1,024 bytes of its own
  const base::Bytes bytes = bytes_of(input);
  const Bundle bundle = open_bytes(bytes);
  kc_load_options options = KC_LOAD_OPTIONS_INIT;
  const auto load = [&](uint32_t dynamic) {
    options.dynamic_shared_memory = dynamic;
    return load_kernel(bundle, "k", all.nvidia[0], &options);
  };
  const Outcome within = load(49152 - 1024);
  REQUIRE(within);
  CHECK(all.cuda.count("cuFuncSetAttribute") == 0);
  const Outcome above = load(49152 - 1023);
  REQUIRE(above);
  CHECK(calls.dynamic_shared_memory(above.function()) == 49152 - 1023);
  const Outcome most = load(232448 - 1024);
  REQUIRE(most);
  CHECK(calls.dynamic_shared_memory(above.function()) == 232448 - 1024);
  const Outcome less = load(100'000);
  REQUIRE(less);
  CHECK(calls.dynamic_shared_memory(above.function()) == 232448 - 1024);
  CHECK(all.cuda.count("cuFuncSetAttribute") == 2);

  const Outcome too_much = load(232448 - 1023);
  CHECK(too_much.status == KC_ERROR_ARGUMENT);
  CHECK(contains(too_much.message, "at most 232448"));
  CHECK(load(UINT32_MAX).status == KC_ERROR_ARGUMENT);
  CHECK(all.cuda.count("modules") == 1);
  all.tell_cuda("fail cuFuncSetAttribute 1");
  const Outcome elsewhere = testing::outcome_of([&](kc_kernel** loaded, kc_error** error) {
    options.dynamic_shared_memory = 100'000;
    return kc_load(bundle.get(), "k", nullptr, all.nvidia[1], &options, loaded, error);
  });
  CHECK(elsewhere.status == KC_ERROR_DRIVER);
  CHECK(elsewhere.driver_code == 1);
  CHECK(contains(elsewhere.message, "cuFuncSetAttribute"));
  CHECK(all.cuda.count("modules") == 1);
}

TEST_CASE("HIP has no shared memory to request and refuses more than there is") {
  const Machine& all = machine();
  Input input;
  add_unit(input, "k", "gfx942", "gfx942");
  const base::Bytes bytes = bytes_of(input);
  const Bundle bundle = open_bytes(bytes);
  kc_load_options options = KC_LOAD_OPTIONS_INIT;
  options.dynamic_shared_memory = 65536 - 1024;
  CHECK(load_kernel(bundle, "k", all.amd[0], &options));
  options.dynamic_shared_memory = 65536 - 1023;
  CHECK(load_kernel(bundle, "k", all.amd[0], &options).status == KC_ERROR_ARGUMENT);
  options.context = KC_CONTEXT_CURRENT;
  options.dynamic_shared_memory = 0;
  CHECK(load_kernel(bundle, "k", all.amd[0], &options));
  check_nothing_left(all);
}

TEST_CASE("the caller's current context and device stay as they were") {
  const Machine& all = machine();
  const testing::CudaCalls calls(all.cuda);
  const auto set = all.hip.get<int (*)(int)>("hipSetDevice");
  const auto get = all.hip.get<int (*)(int*)>("hipGetDevice");
  Input input;
  add_unit(input, "k", "sm_90", "sm_90a");
  add_unit(input, "k", "gfx942", "gfx942");
  const base::Bytes bytes = bytes_of(input);
  const Bundle bundle = open_bytes(bytes);
  void* const mine = calls.create(7);
  REQUIRE(calls.push(mine) == 0);
  REQUIRE(set(1) == 0);
  CHECK(load_kernel(bundle, "k", all.nvidia[1]));
  CHECK(load_kernel(bundle, "k", all.amd[0]));
  all.tell_cuda("fail cuLibraryGetKernel 999");
  all.tell_hip("fail hipModuleGetFunction 999");
  CHECK_FALSE(load_kernel(bundle, "k", all.nvidia[1]));
  CHECK_FALSE(load_kernel(bundle, "k", all.amd[0]));
  kc_load_options options = KC_LOAD_OPTIONS_INIT;
  options.context = KC_CONTEXT_CURRENT;
  const Outcome foreign = load_kernel(bundle, "k", all.nvidia[1], &options);
  CHECK(foreign.status == KC_ERROR_ARGUMENT);
  CHECK(contains(foreign.message, "another device than cuda:1"));
  kc_unload_all();
  CHECK(calls.current_context() == mine);
  int device = -1;
  CHECK(get(&device) == 0);
  CHECK(device == 1);
  void* popped = nullptr;
  CHECK(calls.pop(&popped) == 0);
  CHECK(set(0) == 0);
  calls.destroy(mine);
  check_nothing_left(all);
}

TEST_CASE("a device is made once and lives on") {
  const Machine& all = machine();
  for (int i = 0; i < 8; ++i) CHECK(testing::get_device(KC_CUDA, i) == all.nvidia[static_cast<size_t>(i)]);
  const kc_device_info* const info = kc_device_get_info(all.nvidia[testing::kFirstGb10]);
  REQUIRE(info != nullptr);
  CHECK(info->api == KC_CUDA);
  CHECK(info->ordinal == testing::kFirstGb10);
  CHECK(std::string(info->name) == "NVIDIA GB10");
  CHECK(std::string(info->target) == "sm_121");
  CHECK(info->driver_version == 13000);
  CHECK(std::string(info->driver_text) == "CUDA 13.0");
  CHECK(std::string(info->library) == all.cuda.path());
  CHECK(info->memory == 16ULL << 30);
  CHECK(info->max_shared_memory == 49152);
  CHECK(info->max_shared_memory_opt_in == 232448);
  const kc_device_info* const amd = kc_device_get_info(all.amd[0]);
  CHECK(amd->api == KC_HIP);
  CHECK(std::string(amd->target) == "gfx942:sramecc+:xnack-");
  CHECK(std::string(amd->driver_text) == "HIP 6.2.41133");
  int count = -1;
  CHECK(kc_device_count(KC_CUDA, &count, nullptr) == KC_OK);
  CHECK(count == 8);
  CHECK(kc_device_count(KC_HIP, &count, nullptr) == KC_OK);
  CHECK(count == 2);
  const kc_device* none = all.nvidia[0];
  kc_error* error = nullptr;
  CHECK(kc_device_get(KC_CUDA, 8, &none, &error) == KC_ERROR_NO_DEVICE);
  const std::unique_ptr<kc_error, testing::Closer> owned(error);
  CHECK(none == nullptr);
  CHECK(contains(kc_error_message(error), "has 8 devices"));
}

TEST_CASE("wrong arguments of devices and kernels are told by their names") {
  const Machine& all = machine();
  Input input;
  add_unit(input, "k", "sm_90", "sm_90a");
  const base::Bytes bytes = bytes_of(input);
  const Bundle bundle = open_bytes(bytes);
  kc_entry* entry = nullptr;
  REQUIRE(kc_find(bundle.get(), "k", "", "sm_90", &entry, nullptr) == KC_OK);
  const std::unique_ptr<kc_entry, testing::Closer> owned(entry);
  const kc_device* const device = all.nvidia[0];
  const kc_device* got = nullptr;
  int count = 0;
  check_argument([&](kc_error** e) { return kc_device_count(KC_CUDA, nullptr, e); }, "count is NULL");
  check_argument([&](kc_error** e) { return kc_device_get(KC_CUDA, 0, nullptr, e); }, "device is NULL");
  for (const int api : {0, 3}) {
    kc_api wrong;
    std::memcpy(&wrong, &api, sizeof wrong);
    check_argument([&](kc_error** e) { return kc_device_count(wrong, &count, e); }, "no driver API");
    check_argument([&](kc_error** e) { return kc_device_get(wrong, 0, &got, e); }, "no driver API");
  }
  // Any handle that is not null: it must be made so.
  const auto dirty = [] { return reinterpret_cast<kc_kernel*>(uintptr_t{16}); };
  const auto load = [&](const kc_bundle* from, const char* kernel, const kc_device* on,
                        const kc_load_options* options, kc_error** e) {
    kc_kernel* loaded = dirty();
    const kc_status status = kc_load(from, kernel, nullptr, on, options, &loaded, e);
    CHECK(loaded == nullptr);
    return status;
  };
  check_argument([&](kc_error** e) { return load(nullptr, "k", device, nullptr, e); }, "bundle is NULL");
  check_argument([&](kc_error** e) { return load(bundle.get(), nullptr, device, nullptr, e); },
                 "kernel is NULL");
  check_argument([&](kc_error** e) { return load(bundle.get(), "k", nullptr, nullptr, e); },
                 "device is NULL");
  check_argument(
      [&](kc_error** e) { return kc_load(bundle.get(), "k", nullptr, device, nullptr, nullptr, e); },
      "loaded is NULL");
  check_argument([&](kc_error** e) { return kc_load_entry(entry, device, nullptr, nullptr, e); },
                 "loaded is NULL");
  const auto load_entry = [&](const kc_entry* from, const kc_device* on, kc_error** e) {
    kc_kernel* loaded = dirty();
    const kc_status status = kc_load_entry(from, on, nullptr, &loaded, e);
    CHECK(loaded == nullptr);
    return status;
  };
  check_argument([&](kc_error** e) { return load_entry(nullptr, device, e); }, "entry is NULL");
  check_argument([&](kc_error** e) { return load_entry(entry, nullptr, e); }, "device is NULL");

  kc_load_options options = KC_LOAD_OPTIONS_INIT;
  options.struct_size = 0;
  check_argument([&](kc_error** e) { return load(bundle.get(), "k", device, &options, e); }, "struct_size");
  options.struct_size = sizeof options;
  const int nonsense = 7;
  std::memcpy(&options.context, &nonsense, sizeof nonsense);
  check_argument([&](kc_error** e) { return load(bundle.get(), "k", device, &options, e); }, "context is 7");

  CHECK(kc_kernel_function(nullptr) == nullptr);
  CHECK(kc_kernel_entry(nullptr) == nullptr);
  CHECK(kc_device_get_info(nullptr) == nullptr);
  kc_kernel_release(nullptr);
  CHECK(all.cuda.count("cuLibraryLoadData") == 0);
}

TEST_CASE("options of older and newer callers are understood as far as they go") {
  const Machine& all = machine();
  const testing::CudaCalls calls(all.cuda);
  Input input;
  add_unit(input, "k", "sm_90", "sm_90a");
  const base::Bytes bytes = bytes_of(input);
  const Bundle bundle = open_bytes(bytes);
  struct Newer {
    kc_load_options known;
    uint64_t more;
  } newer = {KC_LOAD_OPTIONS_INIT, 0};
  newer.known.struct_size = sizeof newer;
  newer.known.dynamic_shared_memory = 100'000;
  {
    const Outcome outcome = load_kernel(bundle, "k", all.nvidia[0], &newer.known);
    CHECK(outcome);
    CHECK(calls.dynamic_shared_memory(outcome.function()) == 100'000);
  }
  newer.more = uint64_t{1} << 32;
  const Outcome unknown = load_kernel(bundle, "k", all.nvidia[0], &newer.known);
  CHECK(unknown.status == KC_ERROR_ARGUMENT);
  CHECK(contains(unknown.message, "a newer libkcload is needed"));
  // One from before there was a wish for shared memory.
  newer.known.struct_size = offsetof(kc_load_options, dynamic_shared_memory);
  {
    const Outcome outcome = load_kernel(bundle, "k", all.nvidia[0], &newer.known);
    CHECK(outcome);
    CHECK(calls.dynamic_shared_memory(outcome.function()) == 0);
  }
  check_nothing_left(all);
}

TEST_CASE("a context that cannot be had is a failure of the driver and the next call tries again") {
  const Machine& all = machine();
  all.tell_cuda("fail cuDevicePrimaryCtxRetain 2 at 1");
  Input input;
  add_unit(input, "k", "sm_90", "sm_90a");
  const base::Bytes bytes = bytes_of(input);
  const Bundle bundle = open_bytes(bytes);
  const Outcome failed = load_kernel(bundle, "k", all.nvidia[0]);
  CHECK(failed.status == KC_ERROR_DRIVER);
  CHECK(failed.driver_code == 2);
  CHECK(contains(failed.message, "could not get the primary context of cuda:0"));
  CHECK(load_kernel(bundle, "k", all.nvidia[0]));
  check_nothing_left(all);
}

}  // namespace kc::loader
