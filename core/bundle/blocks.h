// The one walk over signature blocks, whatever holds them: a bundle's file, an archive's end in memory
// (docs/bundle-format.md: Signature blocks). No signature is checked here. Inner to core/bundle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/error.h"

namespace kc::bundle {

struct Block {
  uint32_t type = 0;
  uint64_t offset = 0;
  base::Bytes payload;
};

/// Reads `size` bytes at `offset`; asked only for what lies within the walked range.
using BlockBytes = std::function<base::Result<base::Bytes>(uint64_t offset, size_t size)>;
/// Makes the error for what is wrong with the blocks.
using BlockFault = std::function<std::unexpected<base::Error>(const std::string& what)>;

/// Calls `visit` for each block from `begin` to `end`, which must be filled by whole blocks. Lengths, digest
/// and padding of a block are checked before it is handed out, its sizes before memory is taken.
base::Result<void> walk_blocks(uint64_t begin, uint64_t end, const BlockBytes& read, const BlockFault& fault,
                               const std::function<void(Block)>& visit);

}  // namespace kc::bundle
