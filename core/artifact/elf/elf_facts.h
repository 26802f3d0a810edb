// Reads facts out of code objects with libelf. Runs in the engine, next to the compilers, because its input
// is what a compiler wrote. Safe to call from several threads on different code objects.
#pragma once

#include "artifact/artifact.h"
#include "base/bytes.h"
#include "base/error.h"

namespace kc::artifact::elf {

/// Facts of an NVIDIA cubin (ELF, EM_CUDA 190). ErrorKind::kFailed, with what is wrong, for anything that is
/// not a whole cubin.
base::Result<Facts> read_cubin(base::ByteView code);

/// Facts of an AMD code object (ELF, EM_AMDGPU 224, OS/ABI HSA): processor and features from e_flags, the
/// rest from the MessagePack metadata in its AMDGPU note. Source: LLVM "User Guide for AMDGPU Backend", code
/// objects version 4 to 6. ErrorKind::kFailed, with what is wrong, for anything that is not a whole code
/// object.
base::Result<Facts> read_amdgpu(base::ByteView code);

}  // namespace kc::artifact::elf
