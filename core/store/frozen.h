// The first 64 bytes of every file of the store, frozen for all versions (docs/store-format.md).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

namespace kc::store {

enum class Flaw : uint8_t {
  kDamaged,     // not what kc wrote
  kNewer,       // whole, of a version this kc does not know
  kUnreadable,  // the file system refused; nothing is known about the file
};
struct Refusal {
  Flaw flaw = Flaw::kDamaged;
  std::string why;
};
/// What a reader of hostile bytes returns.
template <typename T>
using Checked = std::expected<T, Refusal>;

inline std::unexpected<Refusal> damaged(std::string why) {
  return std::unexpected(Refusal{Flaw::kDamaged, std::move(why)});
}

inline constexpr std::string_view kEntryMagic{"KCENTRY\0", 8};
inline constexpr std::string_view kRecordMagic{"KCRECORD", 8};
inline constexpr std::string_view kStateMagic{"KCSTATE\0", 8};
inline constexpr std::string_view kFailureMagic{"KCFAILED", 8};
inline constexpr std::string_view kPinMagic{"KCPIN\0\0\0", 8};
inline constexpr uint32_t kVersion = 1;  // of all of them

inline constexpr size_t kFrozenSize = 64;
/// Of what a header makes a reader allocate. Real ones have less than 1 KiB; mangled symbols and long key
/// fields may make them larger.
inline constexpr uint64_t kMaxHeader = 1U << 20;

struct Frozen {
  uint32_t version = kVersion;
  uint32_t flags = 0;
  uint64_t header_size = 0;   // with the frozen bytes
  uint64_t payload_size = 0;  // as stored
};

/// A whole header: the frozen bytes with their digest, then `fields`.
base::Bytes build_header(std::string_view magic, uint32_t version, uint32_t flags, base::ByteView fields,
                         uint64_t payload_size);

/// From the first bytes of a file. Only magic and header size are checked: the latter may be read then.
Checked<Frozen> read_frozen(base::ByteView head, std::string_view magic, uint64_t file_size);
/// The rest of what can be said of any header: digest, version, no flags but `known_flags`, and sizes that
/// add up.
Checked<void> check_header(base::ByteView header, const Frozen& frozen, uint32_t known_flags,
                           uint64_t file_size);

/// The header of an open file, checked. Takes no memory beyond kMaxHeader.
struct HeaderBytes {
  Frozen frozen;
  base::Bytes bytes;  // from offset 0
};
Checked<HeaderBytes> read_header(int fd, std::string_view magic, uint32_t known_flags, uint64_t file_size);
/// The payload of such a file, still unchecked. Precondition: frozen.payload_size is one the caller accepts.
Checked<base::Bytes> read_payload(int fd, const Frozen& frozen);

}  // namespace kc::store
