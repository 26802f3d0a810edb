// Offsets are those of docs/store-format.md and docs/bundle-format.md.
#include "fuzz/repair.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/compress.h"
#include "base/digest.h"
#include "bundle/format.h"
#include "store/entry_codec.h"
#include "store/frozen.h"

namespace kc::fuzz {
namespace {

using base::Bytes;
using base::ByteView;
using bundle::kDigestSize;

// Frames and payloads of larger raw sizes are left alone: what can be tried is tried at smaller ones.
constexpr uint64_t kMostRaw = 256U << 10;

bool holds(const Bytes& file, uint64_t offset, uint64_t size) {
  return offset <= file.size() && size <= file.size() - offset;
}

void put(Bytes& file, uint64_t offset, const base::Digest& digest) {
  std::copy(digest.bytes.begin(), digest.bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(offset));
}

// The raw bytes behind stored ones, when they can be had.
std::optional<Bytes> raw_of(ByteView stored, bool compressed, uint64_t raw_size) {
  if (!compressed) return Bytes(stored.begin(), stored.end());
  if (raw_size > kMostRaw) return std::nullopt;
  auto raw = base::decompress(stored, static_cast<size_t>(raw_size));
  if (!raw) return std::nullopt;
  return std::move(*raw);
}

class BundleRepair {
 public:
  explicit BundleRepair(Bytes& file) : file_(file) {}

  void run() {
    const ByteView view = file_;
    // The sections as the header names them; a reader takes them only where they belong.
    page_table_ = section(48);
    pages_ = section(64);
    index_ = section(80);
    details_ = section(96);
    frame_table_ = section(112);
    metadata_ = section(160);
    repair_frames(base::load_le<uint32_t>(view, 36));
    repair_records(base::load_le<uint32_t>(view, 32));
    for (uint64_t at = 0; at < pages_.size / bundle::kPageSize; ++at) {
      const uint64_t page = pages_.offset + at * bundle::kPageSize;
      const uint64_t place = page_table_.offset + at * kDigestSize;
      if (!holds(file_, page, bundle::kPageSize) || !holds(file_, place, kDigestSize)) break;
      put(file_, place, base::sha256(view.subspan(page, bundle::kPageSize)));
    }
    put_digest_of(page_table_, 176);
    put_digest_of(metadata_, 208);
    repair_signatures(base::load_le<uint64_t>(view, 40));
    const uint64_t size = base::load_le<uint32_t>(view, 12);
    if (size >= kDigestSize && holds(file_, 0, size)) {
      put(file_, size - kDigestSize, base::sha256(view.first(size - kDigestSize)));
    }
  }

 private:
  bundle::Section section(size_t at) const {
    return {base::load_le<uint64_t>(file_, at), base::load_le<uint64_t>(file_, at + 8)};
  }

  void put_digest_of(const bundle::Section& section, uint64_t place) {
    if (!holds(file_, section.offset, section.size)) return;
    put(file_, place, base::sha256(ByteView(file_).subspan(section.offset, section.size)));
  }

  void repair_frames(uint32_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t at = frame_table_.offset + i * bundle::kFrameEntrySize;
      if (!holds(file_, at, bundle::kFrameEntrySize)) return;
      const auto entry = frame_at(at);
      if (entry && holds(file_, entry->offset, entry->stored_size)) {
        put(file_, at + 32, base::sha256(ByteView(file_).subspan(entry->offset, entry->stored_size)));
      }
    }
  }

  std::optional<bundle::FrameEntry> frame_at(uint64_t at) const {
    return bundle::decode_frame(ByteView(file_).subspan(at, bundle::kFrameEntrySize), false);
  }

  void repair_records(uint32_t count) {
    std::optional<uint32_t> number;  // of the frame in `raw`
    std::optional<Bytes> raw;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t at = index_.offset + i * bundle::kIndexSize;
      const uint64_t detail = details_.offset + i * bundle::kDetailSize;
      if (!holds(file_, at, bundle::kIndexSize) || !holds(file_, detail, bundle::kDetailSize)) return;
      const auto entry = bundle::decode_index(ByteView(file_).subspan(at, bundle::kIndexSize), false);
      if (!entry) continue;
      if (number != entry->frame) {
        number = entry->frame;
        raw = raw_frame(entry->frame);
      }
      if (raw && holds(*raw, entry->frame_offset, entry->artifact_size)) {
        put(file_, detail, base::sha256(ByteView(*raw).subspan(entry->frame_offset, entry->artifact_size)));
      }
    }
  }

  std::optional<Bytes> raw_frame(uint64_t number) const {
    const uint64_t at = frame_table_.offset + number * bundle::kFrameEntrySize;
    if (!holds(file_, at, bundle::kFrameEntrySize)) return std::nullopt;
    const auto entry = frame_at(at);
    if (!entry || !holds(file_, entry->offset, entry->stored_size)) return std::nullopt;
    return raw_of(ByteView(file_).subspan(entry->offset, entry->stored_size), entry->compressed,
                  entry->raw_size);
  }

