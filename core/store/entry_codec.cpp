#include "store/entry_codec.h"

#include <cmath>
#include <utility>

#include "base/compress.h"

namespace kc::store {
namespace {

using base::ByteReader;
using base::Bytes;
using base::ByteView;
using base::ByteWriter;
using base::Digest;

// The level at which a typical cubin (tens of KB) costs 0.1 ms; a higher one saves a few percent of a cache.
constexpr int kLevel = 3;

struct Sections {
  Bytes raw;  // code, facts, diagnostics, report, without gaps
  uint64_t code = 0, facts = 0, diagnostics = 0, report = 0;
};

Sections join_sections(const artifact::Artifact& artifact) {
  ByteWriter out;
  Sections sections;
  out.raw(artifact.code);
  sections.code = out.size();
  artifact::write_facts(out, artifact.facts);
  sections.facts = out.size() - sections.code;
  size_t before = out.size();
  artifact::write_diagnostics(out, artifact.diagnostics);
  sections.diagnostics = out.size() - before;
  before = out.size();
  out.raw(artifact.report);
  sections.report = out.size() - before;
  sections.raw = out.take();
  return sections;
}

Bytes encode_fields(const Entry& entry, const Sections& sections, ByteView stored) {
  ByteWriter out;
  out.raw(entry.key.view());
  out.raw(base::sha256(stored).view());
  out.raw((entry.code_digest.is_zero() ? base::sha256(entry.artifact.code) : entry.code_digest).view());
  out.u64(sections.raw.size());
  out.u64(sections.code);
  out.u64(sections.facts);
  out.u64(sections.diagnostics);
  out.u64(sections.report);
  out.f64(entry.seconds);
  out.u64(entry.peak_bytes);
  out.i64(entry.origin.time_s);
  out.boolean(entry.origin.imported);
  out.pad_to(8);
  out.text(entry.backend);
  out.text(entry.target);
  out.text(entry.entry);
  out.text(entry.kernel);
  out.text(entry.artifact.compiler);
  out.text(entry.artifact.compiler_version);
  out.text(entry.origin.kc_version);
  out.text(entry.origin.host);
  out.text(entry.origin.user);
  out.text(entry.origin.signer);
  out.u32(static_cast<uint32_t>(entry.key_fields.size()));
  for (const auto& [name, value] : entry.key_fields) {
    out.text(name);
    out.text(value);
  }
  return out.take();
}

// The fields behind the frozen bytes; false when they are not exactly those of this version.
bool read_fields(ByteReader& in, EntryHeader& header) {
  Entry& entry = header.entry;
  entry.key = read_digest(in);
  header.payload_digest = read_digest(in);
  header.code_digest = read_digest(in);
  header.raw_size = in.u64();
  header.code_size = in.u64();
  header.facts_size = in.u64();
  header.diagnostics_size = in.u64();
  header.report_size = in.u64();
  entry.seconds = in.f64();
  entry.peak_bytes = in.u64();
  entry.origin.time_s = in.i64();
  entry.origin.imported = in.boolean();
  for (const uint8_t zero : in.raw(7)) {
    if (zero != 0) in.fail();
  }
  entry.backend = in.text();
  entry.target = in.text();
  entry.entry = in.text();
  entry.kernel = in.text();
  entry.artifact.compiler = in.text();
  entry.artifact.compiler_version = in.text();
  entry.origin.kc_version = in.text();
  entry.origin.host = in.text();
  entry.origin.user = in.text();
  entry.origin.signer = in.text();
  const uint32_t count = in.count(8);  // two lengths
  entry.key_fields.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    std::string name = in.text();
    entry.key_fields.emplace_back(std::move(name), in.text());
  }
  return in.complete();
}

// Whether the sizes can be those of one payload; no sum here can overflow.
bool sizes_agree(const EntryHeader& header) {
  uint64_t left = header.raw_size;
  if (left > kMaxPayload) return false;
  for (const uint64_t part :
       {header.code_size, header.facts_size, header.diagnostics_size, header.report_size}) {
    if (part > left) return false;
    left -= part;
  }
  const uint64_t stored = header.frozen.payload_size;
  const bool compressed = (header.frozen.flags & kFlagCompressed) != 0;
  return left == 0 && (compressed ? stored < header.raw_size : stored == header.raw_size);
}

Checked<EntryHeader> decode_header(ByteView bytes, const Frozen& frozen, const Digest& key) {
  EntryHeader header;
  header.frozen = frozen;
  ByteReader in(bytes.subspan(kFrozenSize));
  if (!read_fields(in, header)) return damaged("has header fields that do not add up");
  header.entry.unsupported = (frozen.flags & kFlagUnsupported) != 0;
  if (header.entry.key != key) return damaged("holds the entry of another key");
  if (!sizes_agree(header)) return damaged("has sizes that do not add up");
  if (header.entry.unsupported != (header.code_size == 0)) {
    return damaged("has no code object, or one that should not be");
  }
  if (!std::isfinite(header.entry.seconds) || header.entry.seconds < 0) {
    return damaged("has an impossible duration");
  }
  return header;
}

Checked<Entry> decode_payload(EntryHeader header, Bytes stored) {
  if (base::sha256(stored) != header.payload_digest)
    return damaged("has a payload that does not match its digest");
  if ((header.frozen.flags & kFlagCompressed) != 0) {
    auto raw = base::decompress(stored, static_cast<size_t>(header.raw_size));
    if (!raw) return damaged(raw.error().message);
    stored = std::move(*raw);
  }
  ByteReader sections(stored);
  const ByteView code = sections.raw(header.code_size);
  ByteReader facts(sections.raw(header.facts_size));
  ByteReader diagnostics(sections.raw(header.diagnostics_size));
  const ByteView report = sections.raw(header.report_size);
  if (base::sha256(code) != header.code_digest)
    return damaged("has a code object that does not match its digest");
  artifact::Artifact& artifact = header.entry.artifact;
  artifact.facts = artifact::read_facts(facts);
  artifact.diagnostics = artifact::read_diagnostics(diagnostics);
  if (!sections.complete() || !facts.complete() || !diagnostics.complete()) {
    return damaged("has facts or diagnostics that cannot be read");
  }
  artifact.code.assign(code.begin(), code.end());
  artifact.report.assign(report.begin(), report.end());
  header.entry.code_digest = header.code_digest;
  return std::move(header.entry);
}

}  // namespace

