// Byte-range locks on an open file description (fcntl F_OFD_SETLK): held by the kernel, freed when the last
// descriptor of that description closes, whatever becomes of the process. They exclude only between
// descriptions, so threads of one process that share a descriptor need a table of their own beside them.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace kc::base {

/// Tries to lock the one byte at `offset` of `fd` exclusively. True when this description holds it now, false
/// when another does. ENOLCK and the like (a file system without locks) are errors.
Result<bool> try_lock_byte(int fd, uint64_t offset);
Result<void> unlock_byte(int fd, uint64_t offset);

}  // namespace kc::base
