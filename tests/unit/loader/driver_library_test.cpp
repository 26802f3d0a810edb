// Where drivers are looked for and what is said when none is there.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "loader/cuda_driver.h"
#include "loader/driver_library.h"
#include "loader/hip_driver.h"
#include "unit/loader/driver_support.h"

namespace kc::loader {
namespace {

using testing::contains;

const char* const kNowhere[] = {"libkc-nowhere.so.1", "/nowhere/libkc-nowhere.so.1"};

}  // namespace

TEST_CASE("without a driver the error names each place and why it would not do") {
  const testing::Folder folder;
  bundle::testing::write_file(folder / "libtext.so", base::Bytes(100, 'x'));
  const std::string text = folder / "libtext.so";
  const std::string lacking = testing::stub_path("cuda_without_cuInit");
  const char* const places[] = {kNowhere[0], kNowhere[1], text.c_str(), lacking.c_str()};
  const auto driver = open_cuda_driver(places);
  REQUIRE_FALSE(driver);
  CHECK(driver.error().status == KC_ERROR_NO_DRIVER);
  CHECK(driver.error().driver_code == 0);
  const std::string& message = driver.error().message;
  CHECK(contains(message, "\n  libkc-nowhere.so.1: cannot open shared object file"));
  CHECK(contains(message, "\n  /nowhere/libkc-nowhere.so.1: cannot open shared object file"));
  CHECK(contains(message, "\n  " + text + ": "));
  CHECK(contains(message, "\n  " + lacking + ": " + lacking + " lacks cuInit"));
  CHECK(contains(message, "install the NVIDIA driver"));
}

TEST_CASE("a later place is taken where an earlier one has no usable library") {
  const std::string lacking = testing::stub_path("cuda_without_cuModuleUnload");
  const testing::Stub whole("cuda");
  const char* const places[] = {kNowhere[0], lacking.c_str(), whole.path().c_str()};
  const auto driver = open_cuda_driver(places);
  REQUIRE(driver);
  const auto device = (*driver)->device(0);
  REQUIRE(device);
  CHECK(device->library == whole.path());
}

TEST_CASE("the HIP runtime is looked for by version and never without one") {
  const auto driver = open_hip_driver(kNowhere);
  REQUIRE_FALSE(driver);
  CHECK(contains(driver.error().message, "HIP runtime"));
  CHECK(contains(driver.error().message, "libkc-nowhere.so.1"));
  for (const char* const place : kHipPlaces) CHECK(contains(place, ".so."));
  for (const char* const place : kCudaPlaces) CHECK(contains(place, "libcuda.so.1"));
  CHECK(std::string(kCudaPlaces[0]) == "libcuda.so.1");
  CHECK(std::string(kHipPlaces[0]) == "libamdhip64.so.7");
}

TEST_CASE("slots are null after a failure and where an optional function is missing") {
  const std::string path = testing::stub_path("cuda_without_cuInit");
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  const char* const places[] = {path.c_str()};
  const Symbol needed[] = {{"cuDriverGetVersion", Need::kRequired, &version},
                           {"cuInit", Need::kRequired, &init}};
  CHECK_FALSE(open_driver_library("driver", places, needed, "install one"));
  CHECK((version == nullptr));
  CHECK((init == nullptr));
  const Symbol wished[] = {{"cuDriverGetVersion", Need::kRequired, &version},
                           {"cuInit", Need::kOptional, &init}};
  CHECK(open_driver_library("driver", places, wished, "install one"));
  CHECK((version != nullptr));
  CHECK((init == nullptr));
}

TEST_CASE("of alternatives one is enough and none is told with all their names") {
  const std::string path = testing::stub_path("cuda");
  const char* const places[] = {path.c_str()};
  void* slots[5] = {};
  const Symbol enough[] = {{"kcNone", Need::kEither, &slots[0]},
                           {"cuInit", Need::kEither, &slots[1]},
                           {"cuDeviceGet", Need::kRequired, &slots[2]},
                           {"cuDeviceGetName", Need::kEither, &slots[3]},
                           {"kcNeither", Need::kEither, &slots[4]}};
  CHECK(open_driver_library("driver", places, enough, "install one"));
  CHECK(slots[0] == nullptr);
  CHECK(slots[1] != nullptr);
  CHECK(slots[3] != nullptr);
  const Symbol none[] = {{"kcNone", Need::kEither, &slots[0]},
                         {"kcNeither", Need::kEither, &slots[1]},
                         {"kcThird", Need::kRequired, &slots[2]}};
  const auto failed = open_driver_library("driver", places, none, "install one");
  REQUIRE_FALSE(failed);
  CHECK(contains(failed.error().message, "lacks kcNone or kcNeither, kcThird"));
}

TEST_CASE("texts of drivers do not reach a terminal as commands") {
  CHECK(plain_text("a\x1b[31mb\x07\tc\r\n") == "a?[31mb? c?");
  CHECK(plain_text("one\ntwo\n\n", true) == "one\ntwo");
  CHECK(plain_text("one\ntwo") == "one two");
  CHECK(plain_text("") == "");
}

}  // namespace kc::loader
