// What a refusal tells people. Cases K01 and K03: the driver's words alone had led them astray.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "loader/refusal.h"
#include "unit/loader/driver_support.h"

namespace kc::loader {
namespace {

using testing::contains;

Device nvidia(const std::string& target, int version) {
  Device device;
  device.api = KC_CUDA;
  device.ordinal = 1;
  device.name = "NVIDIA GB10";
  device.target = *target::parse_target(target);
  device.driver_version = version;
  device.driver_text = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  return device;
}

Device amd(const std::string& target) {
  Device device;
  device.api = KC_HIP;
  device.ordinal = 0;
  device.name = "AMD Radeon 8060S";
  device.target = *target::parse_target(target);
  device.driver_version = 60241133;
  device.driver_text = "HIP 6.2.41133";
  return device;
}

Entry entry_for(const std::string& target, const std::string& found, const std::string& toolkit = "13.4") {
  Entry entry;
  entry.record = testing::make_record("b", "TM=64", target);
  entry.record.found_target = found;
  entry.record.toolkit = toolkit;
  entry.record.lowest_driver = toolkit.starts_with("13.") ? 580 : 0;
  return entry;
}

Refusal answer(int code, const std::string& name = "CUDA_ERROR_X",
               const std::string& text = "the driver's words") {
  return {code, name, text, "", "cuLibraryGetKernel"};
}

void check_has_all(const Failure& failure, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    CAPTURE(part);
    CAPTURE(failure.message);
    CHECK(contains(failure.message, part));
  }
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("K01: code that the rule lets run and the driver refuses asks for the exact target") {
  const Entry refused = entry_for("sm_120", "sm_120");
  const Failure failure =
      explain_refusal(answer(209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available"), refused,
                      {refused}, nvidia("sm_121", 13000), {"sm_120", "sm_90 (assembled for sm_90a)"});
  CHECK(failure.status == KC_ERROR_NO_CODE);
  CHECK(failure.driver_code == 209);
  check_has_all(failure,
                {"kernel \"b\" with TM=64", "cuda:1 (NVIDIA GB10, sm_121; driver: CUDA 13.0)",
                 "code for sm_120, made by toolkit 13.4",
                 "error 209, CUDA_ERROR_NO_BINARY_FOR_GPU, from cuLibraryGetKernel: no kernel image is "
                 "available",
                 "the bundle has this kernel for: sm_120, sm_90 (assembled for sm_90a)",
                 "add sm_121 to the manifest's targets"});
}

TEST_CASE("K03: every refusal has one likely cause with its cure and all that is known") {
  const Entry refused = entry_for("sm_90", "sm_90a");
  for (const int version : {12080, 13000}) {
    for (const int code : {221, 222, 209, 200, 300, 999, 218, 301, 500}) {
      CAPTURE(version);
      CAPTURE(code);
      const Failure failure = explain_refusal(answer(code), refused, {refused}, nvidia("sm_90", version));
      CHECK(failure.driver_code == code);
      check_has_all(failure, {"kernel \"b\"", "NVIDIA GB10", version == 12080 ? "CUDA 12.8" : "CUDA 13.0",
                              "toolkit 13.4", "error " + std::to_string(code), "CUDA_ERROR_X",
                              "the driver's words", "sm_90a"});
      CHECK(count_of(failure.message, "likely cause: ") == 1);
      CHECK(count_of(failure.message, "cure: ") == 1);
      CHECK(failure.message.back() != '\n');
      if (version == 12080) {
        CHECK(failure.status == KC_ERROR_DRIVER_TOO_OLD);
        check_has_all(failure,
                      {"older than the toolkit that made the code (13.4)", "NVIDIA driver 580 or newer"});
      } else {
        CHECK(failure.status == (code == 209 ? KC_ERROR_NO_CODE : KC_ERROR_DRIVER));
        CHECK_FALSE(contains(failure.message, "580"));
      }
    }
  }
}

TEST_CASE("K03: a new enough driver that asks for a JIT compiler has incomplete files") {
  const Entry refused = entry_for("sm_90", "sm_90a");
  for (const int code : {221, 222}) {
    const Failure failure = explain_refusal(answer(code), refused, {refused}, nvidia("sm_90", 13000));
    check_has_all(failure, {"incomplete or of different versions", "needs no JIT compiler",
                            "libnvidia-ptxjitcompiler", "nvidia-container-toolkit"});
  }
  for (const int code : {200, 300, 999}) {
    const Failure failure = explain_refusal(answer(code), refused, {refused}, nvidia("sm_90", 13000));
    check_has_all(failure, {"incomplete or of different versions", "nvidia-container-toolkit"});
  }
}

TEST_CASE(
    "a driver is too old by the toolkit's major version or the lowest driver and not by the minor one") {
  const auto status_of = [](const Entry& entry, int version) {
    return explain_refusal(answer(200), entry, {entry}, nvidia("sm_90", version)).status;
  };
  CHECK(status_of(entry_for("sm_90", "sm_90", "13.4"), 13000) == KC_ERROR_DRIVER);
  CHECK(status_of(entry_for("sm_90", "sm_90", "13.4"), 12090) == KC_ERROR_DRIVER_TOO_OLD);
  CHECK(status_of(entry_for("sm_90", "sm_90", "12.9"), 12000) == KC_ERROR_DRIVER);
  CHECK(status_of(entry_for("sm_90", "sm_90", "12.9"), 11080) == KC_ERROR_DRIVER_TOO_OLD);
  CHECK(status_of(entry_for("sm_90", "sm_90", "14.0"), 13000) == KC_ERROR_DRIVER_TOO_OLD);
  CHECK(status_of(entry_for("sm_90", "sm_90", ""), 11080) == KC_ERROR_DRIVER);
  CHECK(status_of(entry_for("sm_90", "sm_90", "nonsense"), 11080) == KC_ERROR_DRIVER);
  Entry by_branch = entry_for("sm_90", "sm_90", "");
  by_branch.record.lowest_driver = 580;
  CHECK(status_of(by_branch, 12090) == KC_ERROR_DRIVER_TOO_OLD);
  CHECK(status_of(by_branch, 13000) == KC_ERROR_DRIVER);

  const auto message_of = [](const Entry& entry, int version) {
    return explain_refusal(answer(200), entry, {entry}, nvidia("sm_90", version)).message;
  };
  CHECK(contains(message_of(entry_for("sm_90", "sm_90", "12.9"), 11080), "NVIDIA driver 525 or newer"));
  CHECK(contains(message_of(entry_for("sm_90", "sm_90", "14.0"), 13000), "a driver of CUDA 14 or newer"));
  CHECK(contains(message_of(by_branch, 12090), "made the code (CUDA 13)"));
}

TEST_CASE("what has nothing to do with the code is not put down to the driver's age") {
  const Entry refused = entry_for("sm_90", "sm_90a");
  for (const auto& [code, cause] : std::vector<std::pair<int, std::string>>{{2, "no memory left"},
                                                                            {46, "for itself"},
                                                                            {201, "destroyed"},
                                                                            {709, "kc_unload_all"},
                                                                            {719, "ran before this"},
                                                                            {803, "different versions"},
                                                                            {304, "permissions"}}) {
    CAPTURE(code);
    const Failure failure = explain_refusal(answer(code), refused, {refused}, nvidia("sm_90", 12080));
    CHECK(failure.status == KC_ERROR_DRIVER);
    check_has_all(failure, {cause, "toolkit 13.4"});
  }
  // A number that nobody knows has no cause rather than a wrong one.
  const Failure unknown = explain_refusal(answer(12345, "", ""), refused, {refused}, nvidia("sm_90", 13000));
  CHECK(contains(unknown.message, "error 12345, from cuLibraryGetKernel\n"));
  CHECK_FALSE(contains(unknown.message, "likely cause"));
}

TEST_CASE("the driver's log and other refused candidates are told") {
  const Entry first = entry_for("sm_121", "sm_121");
  const Entry second = entry_for("sm_120", "sm_120");
  Refusal refusal = answer(209);
  refusal.log = "line one\nline two";
  const Failure failure = explain_refusal(refusal, first, {first, second}, nvidia("sm_121", 13000));
  check_has_all(failure, {"its log: line one\n    line two", "refused code for sm_121",
                          "refused too: code for sm_120", "the bundle has this kernel for: sm_120, sm_121"});
  // Adding the target that is there already would not help.
  CHECK_FALSE(contains(failure.message, "add sm_121"));
  check_has_all(failure, {"update the NVIDIA driver"});
}

TEST_CASE("refusals of the HIP runtime lead to ROCm or to the exact target") {
  Entry generic = entry_for("gfx11-generic", "gfx11-generic", "");
  generic.record.lowest_driver = 0;
  Failure failure =
      explain_refusal(answer(209, "hipErrorNoBinaryForGpu"), generic, {generic}, amd("gfx1151"));
  CHECK(failure.status == KC_ERROR_NO_CODE);
  check_has_all(failure, {"hip:0 (AMD Radeon 8060S, gfx1151; driver: HIP 6.2.41133)", "add gfx1151",
                          "ROCm before 6.3", "an unknown toolkit"});
  Entry exact = entry_for("gfx1151", "gfx1151", "");
  failure = explain_refusal(answer(200, "hipErrorInvalidImage"), exact, {exact}, amd("gfx1151"));
  CHECK(failure.status == KC_ERROR_DRIVER);
  check_has_all(failure, {"update ROCm"});
  failure = explain_refusal(answer(500), exact, {exact}, amd("gfx1151"));
  check_has_all(failure, {"no function \"b\"", "build the bundle again"});
}

TEST_CASE("which refusals let another candidate be tried") {
  const auto speaks = [](kc_api api, int code) { return speaks_of_code(api, answer(code)); };
  for (const int code : {200, 209, 218, 300, 301, 500, 999}) {
    CHECK(speaks(KC_CUDA, code));
    CHECK(speaks(KC_HIP, code));
  }
  for (const int code : {221, 222}) {
    CHECK(speaks(KC_CUDA, code));
    CHECK_FALSE(speaks(KC_HIP, code));
  }
  for (const int code : {98, 302, 303}) {
    CHECK(speaks(KC_HIP, code));
    CHECK_FALSE(speaks(KC_CUDA, code));
  }
  for (const int code : {1, 2, 3, 4, 46, 100, 101, 201, 400, 700, 709, 719, 803}) {
    CHECK_FALSE(speaks(KC_CUDA, code));
    CHECK_FALSE(speaks(KC_HIP, code));
  }
}

TEST_CASE("when nothing fits the error says what there is and what to add") {
  Failure failure = explain_no_code("c", "", *target::parse_target("sm_121"), {"sm_120a", "sm_90a"});
  CHECK(failure.status == KC_ERROR_NO_CODE);
  CHECK(failure.driver_code == 0);
  check_has_all(failure, {"kernel \"c\" has no code that runs on sm_121; it has code for sm_120a, sm_90a",
                          "code for sm_120a runs on sm_120 alone", "add sm_121 to the manifest's targets"});
  failure = explain_no_code("c", "TM=64", *target::parse_target("sm_80"), {"sm_90a"});
  check_has_all(failure, {"kernel \"c\" with TM=64 has no code that runs on sm_80"});
  CHECK_FALSE(contains(failure.message, "alone"));
  // Features are not part of what a manifest asks for.
  failure = explain_no_code("c", "", *target::parse_target("gfx942:sramecc+:xnack-"), {"gfx90a", "gfx90a"});
  check_has_all(failure, {"runs on gfx942:sramecc+:xnack-; it has code for gfx90a\n", "add gfx942 to"});
}

TEST_CASE("long lists of targets are cut and say how much was") {
  std::vector<std::string> many;
  for (const std::string_view name : target::amd_processors()) many.emplace_back(name);
  const Failure failure = explain_no_code("c", "", *target::parse_target("sm_90"), many);
  check_has_all(failure, {" and " + std::to_string(many.size() - 12) + " more"});
  CHECK(failure.message.size() < 500);
}

TEST_CASE("a call that fails outside of a load is told with its cause") {
  const Failure failure = explain_call(KC_CUDA, {999, "CUDA_ERROR_UNKNOWN", "unknown error", "", "cuInit"},
                                       "start the driver", "/lib/libcuda.so.1");
  CHECK(failure.status == KC_ERROR_DRIVER);
  check_has_all(failure, {"the NVIDIA driver (/lib/libcuda.so.1) could not start the driver: error 999, "
                          "CUDA_ERROR_UNKNOWN, from cuInit: unknown error",
                          "likely cause: ", "/dev/nvidia-uvm"});
  CHECK(explain_call(KC_HIP, {101, "", "", "", "hipInit"}, "start", "l").status == KC_ERROR_NO_DEVICE);
  CHECK(explain_call(KC_HIP, {34, "", "", "", "hipInit"}, "start", "l").status == KC_ERROR_DRIVER);
}

}  // namespace kc::loader
