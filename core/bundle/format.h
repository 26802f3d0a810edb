// The layout of a bundle as constants, plain structs and their codecs: docs/bundle-format.md in code.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "bundle/bundle.h"

namespace kc::bundle {

inline constexpr std::string_view kMagic = "KCBUNDLE";
inline constexpr std::string_view kSignatureMagic = "KCSIGBLK";

inline constexpr uint64_t kHeaderSize = 640;
inline constexpr uint64_t kMaxHeaderSize =
    4096;  // of any version, so that a newer one can be told from damage
inline constexpr uint64_t kPageSize = 4096;
inline constexpr uint64_t kAlignment = 64;  // of sections, frames and artifacts: a cache line
inline constexpr uint64_t kDigestSize = 32;
inline constexpr uint64_t kIndexSize = 64;
inline constexpr uint64_t kDetailSize = 160;
inline constexpr uint64_t kFrameEntrySize = 64;
inline constexpr uint64_t kSignatureHeaderSize = 48;

// Limits; docs/bundle-format.md has the reasons.
inline constexpr uint32_t kMaxRecords = 1'000'000;
inline constexpr uint64_t kMaxStringsSize = 1ULL << 30;
inline constexpr uint64_t kMaxMetadataSize = 1ULL << 20;
inline constexpr uint32_t kMaxPlainText = 4096;
inline constexpr uint32_t kMaxSpecialization = 65535;
inline constexpr uint32_t kMaxToolSize = 4 * (4 + kMaxPlainText) + kDigestSize;
inline constexpr uint32_t kMaxArguments = 32764;  // CUDA: bytes of the largest parameter block
inline constexpr uint32_t kMaxSignatures = 1024;
inline constexpr uint32_t kMaxSignaturePayload = 65536;

inline constexpr uint32_t kFlagPartial = 1;
inline constexpr uint32_t kFlagSubset = 2;
inline constexpr uint32_t kKnownRequiredFlags = kFlagPartial | kFlagSubset;

inline constexpr uint32_t kSignatureEd25519 = 1;
inline constexpr uint32_t kEd25519PayloadSize = 32 + 64;

constexpr uint64_t align_to(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

struct Section {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t end() const { return offset + size; }
  bool operator==(const Section&) const = default;
};

/// Where everything stands. There is exactly one layout for given counts and sizes.
struct Layout {
  Section page_table, pages, index, details, frame_table, strings, frames, metadata;
  uint64_t content_size = 0;
  bool operator==(const Layout&) const = default;
};
/// Precondition: the counts and sizes are within the limits and `frames_size` is below 2^60.
Layout layout_of(uint32_t records, uint32_t frames, uint64_t strings_size, uint64_t frames_size,
                 uint64_t metadata_size);

struct Header {
  uint16_t major = kMajor;
  uint16_t minor = kMinor;
  uint32_t required_flags = 0;
  uint32_t optional_flags = 0;
  uint64_t release = 0;
  uint32_t record_count = 0;
  uint32_t frame_count = 0;
  Layout layout;
  base::Digest page_table_digest;
  base::Digest metadata_digest;
  std::string name;
  base::Digest digest;  // of the header; set by the decoder and by encode_header
};
/// kHeaderSize bytes; sets `header.digest`.
base::Bytes encode_header(Header& header);
/// From the first bytes of a file (as many as it has, up to kMaxHeaderSize). Checks all that can be checked
/// without more of the file; `path` is for messages.
base::Result<Header> decode_header(base::ByteView start, uint64_t file_size, const std::string& path);

/// A run of bytes in the strings section; 0, 0 when empty.
struct Ref {
  uint32_t offset = 0;
  uint32_t length = 0;
  auto operator<=>(const Ref&) const = default;
};

struct IndexEntry {
  Ref kernel, specialization, target, found_target;
  bool is_default = false;
  uint32_t frame = 0;
  uint32_t frame_offset = 0;
  uint64_t artifact_size = 0;
  uint32_t lowest_driver = 0;
};
void encode_index(base::ByteWriter& out, const IndexEntry& entry);
/// Nothing when a reserved field or unknown flag is set and `strict`. Precondition: kIndexSize bytes.
std::optional<IndexEntry> decode_index(base::ByteView bytes, bool strict);

struct DetailEntry {
  base::Digest artifact_digest, content_key;
  Ref entry, symbol, facts_symbol, tool, arguments, metadata;
  artifact::KernelFacts facts;  // without symbol and arguments
};
void encode_detail(base::ByteWriter& out, const DetailEntry& entry);
std::optional<DetailEntry> decode_detail(base::ByteView bytes, bool strict);

struct FrameEntry {
  uint64_t offset = 0;
  uint64_t stored_size = 0;
  uint64_t raw_size = 0;
  bool compressed = false;
  base::Digest digest;  // of the stored bytes
};
void encode_frame(base::ByteWriter& out, const FrameEntry& entry);
std::optional<FrameEntry> decode_frame(base::ByteView bytes, bool strict);

/// The four texts of a record that name its compiler, and the compiler's identity.
base::Bytes encode_tool(const Record& record);
bool decode_tool(base::ByteView bytes, Record& record);
base::Bytes encode_arguments(const std::vector<artifact::Argument>& arguments);
bool decode_arguments(base::ByteView bytes, std::vector<artifact::Argument>& arguments);
using Pairs = std::vector<std::pair<std::string, std::string>>;
base::Bytes encode_metadata(const Pairs& pairs);
bool decode_metadata(base::ByteView bytes, Pairs& pairs);

}  // namespace kc::bundle
