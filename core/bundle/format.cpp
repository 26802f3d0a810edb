#include "bundle/format.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "bundle/grammar.h"

namespace kc::bundle {
namespace {

using base::ErrorKind;

// Flags of a detail: which of the facts that not every code object tells are known.
constexpr uint32_t kHasSpills = 1;
constexpr uint32_t kHasScalarRegisters = 2;

void write_section(base::ByteWriter& out, const Section& section) {
  out.u64(section.offset);
  out.u64(section.size);
}
Section read_section(base::ByteReader& in) {
  Section section;
  section.offset = in.u64();
  section.size = in.u64();
  return section;
}

void write_ref(base::ByteWriter& out, const Ref& ref) {
  out.u32(ref.offset);
  out.u32(ref.length);
}
Ref read_ref(base::ByteReader& in) {
  Ref ref;
  ref.offset = in.u32();
  ref.length = in.u32();
  return ref;
}

bool all_zero(base::ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

std::unexpected<base::Error> damaged(const std::string& path, const std::string& what) {
  return base::fail_at(ErrorKind::kFailed, {path}, "the bundle's header is damaged: " + what);
}

// What the counts and sizes of a header say about the rest of the file.
base::Result<void> check_layout(const Header& header, uint64_t file_size, const std::string& path) {
  const Layout& layout = header.layout;
  if (header.record_count > kMaxRecords) {
    return damaged(path, std::to_string(header.record_count) + " records, at most " +
                             std::to_string(kMaxRecords) + " are allowed");
  }
  if (header.frame_count > header.record_count) {
    return damaged(path, "more frames (" + std::to_string(header.frame_count) + ") than records (" +
                             std::to_string(header.record_count) + ")");
  }
  if (layout.strings.size > kMaxStringsSize) return damaged(path, "its strings are larger than 1 GiB");
  if (layout.metadata.size > kMaxMetadataSize) return damaged(path, "its metadata is larger than 1 MiB");
  if (layout.content_size > file_size) {
    return base::fail_at(ErrorKind::kFailed, {path},
                         "ends early: the bundle has " + std::to_string(layout.content_size) +
                             " bytes, the file " + std::to_string(file_size));
  }
  if (layout.frames.size > file_size) return damaged(path, "its frames are larger than the file");
  Layout expected = layout_of(header.record_count, header.frame_count, layout.strings.size,
                              layout.frames.size, layout.metadata.size);
  if (header.minor > kMinor && layout.content_size > expected.content_size) {
    expected.content_size = layout.content_size;  // a newer minor may have put a section there
  }
  if (layout != expected) return damaged(path, "its sections are not where they belong");
  return {};
}

}  // namespace

Layout layout_of(uint32_t records, uint32_t frames, uint64_t strings_size, uint64_t frames_size,
                 uint64_t metadata_size) {
  Layout out;
  const uint64_t index_size = kIndexSize * records;
  const uint64_t details_size = kDetailSize * records;
  const uint64_t frame_table_size = kFrameEntrySize * frames;
  const uint64_t details_at = align_to(index_size, kAlignment);
  const uint64_t frame_table_at = align_to(details_at + details_size, kAlignment);
  const uint64_t strings_at = align_to(frame_table_at + frame_table_size, kAlignment);
  const uint64_t pages_size = align_to(strings_at + strings_size, kPageSize);

  out.page_table = {kHeaderSize, pages_size / kPageSize * kDigestSize};
  out.pages = {align_to(out.page_table.end(), kAlignment), pages_size};
  out.index = {out.pages.offset, index_size};
  out.details = {out.pages.offset + details_at, details_size};
  out.frame_table = {out.pages.offset + frame_table_at, frame_table_size};
  out.strings = {out.pages.offset + strings_at, strings_size};
  out.frames = {out.pages.end(), frames_size};
  out.metadata = {align_to(out.frames.end(), kAlignment), metadata_size};
  out.content_size = align_to(out.metadata.end(), kAlignment);
  return out;
}

base::Bytes encode_header(Header& header) {
  base::ByteWriter out;
  out.raw(base::as_bytes(kMagic));
  out.u16(header.major);
  out.u16(header.minor);
  out.u32(kHeaderSize);
  out.u32(header.required_flags);
  out.u32(header.optional_flags);
  out.u64(header.release);
  out.u32(header.record_count);
  out.u32(header.frame_count);
  const Layout& layout = header.layout;
  out.u64(layout.content_size);
  for (const Section* section : {&layout.page_table, &layout.pages, &layout.index, &layout.details,
                                 &layout.frame_table, &layout.strings, &layout.frames, &layout.metadata}) {
    write_section(out, *section);
  }
  out.raw(header.page_table_digest.view());
  out.raw(header.metadata_digest.view());
  out.u16(static_cast<uint16_t>(header.name.size()));
  out.bytes().resize(256);
  out.raw(base::as_bytes(header.name));
  out.bytes().resize(kHeaderSize - kDigestSize);
  header.digest = base::sha256(out.bytes());
  out.raw(header.digest.view());
  return out.take();
}

base::Result<Header> decode_header(base::ByteView start, uint64_t file_size, const std::string& path) {
  if (file_size == 0) return base::fail_at(ErrorKind::kFailed, {path}, "is empty, not a bundle");
  if (!base::as_text(start).starts_with(kMagic)) {
    return base::fail_at(ErrorKind::kFailed, {path},
                         "is not a bundle of kc: it does not begin with KCBUNDLE");
  }
  const auto too_short = [&](uint64_t needed) {
    return base::fail_at(ErrorKind::kFailed, {path},
                         "ends early: the bundle's header has " + std::to_string(needed) +
                             " bytes, the file " + std::to_string(start.size()));
  };
  if (start.size() < 16) return too_short(kHeaderSize);
  const uint64_t size = base::load_le<uint32_t>(start, 12);
  if (size < kDigestSize + 16 || size > kMaxHeaderSize) {
    return damaged(path, "it claims to have " + std::to_string(size) + " bytes");
  }
  if (start.size() < size) return too_short(size);

  Header header;
  header.digest = base::digest_from(start.subspan(size - kDigestSize, kDigestSize));
  if (base::sha256(start.first(size - kDigestSize)) != header.digest) {
    return damaged(path, "its digest is wrong");
  }
  base::ByteReader in(start.first(size));
  in.raw(kMagic.size());
  header.major = in.u16();
  header.minor = in.u16();
  if (header.major != kMajor) {
    const std::string version = std::to_string(header.major) + "." + std::to_string(header.minor);
    return base::fail_at(ErrorKind::kFailed, {path},
                         header.major > kMajor ? "was made by a newer kc: its format is " + version +
                                                     ", this kc reads " + std::to_string(kMajor) + ".x"
                                               : "has the unknown format " + version,
                         header.major > kMajor ? "update kc, or make the bundle again with this one" : "");
  }
  if (size != kHeaderSize) return damaged(path, "it claims to have " + std::to_string(size) + " bytes");
  in.u32();
  header.required_flags = in.u32();
  header.optional_flags = in.u32();
  if ((header.required_flags & ~kKnownRequiredFlags) != 0) {
    return base::fail_at(ErrorKind::kFailed, {path},
                         "was made by a newer kc: it demands something that this kc does not know (required "
                         "flags " +
                             std::to_string(header.required_flags & ~kKnownRequiredFlags) + ")",
                         "update kc");
  }
  header.release = in.u64();
  header.record_count = in.u32();
  header.frame_count = in.u32();
  Layout& layout = header.layout;
  layout.content_size = in.u64();
  for (Section* section : {&layout.page_table, &layout.pages, &layout.index, &layout.details,
                           &layout.frame_table, &layout.strings, &layout.frames, &layout.metadata}) {
    *section = read_section(in);
  }
  header.page_table_digest = base::digest_from(in.raw(kDigestSize));
  header.metadata_digest = base::digest_from(in.raw(kDigestSize));
  const uint16_t name_length = in.u16();
  const bool reserved_clear = all_zero(in.raw(14));
  const base::ByteView name = in.raw(256);
  const bool rest_clear = all_zero(in.raw(size - kDigestSize - in.position()));
  if ((!reserved_clear || !rest_clear) && header.minor <= kMinor) {
    return damaged(path, "a reserved field is not zero");
  }
  if (name_length > kMaxNameLength || !all_zero(name.subspan(name_length)) ||
      !is_plain_text(base::as_text(name.first(name_length)), kMaxNameLength)) {
    return damaged(path, "its name is malformed");
  }
  header.name = base::as_text(name.first(name_length));
  KC_TRY(check_layout(header, file_size, path));
  return header;
}

bool is_newer_bundle(base::ByteView start) {
  if (start.size() < 16 || !base::as_text(start).starts_with(kMagic)) return false;
  const uint64_t size = base::load_le<uint32_t>(start, 12);
  if (size < kDigestSize + 20 || size > kMaxHeaderSize || start.size() < size) return false;
  const base::ByteView digest = start.subspan(size - kDigestSize, kDigestSize);
  if (base::sha256(start.first(size - kDigestSize)) != base::digest_from(digest)) return false;
  const uint16_t major = base::load_le<uint16_t>(start, 8);
  const uint32_t required = base::load_le<uint32_t>(start, 16);
  return major > kMajor || (major == kMajor && size == kHeaderSize && (required & ~kKnownRequiredFlags) != 0);
}

void encode_index(base::ByteWriter& out, const IndexEntry& entry) {
  for (const Ref* ref : {&entry.kernel, &entry.specialization, &entry.target, &entry.found_target}) {
    out.u32(ref->offset);
  }
  for (const Ref* ref : {&entry.kernel, &entry.target, &entry.found_target}) {
    out.u16(static_cast<uint16_t>(ref->length));
  }
  out.u16(0);
  out.u32(entry.specialization.length);
  out.u32(entry.is_default ? 1 : 0);
  out.u32(entry.frame);
  out.u32(entry.frame_offset);
  out.u64(entry.artifact_size);
  out.u32(entry.lowest_driver);
  out.u32(0);
  out.u64(0);
}

std::optional<IndexEntry> decode_index(base::ByteView bytes, bool strict) {
  base::ByteReader in(bytes);
  IndexEntry entry;
  for (Ref* ref : {&entry.kernel, &entry.specialization, &entry.target, &entry.found_target}) {
    ref->offset = in.u32();
  }
  for (Ref* ref : {&entry.kernel, &entry.target, &entry.found_target}) ref->length = in.u16();
  uint64_t unknown = in.u16();
  entry.specialization.length = in.u32();
  const uint32_t flags = in.u32();
  entry.is_default = (flags & 1) != 0;
  unknown |= flags & ~1U;
  entry.frame = in.u32();
  entry.frame_offset = in.u32();
  entry.artifact_size = in.u64();
  entry.lowest_driver = in.u32();
  unknown |= in.u32();
  unknown |= in.u64();
  if (strict && unknown != 0) return std::nullopt;
  return entry;
}

void encode_detail(base::ByteWriter& out, const DetailEntry& entry) {
  out.raw(entry.artifact_digest.view());
  out.raw(entry.content_key.view());
  for (const Ref* ref :
       {&entry.entry, &entry.symbol, &entry.facts_symbol, &entry.tool, &entry.arguments, &entry.metadata}) {
    write_ref(out, *ref);
  }
  const artifact::KernelFacts& facts = entry.facts;
  out.u32(facts.registers);
  out.u32(facts.local_memory);
  out.u32(facts.spills.value_or(0));
  out.u32(facts.shared_memory);
  out.u32(facts.argument_bytes);
  out.u32(facts.max_threads);
  out.u32(facts.wave_size);
  for (const uint32_t extent : facts.required_block) out.u32(extent);
  out.u32((facts.spills ? kHasSpills : 0) | (facts.scalar_registers ? kHasScalarRegisters : 0));
  out.u32(facts.scalar_registers.value_or(0));
}

std::optional<DetailEntry> decode_detail(base::ByteView bytes, bool strict) {
  base::ByteReader in(bytes);
  DetailEntry entry;
  entry.artifact_digest = base::digest_from(in.raw(kDigestSize));
  entry.content_key = base::digest_from(in.raw(kDigestSize));
  for (Ref* ref :
       {&entry.entry, &entry.symbol, &entry.facts_symbol, &entry.tool, &entry.arguments, &entry.metadata}) {
    *ref = read_ref(in);
  }
  artifact::KernelFacts& facts = entry.facts;
  facts.registers = in.u32();
  facts.local_memory = in.u32();
  const uint32_t spills = in.u32();
  facts.shared_memory = in.u32();
  facts.argument_bytes = in.u32();
  facts.max_threads = in.u32();
  facts.wave_size = in.u32();
  for (uint32_t& extent : facts.required_block) extent = in.u32();
  const uint32_t flags = in.u32();
  const uint32_t scalar_registers = in.u32();
  if ((flags & kHasSpills) != 0) facts.spills = spills;
  if ((flags & kHasScalarRegisters) != 0) facts.scalar_registers = scalar_registers;
  const bool canonical = (flags & ~(kHasSpills | kHasScalarRegisters)) == 0 &&
                         (facts.spills || spills == 0) && (facts.scalar_registers || scalar_registers == 0);
  if (strict && !canonical) return std::nullopt;
  return entry;
}

void encode_frame(base::ByteWriter& out, const FrameEntry& entry) {
  out.u64(entry.offset);
  out.u64(entry.stored_size);
  out.u64(entry.raw_size);
  out.u32(entry.compressed ? 1 : 0);
  out.u32(0);
  out.raw(entry.digest.view());
}

std::optional<FrameEntry> decode_frame(base::ByteView bytes, bool strict) {
  base::ByteReader in(bytes);
  FrameEntry entry;
  entry.offset = in.u64();
  entry.stored_size = in.u64();
  entry.raw_size = in.u64();
  const uint32_t flags = in.u32();
  entry.compressed = (flags & 1) != 0;
  const uint32_t reserved = in.u32();
  if (strict && ((flags & ~1U) != 0 || reserved != 0)) return std::nullopt;
  entry.digest = base::digest_from(in.raw(kDigestSize));
  return entry;
}

base::Bytes encode_tool(const Record& record) {
  base::ByteWriter out;
  out.text(record.backend);
  out.text(record.compiler);
  out.text(record.compiler_version);
  out.text(record.toolkit);
  out.raw(record.compiler_identity.view());
  return out.take();
}

bool decode_tool(base::ByteView bytes, Record& record) {
  base::ByteReader in(bytes);
  record.backend = in.text();
  record.compiler = in.text();
  record.compiler_version = in.text();
  record.toolkit = in.text();
  const base::ByteView identity = in.raw(kDigestSize);
  if (!in.complete()) return false;
  record.compiler_identity = base::digest_from(identity);
  return true;
}

base::Bytes encode_arguments(const std::vector<artifact::Argument>& arguments) {
  base::ByteWriter out;
  for (const artifact::Argument& argument : arguments) {
    out.u32(argument.offset);
    out.u32(argument.size);
  }
  return out.take();
}

bool decode_arguments(base::ByteView bytes, std::vector<artifact::Argument>& arguments) {
  if (bytes.size() % 8 != 0 || bytes.size() / 8 > kMaxArguments) return false;
  base::ByteReader in(bytes);
  arguments.resize(bytes.size() / 8);
  for (artifact::Argument& argument : arguments) {
    argument.offset = in.u32();
    argument.size = in.u32();
  }
  return true;
}

base::Bytes encode_metadata(const Pairs& pairs) {
  base::ByteWriter out;
  out.u32(static_cast<uint32_t>(pairs.size()));
  for (const auto& [name, value] : pairs) {
    out.text(name);
    out.text(value);
  }
  return out.take();
}

bool decode_metadata(base::ByteView bytes, Pairs& pairs) {
  base::ByteReader in(bytes);
  pairs.resize(in.count(8));  // two lengths each
  for (auto& [name, value] : pairs) {
    name = in.text();
    value = in.text();
  }
  return in.complete();
}

}  // namespace kc::bundle
