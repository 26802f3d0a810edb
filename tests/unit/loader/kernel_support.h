// The machine that tests of loaded kernels run on: eight NVIDIA devices of three kinds, two of AMD. The
// library makes a kc_device once in a process, so all tests of one process share them.
#pragma once

#include <array>
#include <string>

#include "unit/loader/driver_support.h"

namespace kc::loader::testing {

inline constexpr int kFirstH200 = 0;  // 0 to 2, sm_90; driver CUDA 13.0
inline constexpr int kOldDriver = 2;  // an H200 made while the driver said CUDA 12.8
inline constexpr int kFirstGb10 = 3;  // 3 to 5, sm_121
inline constexpr int kFirstA10 = 6;   // 6 and 7, sm_86

struct Machine {
  Stub cuda{"cuda"};
  Stub hip{"hip"};
  std::array<const kc_device*, 8> nvidia{};
  std::array<const kc_device*, 2> amd{};

  /// Begins anew: everything works but for what is told.
  void tell_cuda(const std::string& text) const {
    std::string devices;
    for (int i = 0; i < 3; ++i) devices += "device 9.0 NVIDIA H200\n";
    for (int i = 0; i < 3; ++i) devices += "device 12.1 NVIDIA GB10\n";
    for (int i = 0; i < 2; ++i) devices += "device 8.6 NVIDIA A10\n";
    cuda.tell(devices + text);
  }
  void tell_hip(const std::string& text) const {
    hip.tell("device gfx942:sramecc+:xnack- AMD Instinct MI300X\ndevice gfx1151 AMD Radeon 8060S\n" + text);
  }
};

/// With nothing told and nothing left of an earlier test.
inline Machine& machine() {
  static Machine* const all = [] {
    auto* const made = new Machine;
    made->tell_cuda("version 12080");
    made->nvidia[kOldDriver] = get_device(KC_CUDA, kOldDriver);
    made->tell_cuda("");
    made->tell_hip("");
    for (int i = 0; i < 8; ++i) made->nvidia[static_cast<size_t>(i)] = get_device(KC_CUDA, i);
    for (int i = 0; i < 2; ++i) made->amd[static_cast<size_t>(i)] = get_device(KC_HIP, i);
    return made;
  }();
  all->cuda.reset();
  all->hip.reset();
  all->tell_cuda("");
  all->tell_hip("");
  return *all;
}

/// At the end of a test: nothing is loaded, no context is kept, nothing was done wrong.
inline void check_nothing_left(const Machine& all) {
  for (const Stub* const stub : {&all.cuda, &all.hip}) {
    CAPTURE(stub->path());
    CHECK(stub->count("modules") == 0);
    CHECK(stub->count("primaries") == 0);
    CHECK(stub->count("misuse") == 0);
    CHECK(stub->count("waiting") == 0);
  }
  CHECK(CudaCalls(all.cuda).current_context() == nullptr);
}

}  // namespace kc::loader::testing
