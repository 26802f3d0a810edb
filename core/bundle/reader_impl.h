// Inside of the reader, shared with verification: checked access to each part of an open bundle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "bundle/blocks.h"
#include "bundle/bundle.h"
#include "bundle/format.h"
#include "bundle/pages.h"

namespace kc::bundle {

struct Reader::Impl {
  Impl(std::string file_path, base::FileDescriptor file, uint64_t size, Header head, base::Bytes page_table);

  /// An index record whose strings lie within their section and have lengths that the format allows.
  base::Result<IndexEntry> index(uint32_t number);
  /// What `ref` leads to. Precondition: `check_ref(ref)`.
  base::Result<std::string> text(Ref ref);
  bool holds(Ref ref, uint64_t most) const;
  base::Result<Record> record(uint32_t number);
  /// As `record`, with every string that it refers to added to `refs`.
  base::Result<Record> record(uint32_t number, std::vector<Ref>& refs);
  /// A frame table entry whose sizes are within the limits and the frames section.
  base::Result<FrameEntry> frame(uint32_t number);
  /// The raw bytes of a frame, its stored bytes checked first.
  base::Result<base::Bytes> frame_bytes(uint32_t number, const FrameEntry& entry);
  base::Result<Pairs> metadata();
  base::Result<void> walk_signatures(const std::function<void(Block)>& visit) const;
  base::Result<std::vector<SignatureBlock>> signature_blocks() const;

  std::unexpected<base::Error> damaged(const std::string& what) const;
  std::unexpected<base::Error> bad_record(uint32_t number, const std::string& what) const;
  std::unexpected<base::Error> bad_frame(uint32_t number, const std::string& what) const;
  bool strict() const { return header.minor <= kMinor; }  // a newer minor may use reserved fields

  std::string path;
  base::FileDescriptor fd;
  uint64_t file_size;
  Header header;
  Info info;
  Pages pages;
  // The frame that was read last.
  std::optional<uint32_t> cached_frame;
  base::Bytes cached_bytes;
};

}  // namespace kc::bundle
