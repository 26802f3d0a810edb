// kc/loader.hpp: handles that release themselves, errors thrown or told.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kc/loader.hpp"
#include "unit/loader/kernel_support.h"

namespace kc::loader::testing {
namespace {

base::Bytes two_kernels() {
  Input input;
  add_unit(input, "matmul", "sm_90", "sm_90", "TM=64");
  add_unit(input, "vec_add", "sm_90", "sm_90");
  add_unit(input, "vec_add", "gfx942", "gfx942");
  input.records[0].metadata = {{"owner", std::string("a\0b", 3)}};
  return bytes_of(input);
}

kcload::Bundle opened(const base::Bytes& bytes) {
  return kcload::Bundle::open_memory(bytes.data(), bytes.size());
}

}  // namespace

TEST_CASE("an iteration gives each entry once with its texts") {
  const base::Bytes bytes = two_kernels();
  const kcload::Bundle bundle = opened(bytes);
  std::vector<std::string> units;
  for (const kcload::Entry& entry : bundle) units.emplace_back(entry.unit());
  CHECK(units == std::vector<std::string>{"matmul:TM=64@sm_90", "vec_add@gfx942", "vec_add@sm_90"});
  CHECK(bundle.entry_count() == 3);
  CHECK(bundle.file_count() == 1);
  CHECK(bundle.file().entry_count == 3);
  const kcload::Entry matmul = bundle.entry(0);
  CHECK(matmul.kernel() == "matmul");
  CHECK(matmul.configuration() == "TM=64");
  CHECK(matmul.metadata("owner") == std::string_view("a\0b", 3));
  CHECK(!matmul.metadata("other"));
  CHECK(!matmul.when());
  CHECK(matmul.read().size() == matmul.info().code_size);
  CHECK(matmul.fit("sm_90") == KC_FIT_EXACT);
  CHECK(matmul.fit("sm_80") == KC_FIT_NONE);
  bundle.verify();
}

TEST_CASE("nothing as the configuration is the default and an empty one is a kernel without") {
  const base::Bytes bytes = two_kernels();
  const kcload::Bundle bundle = opened(bytes);
  CHECK(bundle.find("matmul", std::nullopt, "sm_90").unit() == "matmul:TM=64@sm_90");
  CHECK(bundle.find("matmul", "TM=64", "sm_90").unit() == "matmul:TM=64@sm_90");
  CHECK(bundle.find("vec_add", "", "gfx942").unit() == "vec_add@gfx942");
  kcload::Error error;
  CHECK(!bundle.find("matmul", "", "sm_90", error));
  CHECK(error.status() == KC_ERROR_NOT_FOUND);
}

TEST_CASE("what fails is thrown with its whole explanation and copies of it share that") {
  const base::Bytes bytes = two_kernels();
  const kcload::Bundle bundle = opened(bytes);
  kcload::Error kept;
  try {
    static_cast<void>(bundle.find("matmull", {}, "sm_90"));
    FAIL("nothing was thrown");
  } catch (const kcload::Error& error) {
    kept = error;
  }
  CHECK(kept);
  CHECK(kept.status() == KC_ERROR_NOT_FOUND);
  CHECK(std::string(kept.what()).find("matmul") != std::string::npos);
  CHECK_THROWS_AS(kcload::Bundle::open("/nowhere/b.kcb"), std::exception);
  CHECK_THROWS_AS(static_cast<void>(bundle.entry(3)), kcload::Error);
}

TEST_CASE("the form that does not throw tells success too and returns empty handles on failure") {
  const base::Bytes bytes = two_kernels();
  kcload::Error error(KC_ERROR_MEMORY, nullptr);
  CHECK(std::string(error.what()) == "out of memory");
  const kcload::Bundle bundle = kcload::Bundle::open_memory(bytes.data(), bytes.size(), {}, error);
  CHECK(!error);
  CHECK(std::string(error.what()) == "no error");
  CHECK(bundle);
  CHECK(!kcload::Bundle::open("/nowhere/b.kcb", {}, error));
  CHECK(error.status() == KC_ERROR_IO);
  CHECK(bundle.verify(error));
  CHECK(!error);
}

TEST_CASE("a policy says all that the one of C does") {
  Input input;
  add_unit(input, "k", "sm_90", "sm_90");
  input.info = {"demo", 7, true, false};
  const base::Bytes bytes = bytes_of(input);
  const auto status = [&](const kcload::Policy& policy) {
    kcload::Error error;
    const kcload::Bundle bundle = kcload::Bundle::open_memory(bytes.data(), bytes.size(), policy, error);
    CHECK(static_cast<bool>(bundle) == !error);
    return error.status();
  };
  kcload::Policy policy;
  CHECK(status(policy) == KC_ERROR_POLICY);
  policy.allow_partial = true;
  CHECK(status(policy) == KC_OK);
  policy.name = "demo";
  policy.min_release = 7;
  policy.max_file_size = bytes.size();
  CHECK(status(policy) == KC_OK);
  policy.min_release = 8;
  CHECK(status(policy) == KC_ERROR_POLICY);
  policy.min_release = 0;
  policy.name = "";
  CHECK(status(policy) == KC_ERROR_POLICY);
  policy.name.reset();
  policy.max_file_size = bytes.size() - 1;
  CHECK(status(policy) == KC_ERROR_POLICY);
  policy.max_file_size = 0;
  policy.keys.emplace_back();
  CHECK(status(policy) == KC_ERROR_UNTRUSTED);
  policy.keys.clear();
  policy.required_signatures = 1;
  CHECK(status(policy) == KC_ERROR_ARGUMENT);
  policy.required_signatures = 0;
  policy.key_files.emplace_back("/nowhere/release.pub");
  CHECK(status(policy) != KC_OK);
}

TEST_CASE("a kernel outlives its bundle and device and entry are told by it") {
  Machine& all = machine();
  {
    const base::Bytes bytes = two_kernels();
    kcload::Kernel kernel;
    CHECK(!kernel);
    {
      const kcload::Bundle bundle = opened(bytes);
      const kcload::Device device = kcload::Device::get(KC_CUDA, 0);
      CHECK(device.target() == "sm_90");
      CHECK(device.name() == "NVIDIA H200");
      kernel = bundle.load("matmul", "TM=64", device);
      const kcload::Kernel same = bundle.entry(0).load(device);
      CHECK(same.function() == kernel.function());
    }
    CHECK(kernel.function() != nullptr);
    CHECK(kernel.entry().unit() == "matmul:TM=64@sm_90");
    kcload::Kernel moved = std::move(kernel);
    CHECK(!kernel);
    CHECK(moved.function<char*>() != nullptr);
    CHECK(all.cuda.count("modules") == 1);
    moved.release();
    CHECK(all.cuda.count("modules") == 0);
    kcload::unload_all();
  }
  check_nothing_left(all);
}

TEST_CASE("devices are counted and listed and one that is not there is told") {
  machine();
  CHECK(kcload::Device::count(KC_CUDA) == 8);
  const std::vector<kcload::Device> amd = kcload::Device::all(KC_HIP);
  REQUIRE(amd.size() == 2);
  CHECK(amd[1].target() == "gfx1151");
  kcload::Error error;
  CHECK(!kcload::Device::get(KC_CUDA, 8, error));
  CHECK(error.status() == KC_ERROR_NO_DEVICE);
  CHECK_THROWS_AS(static_cast<void>(kcload::Device::get(KC_HIP, -1)), kcload::Error);
}

TEST_CASE("joined bundles are looked through in their order and the parts may be closed") {
  Input first, second;
  add_unit(first, "k", "sm_90", "sm_90");
  add_unit(second, "k", "sm_90", "sm_90a");
  add_unit(second, "l", "sm_90", "sm_90");
  const base::Bytes first_bytes = bytes_of(first), second_bytes = bytes_of(second);
  kcload::Bundle a = opened(first_bytes), b = opened(second_bytes);
  const kcload::Bundle set = kcload::Bundle::join({&a, &b});
  a.close();
  b = kcload::Bundle();
  CHECK(set.file_count() == 2);
  CHECK(set.entry_count() == 3);
  CHECK(set.find("l", "", "sm_90").kernel() == "l");
  CHECK_THROWS_AS(static_cast<void>(kcload::Bundle::join({})), kcload::Error);
  kcload::Error error;
  CHECK(!kcload::Bundle::join({nullptr}, error));
  CHECK(error.status() == KC_ERROR_ARGUMENT);
}

TEST_CASE("entries can be moved and what was moved from is empty") {
  const base::Bytes bytes = two_kernels();
  kcload::Bundle bundle = opened(bytes);
  kcload::Entry a = bundle.entry(0), b = bundle.entry(1);
  bundle.close();
  b = std::move(a);
  CHECK(!a);
  CHECK(b.unit() == "matmul:TM=64@sm_90");
  kcload::Entry c(std::move(b));
  CHECK(!b);
  CHECK(c.read().size() == c.info().code_size);
}

}  // namespace kc::loader::testing
