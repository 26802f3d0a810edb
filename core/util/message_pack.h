// Reads MessagePack, which compilers write into code objects, out of bytes that may be hostile.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "base/error.h"
#include "util/json.h"

namespace kc::util {

/// What a reader accepts at most. Each is checked before memory is taken for what is counted; the defaults
/// are far above the metadata of any code object and keep the memory taken below a hundred times the input.
struct MessagePackLimits {
  size_t bytes = 16U << 20;
  size_t depth = 16;         // of maps and arrays within each other; metadata of kernels have 5
  size_t values = 1U << 20;  // all together, keys not counted; a kernel of ten arguments has 80
  size_t keys = 128;         // of one map; the metadata of a kernel know about 40
};

/// The one value that `bytes` are. Maps keep their order and have no key twice; binary data and extensions
/// are refused, text may be any bytes. ErrorKind::kFailed otherwise, with what is wrong. Safe to call from
/// several threads.
base::Result<Json> read_message_pack(base::ByteView bytes, const MessagePackLimits& limits = {});

}  // namespace kc::util
