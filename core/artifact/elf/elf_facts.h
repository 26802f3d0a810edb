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

}  // namespace kc::artifact::elf