  void repair_signatures(uint64_t at) {
    const ByteView view = file_;
    while (at % bundle::kAlignment == 0 && holds(file_, at, bundle::kSignatureHeaderSize)) {
      const uint64_t size = base::load_le<uint32_t>(view, at + 12);
      if (!holds(file_, at + bundle::kSignatureHeaderSize, size)) return;
      const ByteView payload = view.subspan(at + bundle::kSignatureHeaderSize, size);
      put(file_, at + 16, base::Sha256().update(view.subspan(at, 16)).update(payload).finish());
      at += bundle::align_to(bundle::kSignatureHeaderSize + size, bundle::kAlignment);
    }
  }

  Bytes& file_;
  bundle::Section page_table_, pages_, index_, details_, frame_table_, metadata_;
};

// Of the first bytes of any file of the store.
constexpr uint64_t kPayloadSizeAt = 24, kDigestAt = 32;

void repair_header(Bytes& file, uint64_t header_size) {
  const ByteView view = file;
  put(file, kDigestAt,
      base::Sha256()
          .update(view.first(kDigestAt))
          .update(view.subspan(store::kFrozenSize, header_size - store::kFrozenSize))
          .finish());
}

}  // namespace

Bytes repair_entry(ByteView input) {
  constexpr uint64_t kPayloadDigestAt = 96, kCodeDigestAt = 128;
  constexpr uint64_t kRawSizeAt = 160, kCodeSizeAt = 168, kFixedFields = 176;
  Bytes file(input.begin(), input.end());
  if (file.size() < kFixedFields) return file;
  const auto header_size = base::load_le<uint64_t>(file, 16);
  if (header_size < kFixedFields || header_size > file.size()) return file;
  const uint64_t payload_size = file.size() - header_size;
  std::memcpy(file.data() + kPayloadSizeAt, &payload_size, sizeof payload_size);
  const ByteView stored = ByteView(file).subspan(header_size);
  put(file, kPayloadDigestAt, base::sha256(stored));
  const bool compressed = (base::load_le<uint32_t>(file, 12) & store::kFlagCompressed) != 0;
  const auto raw = raw_of(stored, compressed, base::load_le<uint64_t>(file, kRawSizeAt));
  const auto code_size = base::load_le<uint64_t>(file, kCodeSizeAt);
  if (raw && code_size <= raw->size()) {
    put(file, kCodeDigestAt, base::sha256(ByteView(*raw).first(code_size)));
  }
  repair_header(file, header_size);
  return file;
}

Bytes repair_record(ByteView input) {
  constexpr uint64_t kFixedFields = 136;
  Bytes file(input.begin(), input.end());
  if (file.size() < kFixedFields) return file;
  const uint64_t header_size = file.size();
  std::memcpy(file.data() + 16, &header_size, sizeof header_size);
  std::fill_n(file.begin() + kPayloadSizeAt, sizeof header_size, uint8_t{0});
  repair_header(file, header_size);
  return file;
}

Bytes repair_archive(ByteView input) {
  constexpr uint64_t kItemHead = 48, kEndMark = 56, kItemSizeAt = 8;
  Bytes file(input.begin(), input.end());
  if (file.size() < store::kFrozenSize + kEndMark) return file;
  uint64_t at = store::kFrozenSize;
  uint64_t counts[2] = {0, 0};
  base::Sha256 items;
  while (holds(file, at, kItemHead + kEndMark) && (file[at] == 1 || file[at] == 2)) {
    const uint64_t left = file.size() - at - kItemHead - kEndMark;
    const uint64_t size = std::min(base::load_le<uint64_t>(file, at + kItemSizeAt), left);
    std::memcpy(file.data() + at + kItemSizeAt, &size, sizeof size);
    const ByteView body = ByteView(file).subspan(at + kItemHead, size);
    const Bytes mended = file[at] == 1 ? repair_entry(body) : repair_record(body);
    std::copy(mended.begin(), mended.end(), file.begin() + static_cast<std::ptrdiff_t>(at + kItemHead));
    ++counts[file[at] - 1];
    items.update(base::sha256(ByteView(file).subspan(at, kItemHead + size)).view());
    at += kItemHead + size;
  }
  if (!holds(file, at, kEndMark)) return file;
  const uint64_t kind = 3;
  std::memcpy(file.data() + at, &kind, sizeof kind);
  std::memcpy(file.data() + at + 8, counts, sizeof counts);
  put(file, at + 24, items.finish());
  const uint64_t payload_size = at + kEndMark - store::kFrozenSize, header_size = store::kFrozenSize;
  std::memcpy(file.data() + 16, &header_size, sizeof header_size);
  std::memcpy(file.data() + kPayloadSizeAt, &payload_size, sizeof payload_size);
  repair_header(file, header_size);
  return file;
}

Bytes repair_bundle(ByteView input) {
  Bytes file(input.begin(), input.end());
  if (file.size() >= bundle::kHeaderSize) BundleRepair(file).run();
  return file;
}

}  // namespace kc::fuzz
