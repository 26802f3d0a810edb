// What the tests of drivers and loaded kernels share: the stand-ins for drivers in this process, and bundles
// of code objects that these take.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kc/loader.h"
#include "loader/bundles.h"
#include "loader/driver.h"
#include "support/cubin_writer.h"
#include "support/hsaco_writer.h"
#include "unit/bundle/bundle_support.h"

namespace kc::loader::testing {

using bundle::testing::Folder;
using bundle::testing::Input;
using bundle::testing::make_record;

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::string stub_path(const std::string& variant) {
  const bool cuda = variant.starts_with("cuda");
  return std::string(KC_STUB_DRIVERS) + "/" + variant + (cuda ? "/libcuda.so.1" : "/libamdhip64.so.6");
}

/// One of the stand-ins, tests/support/stub_driver/control.h, told nothing until tell().
class Stub {
 public:
  explicit Stub(const std::string& variant) : path_(stub_path(variant)) {
    // Never closed: as a driver's library, it stays.
    library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library_ != nullptr, path_);
    reset();
    tell("");
  }

  const std::string& path() const { return path_; }
  void tell(const std::string& text) const { get<void (*)(const char*)>("kc_stub_tell")(text.c_str()); }
  void reset() const { get<void (*)()>("kc_stub_reset")(); }
  void release() const { get<void (*)()>("kc_stub_release")(); }
  long count(const std::string& name) const {
    return get<long (*)(const char*)>("kc_stub_count")(name.c_str());
  }
  /// Until so many calls wait in a function that is held.
  void await_waiting(long calls) const {
    while (count("waiting") != calls) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  template <typename Function>
  Function get(const char* name) const {
    void* const address = dlsym(library_, name);
    REQUIRE_MESSAGE(address != nullptr, name);
    return reinterpret_cast<Function>(address);
  }

 private:
  std::string path_;
  void* library_ = nullptr;
};

/// Calls of the driver made by the test itself.
struct CudaCalls {
  explicit CudaCalls(const Stub& stub)
      : push(stub.get<int (*)(void*)>("cuCtxPushCurrent_v2")),
        pop(stub.get<int (*)(void**)>("cuCtxPopCurrent_v2")),
        current(stub.get<int (*)(void**)>("cuCtxGetCurrent")),
        create(stub.get<void* (*)(int)>("kc_stub_create_context")),
        destroy(stub.get<void (*)(void*)>("kc_stub_destroy_context")),
        dynamic_shared_memory(stub.get<int (*)(void*)>("kc_stub_dynamic_shared_memory")) {}
  void* current_context() const {
    void* context = nullptr;
    REQUIRE(current(&context) == 0);
    return context;
  }

  int (*push)(void*);
  int (*pop)(void**);
  int (*current)(void**);
  void* (*create)(int);
  void (*destroy)(void*);
  int (*dynamic_shared_memory)(void*);
};

/// A kernel's code for NVIDIA: different for each `seed`.
inline base::Bytes cubin_for(uint32_t sm, const std::string& architecture, const std::string& symbol,
                             uint32_t seed) {
  test::Cubin cubin;
  cubin.sm = sm;
  cubin.architecture = architecture;
  cubin.kernels[0].symbol = symbol;
  cubin.kernels[0].text = bundle::testing::noise(seed, 256);
  return test::write_cubin(cubin);
}
inline base::Bytes hsaco_for(const std::string& target, const std::string& symbol, uint32_t seed) {
  test::Hsaco hsaco;
  hsaco.target = target;
  hsaco.kernels[0].symbol = symbol;
  hsaco.kernels[0].text = bundle::testing::noise(seed, 256);
  return test::write_hsaco(hsaco);
}

/// Adds one unit with code that a stand-in takes; `found` is what the code says that it was assembled for.
inline void add_unit(Input& input, const std::string& kernel, const std::string& target,
                     const std::string& found, const std::string& specialization = "") {
  const auto parsed = target::parse_target(found);
  REQUIRE(parsed);
  bundle::Record record = make_record(kernel, specialization, target);
  record.found_target = found;
  record.is_default = true;
  record.facts.shared_memory = 1024;
  const auto seed = static_cast<uint32_t>(input.records.size() + 1);
  if (parsed->vendor == target::Vendor::kNvidia) {
    input.add(record, cubin_for(parsed->sm, found, kernel, seed));
  } else {
    record.backend = record.compiler = "loom";
    record.toolkit.clear();
    record.lowest_driver = 0;
    input.add(record, hsaco_for(found, kernel, seed));
  }
}

inline base::Bytes bytes_of(const Input& input) {
  const Folder folder;
  const auto written = input.write(folder / "b.kcb");
  REQUIRE_MESSAGE(written, written.error().text());
  return bundle::testing::read_all(folder / "b.kcb");
}

struct Closer {
  void operator()(kc_bundle* bundle) const { kc_close(bundle); }
  void operator()(kc_kernel* kernel) const { kc_kernel_release(kernel); }
  void operator()(kc_entry* entry) const { kc_entry_free(entry); }
  void operator()(kc_error* error) const { kc_error_free(error); }
};
using Bundle = std::unique_ptr<kc_bundle, Closer>;
using LoadedKernel = std::unique_ptr<kc_kernel, Closer>;

inline Bundle open_bytes(const base::Bytes& bytes) {
  kc_bundle* bundle = nullptr;
  REQUIRE(kc_open_memory(bytes.data(), bytes.size(), nullptr, &bundle, nullptr) == KC_OK);
  return Bundle(bundle);
}

/// What a C function answered.
struct Outcome {
  kc_status status = KC_OK;
  std::string message;
  int driver_code = 0;
  LoadedKernel kernel;

  explicit operator bool() const { return status == KC_OK; }
  void* function() const { return kc_kernel_function(kernel.get()); }
};

template <typename Call>
Outcome outcome_of(const Call& call) {
  kc_kernel* kernel = nullptr;
  kc_error* error = nullptr;
  Outcome out;
  out.status = call(&kernel, &error);
  out.kernel.reset(kernel);
  const std::unique_ptr<kc_error, Closer> owned(error);
  if (error != nullptr) {
    out.message = kc_error_message(error);
    out.driver_code = kc_error_driver_code(error);
  }
  CHECK((out.status == KC_OK) == (error == nullptr));
  CHECK((out.status == KC_OK) == (kernel != nullptr));
  return out;
}

inline Outcome load_kernel(const Bundle& bundle, const char* kernel, const kc_device* device,
                           const kc_load_options* options = nullptr, const char* configuration = nullptr) {
  return outcome_of([&](kc_kernel** loaded, kc_error** error) {
    return kc_load(bundle.get(), kernel, configuration, device, options, loaded, error);
  });
}

inline const kc_device* get_device(kc_api api, int ordinal) {
  const kc_device* device = nullptr;
  kc_error* error = nullptr;
  const kc_status status = kc_device_get(api, ordinal, &device, &error);
  const std::unique_ptr<kc_error, Closer> owned(error);
  REQUIRE_MESSAGE(status == KC_OK, std::string(kc_error_message(error)));
  return device;
}

}  // namespace kc::loader::testing
