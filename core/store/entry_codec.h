// An entry as bytes (docs/store-format.md: Entry).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "store/frozen.h"
#include "store/store.h"

namespace kc::store {

/// Of what an entry makes a reader allocate: several times the largest code objects that vendors ship for
/// one architecture, and small enough for any machine that compiles.
inline constexpr uint64_t kMaxPayload = 1ULL << 30;

inline constexpr uint32_t kFlagCompressed = 1;
inline constexpr uint32_t kFlagUnsupported = 2;
inline constexpr uint32_t kEntryFlags = kFlagCompressed | kFlagUnsupported;

/// What the header says, checked by itself; `entry.artifact` has the compiler's name and version only.
struct EntryHeader {
  Frozen frozen;
  Entry entry;
  base::Digest payload_digest;
  base::Digest code_digest;
  uint64_t raw_size = 0;
  uint64_t code_size = 0;
  uint64_t facts_size = 0;
  uint64_t diagnostics_size = 0;
  uint64_t report_size = 0;
};

/// The same entry gives the same bytes for one version of zstd. One that is larger than the format allows is
/// ErrorKind::kFailed; one without code that is not unsupported, or the other way round,
/// ErrorKind::kInternal.
base::Result<base::Bytes> encode_entry(const Entry& entry);

/// Header and payload of an open file of `file_size` bytes, read only as far as each check allows.
Checked<EntryHeader> read_entry_header(int fd, const base::Digest& key, uint64_t file_size);
Checked<Entry> read_entry(int fd, const base::Digest& key, uint64_t file_size);

/// The same from memory.
Checked<Entry> decode_entry(base::ByteView file, const base::Digest& key);

}  // namespace kc::store
