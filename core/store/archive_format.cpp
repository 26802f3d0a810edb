#include "store/archive_format.h"

#include <tuple>

#include "store/entry_codec.h"
#include "store/frozen.h"

namespace kc::store {
namespace {

constexpr uint32_t kEntryItem = 1;
constexpr uint32_t kRecordItem = 2;
constexpr uint32_t kEndItem = 3;

uint64_t most_bytes(Kind kind) {
  return kind == Kind::kEntry ? kMaxHeader + kMaxPayload : kMaxHeader;
}

}  // namespace

base::Bytes encode_item_head(const ItemHead& head) {
  base::ByteWriter out;
  out.u32(head.kind == Kind::kEntry ? kEntryItem : kRecordItem);
  out.u32(0);
  out.u64(head.size);
  write_digest(out, head.key);
  return out.take();
}

std::expected<ItemHead, std::string> decode_item_head(base::ByteView bytes, uint64_t left) {
  base::ByteReader in(bytes);
  const uint32_t kind = in.u32();
  const uint32_t zero = in.u32();
  ItemHead head;
  head.kind = kind == kRecordItem ? Kind::kRecord : Kind::kEntry;
  head.size = in.u64();
  head.key = read_digest(in);
  if (!in.complete() || (kind != kEntryItem && kind != kRecordItem) || zero != 0) {
    return std::unexpected("an item is neither an entry nor a record");
  }
  if (head.size < kFrozenSize || head.size > most_bytes(head.kind)) {
    return std::unexpected("an item has an impossible size of " + std::to_string(head.size) + " bytes");
  }
  if (head.size > left) return std::unexpected("an item is larger than what is left of the archive");
  return head;
}

base::Bytes encode_end_mark(const EndMark& mark) {
  base::ByteWriter out;
  out.u32(kEndItem);
  out.u32(0);
  out.u64(mark.counts.entries);
  out.u64(mark.counts.records);
  write_digest(out, mark.items);
  return out.take();
}

std::optional<EndMark> decode_end_mark(base::ByteView bytes) {
  base::ByteReader in(bytes);
  const uint32_t kind = in.u32();
  const uint32_t zero = in.u32();
  EndMark mark;
  mark.counts.entries = in.u64();
  mark.counts.records = in.u64();
  mark.items = read_digest(in);
  if (!in.complete() || kind != kEndItem || zero != 0) return std::nullopt;
  return mark;
}

bool is_after(Kind kind, const base::Digest& key, Kind last_kind, const base::Digest& last) {
  return std::tie(kind, key) > std::tie(last_kind, last);
}

}  // namespace kc::store
