// Inside of the reader, shared with verification: checked access to each part of an open bundle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/blocks.h"
#include "bundle/bundle.h"
#include "bundle/format.h"
#include "bundle/pages.h"
#include "bundle/source.h"

namespace kc::bundle {

/// What a search compares records with.
struct Sought {
  std::string_view kernel, specialization, target;
};

struct Reader::Impl {
  static base::Result<Reader> open(ByteSource bytes, const ReadOptions& options);
  Impl(std::shared_ptr<const ByteSource> bytes, Header head, Piece page_table, const ReadOptions& options);

  /// An index record whose strings lie within their section and have lengths that the format allows.
  base::Result<IndexEntry> index(uint32_t number, Trust trust = Trust::kChecked);
  /// What `ref` leads to. Precondition: `holds(ref, ...)`.
  base::Result<std::string> text(Ref ref);
  bool holds(Ref ref, uint64_t most) const;
  /// How record `number` compares with the three names: below, equal to or above 0.
  base::Result<int> compare(uint32_t number, const Sought& sought, Trust trust = Trust::kChecked);
  /// The first record that is not below, or the number of records.
  base::Result<uint32_t> search(const Sought& sought, Trust trust);
  /// Whether that is what `number` is, by checked pages.
  base::Result<bool> is_first_not_below(uint32_t number, const Sought& sought);
  base::Result<Record> record(uint32_t number);
  /// As `record`, with every string that it refers to added to `refs`.
  base::Result<Record> record(uint32_t number, std::vector<Ref>& refs);
  /// A frame table entry whose sizes are within the limits and the frames section.
  base::Result<FrameEntry> frame(uint32_t number);
  /// The raw bytes of a frame, its stored bytes checked first.
  base::Result<Piece> frame_bytes(uint32_t number, const FrameEntry& entry) const;
  /// The same, kept for the next call when it is small enough.
  base::Result<Piece> kept_frame_bytes(uint32_t number, const FrameEntry& entry);
  base::Result<Pairs> metadata() const;
  base::Result<void> walk_signatures(const std::function<void(Block)>& visit) const;
  base::Result<std::vector<SignatureBlock>> signature_blocks() const;

  std::unexpected<base::Error> damaged(const std::string& what) const;
  std::unexpected<base::Error> bad_record(uint32_t number, const std::string& what) const;
  std::unexpected<base::Error> bad_frame(uint32_t number, const std::string& what) const;
  bool strict() const { return header.minor <= kMinor; }  // a newer minor may use reserved fields

  const std::string& path() const { return source->name(); }

  std::shared_ptr<const ByteSource> source;  // shared with a verification that is under way
  Header header;
  Info info;
  ReadOptions options;
  bool is_of_path = false;
  Pages pages;

 private:
  std::mutex mutex;
  std::optional<uint32_t> last_frame;  // that was read; guarded by mutex, as its bytes
  Piece last_bytes;
};

}  // namespace kc::bundle
