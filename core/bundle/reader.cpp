#include <fcntl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/compress.h"
#include "bundle/bundle.h"
#include "bundle/format.h"
#include "bundle/grammar.h"
#include "bundle/reader_impl.h"

namespace kc::bundle {

using base::ErrorKind;

Reader::Impl::Impl(std::shared_ptr<const ByteSource> bytes, Header head, Piece page_table,
                   const ReadOptions& how)
    : source(std::move(bytes)),
      header(std::move(head)),
      info{header.name, header.release, (header.required_flags & kFlagPartial) != 0,
           (header.required_flags & kFlagSubset) != 0},
      options(how),
      pages(*source, header.layout.pages, std::move(page_table)) {}

std::unexpected<base::Error> Reader::Impl::damaged(const std::string& what) const {
  return base::fail_at(ErrorKind::kFailed, {path()}, "the bundle is damaged: " + what);
}

std::unexpected<base::Error> Reader::Impl::bad_record(uint32_t number, const std::string& what) const {
  return damaged("record " + std::to_string(number) + " at offset " +
                 std::to_string(header.layout.index.offset + number * kIndexSize) + ": " + what);
}

std::unexpected<base::Error> Reader::Impl::bad_frame(uint32_t number, const std::string& what) const {
  return damaged("frame " + std::to_string(number) + ": " + what);
}

bool Reader::Impl::holds(Ref ref, uint64_t most) const {
  const uint64_t end = uint64_t{ref.offset} + ref.length;
  return ref.length <= most && end <= header.layout.strings.size && (ref.length != 0 || ref.offset == 0);
}

base::Result<std::string> Reader::Impl::text(Ref ref) {
  std::string out(ref.length, '\0');
  KC_TRY(pages.read(header.layout.strings.offset + ref.offset,
                    {reinterpret_cast<uint8_t*>(out.data()), out.size()}));
  return out;
}

base::Result<IndexEntry> Reader::Impl::index(uint32_t number, Trust trust) {
  if (number >= header.record_count) {
    return base::fail_at(ErrorKind::kInternal, {path()}, "has no record " + std::to_string(number));
  }
  std::array<uint8_t, kIndexSize> bytes;
  KC_TRY(pages.read(header.layout.index.offset + number * kIndexSize, bytes, trust));
  const std::optional<IndexEntry> entry = decode_index(bytes, strict());
  if (!entry) return bad_record(number, "a reserved field is not zero");
  if (!holds(entry->kernel, kMaxKernelLength) || !holds(entry->specialization, kMaxSpecialization) ||
      !holds(entry->target, kMaxTargetLength) || !holds(entry->found_target, kMaxTargetLength)) {
    return bad_record(number, "a name lies outside the strings or is too long");
  }
  return *entry;
}

base::Result<Record> Reader::Impl::record(uint32_t number) {
  std::vector<Ref> refs;
  return record(number, refs);
}

base::Result<Record> Reader::Impl::record(uint32_t number, std::vector<Ref>& refs) {
  KC_ASSIGN(const IndexEntry entry, index(number));
  std::array<uint8_t, kDetailSize> bytes;
  KC_TRY(pages.read(header.layout.details.offset + number * kDetailSize, bytes));
  const std::optional<DetailEntry> detail = decode_detail(bytes, strict());
  if (!detail) return bad_record(number, "a reserved field is not zero");
  if (!holds(detail->entry, kMaxPlainText) || !holds(detail->symbol, kMaxPlainText) ||
      !holds(detail->facts_symbol, kMaxPlainText) || !holds(detail->tool, kMaxToolSize) ||
      !holds(detail->arguments, uint64_t{kMaxArguments} * 8) || !holds(detail->metadata, kMaxMetadataSize)) {
    return bad_record(number, "a text lies outside the strings or is too long");
  }
  for (const Ref& ref :
       {entry.kernel, entry.specialization, entry.target, entry.found_target, detail->entry, detail->symbol,
        detail->facts_symbol, detail->tool, detail->arguments, detail->metadata}) {
    if (ref.length != 0) refs.push_back(ref);
  }

  Record out;
  out.facts = detail->facts;
  for (const auto& [ref, target] : {std::pair{entry.kernel, &out.kernel},
                                    {entry.specialization, &out.specialization},
                                    {entry.target, &out.target},
                                    {entry.found_target, &out.found_target},
                                    {detail->entry, &out.entry},
                                    {detail->symbol, &out.symbol},
                                    {detail->facts_symbol, &out.facts.symbol}}) {
    KC_ASSIGN(*target, text(ref));
  }
  KC_ASSIGN(const std::string tool, text(detail->tool));
  KC_ASSIGN(const std::string arguments, text(detail->arguments));
  KC_ASSIGN(const std::string pairs, text(detail->metadata));
  if (!decode_tool(base::as_bytes(tool), out)) return bad_record(number, "its tool item is malformed");
  if (!decode_arguments(base::as_bytes(arguments), out.facts.arguments)) {
    return bad_record(number, "its arguments item is malformed");
  }
  if (!pairs.empty() && !decode_metadata(base::as_bytes(pairs), out.metadata)) {
    return bad_record(number, "its metadata item is malformed");
  }
  out.is_default = entry.is_default;
  out.lowest_driver = entry.lowest_driver;
  out.content_key = detail->content_key;
  out.artifact_digest = detail->artifact_digest;
  out.artifact_size = entry.artifact_size;
  out.frame = entry.frame;
  out.frame_offset = entry.frame_offset;
  if (const auto fault = fault_of(out)) return bad_record(number, *fault);
  if (out.frame >= header.frame_count || out.artifact_size == 0 || out.artifact_size > kMaxFrameBytes ||
      out.frame_offset % kAlignment != 0) {
    return bad_record(number, "it leads to no place in a frame");
  }
  return out;
}

base::Result<FrameEntry> Reader::Impl::frame(uint32_t number) {
  if (number >= header.frame_count) {
    return base::fail_at(ErrorKind::kInternal, {path()}, "has no frame " + std::to_string(number));
  }
  std::array<uint8_t, kFrameEntrySize> bytes;
  KC_TRY(pages.read(header.layout.frame_table.offset + number * kFrameEntrySize, bytes));
  const std::optional<FrameEntry> entry = decode_frame(bytes, strict());
  if (!entry) return bad_frame(number, "an unknown flag is set or a reserved field is not zero");
  if (entry->raw_size == 0 || entry->raw_size > kMaxFrameBytes) {
    return bad_frame(number, "it claims to hold " + std::to_string(entry->raw_size) + " raw bytes");
  }
  const bool sizes_fit =
      entry->compressed ? entry->stored_size < entry->raw_size : entry->stored_size == entry->raw_size;
  if (entry->stored_size == 0 || !sizes_fit) {
    return bad_frame(number, "it claims " + std::to_string(entry->stored_size) + " stored bytes for " +
                                 std::to_string(entry->raw_size) + " raw ones");
  }
  const Section& frames = header.layout.frames;
  if (entry->offset % kAlignment != 0 || entry->offset < frames.offset || entry->offset > frames.end() ||
      entry->stored_size > frames.end() - entry->offset) {
    return bad_frame(number, "it lies outside the frames, at offset " + std::to_string(entry->offset));
  }
  return *entry;
}

base::Result<Piece> Reader::Impl::frame_bytes(uint32_t number, const FrameEntry& entry) const {
  KC_ASSIGN(Piece stored, source->read(entry.offset, entry.stored_size));
  if (base::sha256(stored.bytes) != entry.digest) {
    return bad_frame(number, "its digest is wrong (" + std::to_string(entry.stored_size) +
                                 " bytes at offset " + std::to_string(entry.offset) + ")");
  }
  if (!entry.compressed) return stored;
  base::Result<base::Buffer> raw = base::decompress_to_buffer(stored.bytes, entry.raw_size);
  if (!raw) {
    if (raw.error().kind == ErrorKind::kFailed) return bad_frame(number, raw.error().message);
    return std::unexpected(std::move(raw).error());
  }
  auto owner = std::make_shared<const base::Buffer>(std::move(*raw));
  const base::ByteView bytes = owner->view();
  return Piece{std::move(owner), bytes};
}

base::Result<Piece> Reader::Impl::kept_frame_bytes(uint32_t number, const FrameEntry& entry) {
  {
    const std::lock_guard lock(mutex);
    if (last_frame == number) return last_bytes;
  }
  base::Result<Piece> bytes = frame_bytes(number, entry);
  if (bytes && entry.raw_size <= options.largest_kept_frame) {
    Piece before;  // ends after the lock
    const std::lock_guard lock(mutex);
    before = std::exchange(last_bytes, *bytes);
    last_frame = number;
  }
  return bytes;
}

base::Result<Pairs> Reader::Impl::metadata() const {
  const Section& section = header.layout.metadata;
  KC_ASSIGN(const Piece item, source->read(section.offset, section.size));
  if (base::sha256(item.bytes) != header.metadata_digest) {
    return damaged("the digest of its metadata at offset " + std::to_string(section.offset) + " is wrong");
  }
  Pairs out;
  if (!decode_metadata(item.bytes, out) || !is_metadata(out)) return damaged("its metadata is malformed");
  return out;
}

base::Result<int> Reader::Impl::compare(uint32_t number, const Sought& sought, Trust trust) {
  KC_ASSIGN(const IndexEntry entry, index(number, trust));
  // Each part is fetched only when the ones before it are equal, which saves pages.
  for (const auto& [ref, wanted] : {std::pair{entry.kernel, sought.kernel},
                                    {entry.specialization, sought.specialization},
                                    {entry.target, sought.target}}) {
    KC_ASSIGN(const int order,
              pages.compare(header.layout.strings.offset + ref.offset, ref.length, wanted, trust));
    if (order != 0) return order;
  }
  return 0;
}

base::Result<uint32_t> Reader::Impl::search(const Sought& sought, Trust trust) {
  uint32_t low = 0;
  uint32_t high = header.record_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    KC_ASSIGN(const int order, compare(middle, sought, trust));
    if (order == 0) return middle;  // no two are equal
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

base::Result<bool> Reader::Impl::is_first_not_below(uint32_t number, const Sought& sought) {
  if (number < header.record_count) {
    KC_ASSIGN(const int order, compare(number, sought));
    if (order <= 0) return order == 0;
  }
  if (number == 0) return true;
  KC_ASSIGN(const int order, compare(number - 1, sought));
  return order < 0;
}

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

base::Result<Reader> Reader::open(const std::string& path, const ReadOptions& options) {
  // O_NONBLOCK: opening a FIFO must not hang; it has no effect on regular files.
  KC_ASSIGN(base::FileDescriptor fd, base::open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK));
  KC_ASSIGN(Reader reader, open(std::move(fd), path, options));
  reader.impl_->is_of_path = true;
  return reader;
}

base::Result<Reader> Reader::open(base::FileDescriptor fd, std::string name, const ReadOptions& options) {
  KC_ASSIGN(ByteSource source, ByteSource::of_file(std::move(fd), std::move(name)));
  return Impl::open(std::move(source), options);
}

base::Result<Reader> Reader::open(base::ByteView memory, std::string name, const ReadOptions& options) {
  return Impl::open(ByteSource::of_memory(memory, std::move(name)), options);
}

base::Result<Reader> Reader::Impl::open(ByteSource bytes, const ReadOptions& options) {
  auto source = std::make_shared<const ByteSource>(std::move(bytes));
  KC_ASSIGN(const Piece start, source->read(0, std::min(source->size(), kMaxHeaderSize)));
  KC_ASSIGN(Header header, decode_header(start.bytes, source->size(), source->name()));
  const Section& table = header.layout.page_table;
  KC_ASSIGN(Piece page_table, source->read(table.offset, table.size));
  if (base::sha256(page_table.bytes) != header.page_table_digest) {
    return base::fail_at(ErrorKind::kFailed, {source->name()},
                         "the bundle is damaged: the digest of its page table is wrong");
  }
  return Reader(std::make_unique<Impl>(std::move(source), std::move(header), std::move(page_table), options));
}

const std::string& Reader::path() const {
  return impl_->path();
}
const Info& Reader::info() const {
  return impl_->info;
}
base::Digest Reader::header_digest() const {
  return impl_->header.digest;
}
uint64_t Reader::file_size() const {
  return impl_->source->size();
}
uint64_t Reader::content_size() const {
  return impl_->header.layout.content_size;
}
uint32_t Reader::record_count() const {
  return impl_->header.record_count;
}
uint32_t Reader::frame_count() const {
  return impl_->header.frame_count;
}
uint64_t Reader::page_loads() const {
  return impl_->pages.loads();
}

base::Result<Record> Reader::record(uint32_t index) {
  return impl_->record(index);
}

base::Result<uint32_t> Reader::lower_bound(std::string_view kernel, std::string_view specialization,
                                           std::string_view target) {
  const Sought sought{kernel, specialization, target};
  // Most of the pages that a search touches only lead to the next one. So it goes over pages as they are, and
  // two neighbours that are checked prove where it led to: records are sorted in what was signed. Whatever
  // is wrong with that, the search over checked pages tells.
  if (const base::Result<uint32_t> guess = impl_->search(sought, Trust::kGuess)) {
    const base::Result<bool> is_right = impl_->is_first_not_below(*guess, sought);
    if (is_right && *is_right) return *guess;
  }
  return impl_->search(sought, Trust::kChecked);
}

base::Result<std::optional<uint32_t>> Reader::find(std::string_view kernel, std::string_view specialization,
                                                   std::string_view target) {
  KC_ASSIGN(const uint32_t index, lower_bound(kernel, specialization, target));
  if (index == record_count()) return std::nullopt;
  KC_ASSIGN(const int order, impl_->compare(index, {kernel, specialization, target}));
  if (order != 0) return std::nullopt;
  return index;
}

base::Result<Reader::Names> Reader::names(uint32_t index) {
  KC_ASSIGN(const IndexEntry entry, impl_->index(index));
  Names out;
  out.is_default = entry.is_default;
  out.lowest_driver = entry.lowest_driver;
  for (const auto& [ref, name] : {std::pair{entry.kernel, &out.kernel},
                                  {entry.specialization, &out.specialization},
                                  {entry.target, &out.target},
                                  {entry.found_target, &out.found_target}}) {
    KC_ASSIGN(*name, impl_->text(ref));
  }
  return out;
}

base::Result<std::optional<uint32_t>> Reader::first_default(uint32_t index) {
  KC_ASSIGN(const IndexEntry first, impl_->index(index));
  for (uint32_t at = index; at < record_count(); ++at) {
    KC_ASSIGN(const IndexEntry entry, impl_->index(at));
    if (entry.kernel != first.kernel) break;  // each string is stored once
    if (entry.is_default) return at;
  }
  return std::nullopt;
}

base::Result<uint32_t> Reader::next_kernel(uint32_t index) {
  KC_ASSIGN(const IndexEntry first, impl_->index(index));
  uint32_t at = index + 1;
  for (; at < record_count(); ++at) {
    KC_ASSIGN(const IndexEntry entry, impl_->index(at));
    if (entry.kernel != first.kernel) break;
  }
  return at;
}

base::Result<void> Reader::variants(uint32_t index, const VisitVariant& visit) {
  KC_ASSIGN(const IndexEntry first, impl_->index(index));
  for (uint32_t at = index; at < record_count(); ++at) {
    KC_ASSIGN(const IndexEntry entry, impl_->index(at));
    // Each string is stored once.
    if (entry.kernel != first.kernel || entry.specialization != first.specialization) break;
    KC_ASSIGN(const std::string target, impl_->text(entry.target));
    KC_ASSIGN(const std::string found_target, impl_->text(entry.found_target));
    if (!visit(at, target, found_target)) break;
  }
  return {};
}

base::Result<Code> Reader::code(const Record& record) {
  KC_ASSIGN(const FrameEntry entry, impl_->frame(record.frame));
  if (record.artifact_size > entry.raw_size || record.frame_offset > entry.raw_size - record.artifact_size) {
    return impl_->bad_frame(record.frame, "the code object of " + record.unit() + " lies outside it");
  }
  KC_ASSIGN(Piece raw, impl_->kept_frame_bytes(record.frame, entry));
  const base::ByteView code = raw.bytes.subspan(record.frame_offset, record.artifact_size);
  if (base::sha256(code) != record.artifact_digest) {
    return impl_->bad_frame(record.frame, "the digest of the code object of " + record.unit() + " is wrong");
  }
  return Code{std::move(raw.owner), code};
}

base::Result<base::Bytes> Reader::artifact(const Record& record) {
  KC_ASSIGN(const Code found, code(record));
  return base::Bytes(found.bytes.begin(), found.bytes.end());
}

base::Result<Reader::FrameInfo> Reader::frame(uint32_t index) {
  KC_ASSIGN(const FrameEntry entry, impl_->frame(index));
  return FrameInfo{entry.offset, entry.stored_size, entry.raw_size};
}

base::Result<std::vector<std::pair<std::string, std::string>>> Reader::metadata() {
  return impl_->metadata();
}

base::Result<std::vector<Reader::SignatureBlock>> Reader::signature_blocks() {
  return impl_->signature_blocks();
}

bool looks_like_bundle(const std::string& path) {
  const base::Result<base::FileDescriptor> fd = base::open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
  if (!fd) return false;
  const base::Result<base::Bytes> start = base::pread_exact(fd->get(), 0, kMagic.size(), path);
  return start && base::as_text(*start) == kMagic;
}

}  // namespace kc::bundle
