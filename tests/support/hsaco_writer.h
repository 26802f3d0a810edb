// Writes small, well-formed AMD code objects as Loom and LLD lay them out, so that tests need no compiler: a
// shared object with notes, dynamic symbols, kernel descriptors, code, and section headers at the end.
// Source: LLVM "User Guide for AMDGPU Backend", code object versions 5 and 6.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace kc::test {

struct HsacoArgument {
  std::string name;
  uint32_t offset = 0;
  uint32_t size = 8;
  std::string value_kind = "global_buffer";  // `by_value`; those of the runtime begin with `hidden_`
};

struct HsacoKernel {
  std::string symbol = "kernel";
  bool has_descriptor = true;  // false: metadata name a kernel that the symbols do not have
  bool has_metadata = true;    // false: a descriptor that the metadata does not name
  uint32_t vgprs = 8;
  uint32_t sgprs = 16;
  std::optional<uint32_t> agprs;        // gfx90a and gfx94x only
  std::optional<uint32_t> vgpr_spills;  // Loom does not write the two, LLVM does
  std::optional<uint32_t> sgpr_spills;
  uint32_t group_segment = 0;
  uint32_t private_segment = 0;
  bool has_dynamic_stack = false;
  uint32_t argument_bytes = 0;
  std::vector<HsacoArgument> arguments;
  std::array<uint32_t, 3> required_block{};  // all 0: not stated
  uint32_t max_threads = 1024;
  uint32_t wave_size = 32;
  base::Bytes text = base::Bytes(256, 0);
};

struct Hsaco {
  std::string target = "gfx1100";       // with features: `gfx942:sramecc+:xnack-`
  std::optional<uint32_t> flags;        // e_flags; default: hsaco_flags(target)
  uint8_t abi_version = 4;              // code object version 6; 3 is version 5, 2 is version 4
  std::optional<base::Bytes> metadata;  // MessagePack; default: what the kernels say
  std::string note_owner = "AMDGPU";
  std::vector<HsacoKernel> kernels = {HsacoKernel{}};
};

/// e_flags of a target: the processor's number and what its features are. 0 for an unknown processor.
uint32_t hsaco_flags(std::string_view target);

base::Bytes write_hsaco(const Hsaco& hsaco);

}  // namespace kc::test
