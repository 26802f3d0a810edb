// The fixed parts of an archive (docs/store-format.md: Archive). Inner to core/store.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/digest.h"
#include "store/archive.h"
#include "store/layout.h"

namespace kc::store {

inline constexpr std::string_view kArchiveMagic = "KCARCHIV";
inline constexpr size_t kItemHeadSize = 48;
inline constexpr size_t kEndMarkSize = 56;

/// What stands before the file of an item.
struct ItemHead {
  Kind kind = Kind::kEntry;
  uint64_t size = 0;
  base::Digest key;
};
base::Bytes encode_item_head(const ItemHead& head);
/// `left`: bytes between the item's own head and the end mark. The error says what is wrong.
std::expected<ItemHead, std::string> decode_item_head(base::ByteView bytes, uint64_t left);

struct EndMark {
  ArchiveCounts counts;
  base::Digest items;
};
base::Bytes encode_end_mark(const EndMark& mark);
/// Nothing for other bytes.
std::optional<EndMark> decode_end_mark(base::ByteView bytes);

/// Whether an item may stand behind another.
bool is_after(Kind kind, const base::Digest& key, Kind last_kind, const base::Digest& last);

}  // namespace kc::store
