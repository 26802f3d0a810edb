// The numbers of AMD's processors in e_flags.
#pragma once

#include <cstdint>
#include <string_view>

namespace kc::artifact::elf {

/// The processor with that number (EF_AMDGPU_MACH, bits 0 to 7 of e_flags): `gfx1100`; empty when there is
/// none. Source: LLVM, "User Guide for AMDGPU Backend", table "AMDGPU ELF Header e_flags".
std::string_view amdgpu_processor(uint32_t mach);

}  // namespace kc::artifact::elf
