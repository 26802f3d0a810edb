// A record as bytes (docs/store-format.md: Record).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "store/frozen.h"
#include "store/store.h"

namespace kc::store {

inline constexpr uint32_t kFlagImported = 1;
inline constexpr uint32_t kRecordFlags = kFlagImported;

/// Key fields that would make it too large are left out. ErrorKind::kFailed when it is too large without
/// them, ErrorKind::kInternal when it leads nowhere (a content key of zeros).
base::Result<base::Bytes> encode_record(const Record& record);

/// An open file of `file_size` bytes, read only as far as each check allows.
Checked<Record> read_record(int fd, const base::Digest& request, uint64_t file_size);

/// The same from memory.
Checked<Record> decode_record(base::ByteView file, const base::Digest& request);

}  // namespace kc::store
