// Writes small, well-formed cubins as tileiras 13.4 lays them out, so that tests need no compiler: ELF
// header, sections, section headers, program headers at the end.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace kc::test {

struct CubinParameter {
  uint16_t offset = 0;
  uint16_t size = 0;
};

struct CubinKernel {
  std::string symbol = "kernel";
  bool is_entry = true;  // false: a device function
  uint32_t registers = 32;
  uint32_t frame_size = 0;
  uint32_t min_stack = 0;
  uint32_t shared_memory = 0;
  std::vector<CubinParameter> parameters;
  bool has_new_parameter_records = false;  // 0x45 instead of 0x17
  uint16_t parameter_bytes = 0;
  std::array<uint32_t, 3> required_block{};  // all 0: no record
  std::array<uint32_t, 3> max_threads{};
  base::Bytes text = base::Bytes(128, 0);
};

struct Cubin {
  std::string architecture = "sm_90a";  // in .note.nv.tkinfo; empty: no such section
  uint32_t sm = 90;                     // in e_flags and .note.nv.cuinfo
  uint32_t toolkit = 134;
  std::string tool_version = "Cuda compilation tools, release 13.4, V13.4.92";
  std::string tool_options = "-O 3";
  std::vector<CubinKernel> kernels = {CubinKernel{}};
};

base::Bytes write_cubin(const Cubin& cubin);

}  // namespace kc::test