base::Result<Bytes> encode_entry(const Entry& entry) {
  if (entry.unsupported != entry.artifact.code.empty()) {
    return base::fail(base::ErrorKind::kInternal, "an entry has a code object exactly when it is supported");
  }
  if (entry.artifact.code.size() > kMaxPayload || entry.artifact.report.size() > kMaxPayload) {
    return base::fail(base::ErrorKind::kFailed, "the artifact is larger than an entry may be");
  }
  const Sections sections = join_sections(entry.artifact);
  if (sections.raw.size() > kMaxPayload) {
    return base::fail(base::ErrorKind::kFailed, "the artifact is larger than an entry may be");
  }
  KC_ASSIGN(const Bytes compressed, base::compress(sections.raw, kLevel));
  const bool smaller = compressed.size() < sections.raw.size();
  const Bytes& stored = smaller ? compressed : sections.raw;
  const Bytes fields = encode_fields(entry, sections, stored);
  if (fields.size() + kFrozenSize > kMaxHeader) {
    return base::fail(base::ErrorKind::kFailed, "the names in the entry are longer than an entry may hold");
  }
  const uint32_t flags = (smaller ? kFlagCompressed : 0) | (entry.unsupported ? kFlagUnsupported : 0);
  Bytes out = build_header(kEntryMagic, kVersion, flags, fields, stored.size());
  out.insert(out.end(), stored.begin(), stored.end());
  return out;
}

Checked<EntryHeader> read_entry_header(int fd, const Digest& key, uint64_t file_size) {
  KC_ASSIGN(const HeaderBytes header, read_header(fd, kEntryMagic, kEntryFlags, file_size));
  return decode_header(header.bytes, header.frozen, key);
}

Checked<Entry> read_entry(int fd, const Digest& key, uint64_t file_size) {
  KC_ASSIGN(EntryHeader header, read_entry_header(fd, key, file_size));
  KC_ASSIGN(Bytes stored, read_payload(fd, header.frozen));
  return decode_payload(std::move(header), std::move(stored));
}

Checked<Entry> decode_entry(ByteView file, const Digest& key) {
  KC_ASSIGN(const Frozen frozen, read_frozen(file, kEntryMagic, file.size()));
  const ByteView bytes = file.first(static_cast<size_t>(frozen.header_size));
  KC_TRY(check_header(bytes, frozen, kEntryFlags, file.size()));
  KC_ASSIGN(EntryHeader header, decode_header(bytes, frozen, key));
  const ByteView stored = file.subspan(bytes.size());
  return decode_payload(std::move(header), Bytes(stored.begin(), stored.end()));
}

}  // namespace kc::store
