// zstd (RFC 8878) with known sizes. zstd is included here only.
#pragma once

#include "base/bytes.h"
#include "base/error.h"

namespace kc::base {

inline constexpr int kMinLevel = 1;
inline constexpr int kMaxLevel = 19;  // 20 to 22 need a larger window than a loader should have to take

/// One frame, content size in its header, no checksum (kc's own digests cover it). Single-threaded, so the
/// same bytes and level give the same frame for one version of zstd. `level` in [kMinLevel, kMaxLevel].
Result<Bytes> compress(ByteView raw, int level);

/// Exactly `raw_size` bytes from exactly one frame. Memory is taken only after the frame's own content size
/// agrees with `raw_size` and its bytes can hold as many; the caller bounds `raw_size`. Anything else is
/// ErrorKind::kFailed.
Result<Bytes> decompress(ByteView frame, size_t raw_size);

/// The same, into memory that is not set to zero first.
Result<Buffer> decompress_to_buffer(ByteView frame, size_t raw_size);

/// The version of the zstd in use, as `1.5.4`.
const char* compressor_version();

}  // namespace kc::base
