// The metadata of an AMD code object: what its AMDGPU note says about it and its kernels.
#pragma once

#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/elf/image.h"
#include "base/bytes.h"
#include "base/error.h"

namespace kc::artifact::elf {

inline constexpr Format kAmdCodeObject = {224, "AMD code object"};  // EM_AMDGPU

struct AmdgpuMetadata {
  std::string target;                // `gfx942:sramecc+:xnack-`, without the triple before it
  std::vector<KernelFacts> kernels;  // by symbol, no two the same
};

/// Reads MessagePack as code objects of version 3 and later have it. Source: LLVM, "User Guide for AMDGPU
/// Backend", "Code Object V3 Metadata" to V5.
base::Result<AmdgpuMetadata> read_amdgpu_metadata(base::ByteView note);

}  // namespace kc::artifact::elf
