// Verification of a whole bundle. Faults that follow from another that was reported are not reported again:
// a record on a damaged page, the order or coverage of what could not be read.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "bundle/bundle.h"
#include "bundle/format.h"
#include "bundle/reader_impl.h"

namespace kc::bundle {
namespace {

// What a person reads; a bundle that is one large fault must not take memory for a million messages.
constexpr size_t kMaxFaults = 1000;

bool all_zero(base::ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

// Where a record's artifact lies in its frame.
struct Extent {
  uint32_t frame = 0;
  uint32_t offset = 0;
  uint64_t size = 0;
  uint32_t record = 0;
  base::Digest digest;

  auto place() const { return std::tie(frame, offset, size); }
};

}  // namespace

// A member of Reader so that it may see Impl.
struct Reader::Verifier {
  explicit Verifier(Reader::Impl& impl) : bundle(impl), layout(impl.header.layout) {}

  void run() {
    check_pages();
    check_padding();
    check_records();
    check_strings();
    check_frames();
    report(bundle.metadata());
    report(bundle.signature_blocks());
    if (!bundle.strict() && layout.content_size > align_to(layout.metadata.end(), kAlignment)) {
      add(bundle
              .damaged("or was made by a newer kc: " +
                       std::to_string(layout.content_size - layout.metadata.end()) +
                       " bytes behind its metadata cannot be checked")
              .error());
    }
    if (dropped > 0) {
      faults.push_back(bundle.damaged(std::to_string(dropped) + " more faults are not listed").error());
    }
  }

  void add(base::Error error) {
    if (faults.size() < kMaxFaults) {
      faults.push_back(std::move(error));
    } else {
      ++dropped;
    }
  }
  template <typename T>
  bool report(const base::Result<T>& result) {
    if (!result) add(result.error());
    return result.has_value();
  }

  void check_pages() {
    for (uint32_t number = 0; number < bundle.pages.count(); ++number) report(bundle.pages.page(number));
    bad_pages = bundle.pages.failures() > 0;
  }

  void check_zero(uint64_t begin, uint64_t end, const char* where) {
    const base::Result<Piece> padding = bundle.source->read(begin, end - begin);
    if (report(padding) && !all_zero(padding->bytes)) {
      add(bundle
              .damaged(std::string("the padding behind ") + where + " at offset " + std::to_string(begin) +
                       " is not zero")
              .error());
    }
  }

  void check_padding() {
    check_zero(layout.page_table.end(), layout.pages.offset, "the page table");
    check_zero(layout.frames.end(), layout.metadata.offset, "the frames");
    check_zero(layout.metadata.end(), align_to(layout.metadata.end(), kAlignment), "the metadata");
    if (bad_pages) return;
    check_zero(layout.index.end(), layout.details.offset, "the index");
    check_zero(layout.details.end(), layout.frame_table.offset, "the details");
    check_zero(layout.frame_table.end(), layout.strings.offset, "the frame table");
    check_zero(layout.strings.end(), layout.pages.end(), "the strings");
  }

  void check_records() {
    Record previous;
    bool has_previous = false;
    for (uint32_t number = 0; number < bundle.header.record_count; ++number) {
      const uint64_t failures = bundle.pages.failures();
      base::Result<Record> record = bundle.record(number, refs);
      if (!record) {
        bad_records = true;
        has_previous = false;
        if (bundle.pages.failures() == failures) add(record.error());
        continue;
      }
      if (has_previous) {
        const auto key = [](const Record& r) { return std::tie(r.kernel, r.specialization, r.target); };
        if (key(previous) == key(*record)) {
          add(bundle.bad_record(number, record->unit() + " is there twice").error());
        } else if (key(*record) < key(previous)) {
          add(bundle.bad_record(number, record->unit() + " is not in its place in the order").error());
        }
      }
      extents.push_back(
          {record->frame, record->frame_offset, record->artifact_size, number, record->artifact_digest});
      previous = std::move(*record);
      has_previous = true;
      // Refs repeat; what is kept stays in proportion to the distinct ones.
      if (refs.size() > 2 * distinct_refs + 1'000'000) shrink_refs();
    }
    shrink_refs();
  }

  void shrink_refs() {
    std::sort(refs.begin(), refs.end());
    refs.erase(std::unique(refs.begin(), refs.end()), refs.end());
    distinct_refs = refs.size();
  }

  void check_strings() {
    if (bad_records) return;  // who refers to the rest is unknown
    uint64_t covered = 0;
    for (const Ref& ref : refs) {
      if (ref.offset != covered) break;
      covered += ref.length;
    }
    if (covered != layout.strings.size) {
      add(bundle
              .damaged("the strings at offset " + std::to_string(layout.strings.offset + covered) +
                       " overlap, or are not referred to by any record")
              .error());
    }
  }

  void check_frames() {
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
      return std::tuple_cat(a.place(), std::tie(a.record)) < std::tuple_cat(b.place(), std::tie(b.record));
    });
    auto next = extents.begin();
    uint64_t end = layout.frames.offset;  // of the frame before
    bool is_end_known = true;
    for (uint32_t number = 0; number < bundle.header.frame_count; ++number) {
      const auto begin = next;
      while (next != extents.end() && next->frame == number) ++next;
      const uint64_t failures = bundle.pages.failures();
      const base::Result<FrameEntry> entry = bundle.frame(number);
      if (!entry) {
        if (bundle.pages.failures() == failures) add(entry.error());
        is_end_known = false;
        continue;
      }
      if (is_end_known && entry->offset != end) {
        add(bundle.bad_frame(number, "it does not follow the one before it").error());
      }
      const uint64_t stored_end = entry->offset + entry->stored_size;
      end = align_to(stored_end, kAlignment);
      is_end_known = true;
      if (end > layout.frames.end()) {
        add(bundle.bad_frame(number, "its padding is cut short").error());
      } else {
        check_zero(stored_end, end, ("frame " + std::to_string(number)).c_str());
      }
      const base::Result<Piece> raw = bundle.frame_bytes(number, *entry);
      if (report(raw)) check_artifacts(number, raw->bytes, {begin, next});
    }
    if (is_end_known && end != layout.frames.end()) {
      add(bundle
              .damaged("bytes between the last frame and offset " + std::to_string(layout.frames.end()) +
                       " belong to nothing")
              .error());
    }
  }

  // The artifacts of one frame: each digest, and that together they are all of it.
  void check_artifacts(uint32_t number, base::ByteView raw, std::span<const Extent> in_frame) {
    uint64_t covered = 0;
    bool whole = true;
    const Extent* previous = nullptr;
    base::Digest digest;
    for (const Extent& extent : in_frame) {
      const std::string who = "the code object of record " + std::to_string(extent.record);
      if (extent.size > raw.size() || extent.offset > raw.size() - extent.size) {
        add(bundle.bad_frame(number, who + " lies outside it").error());
        whole = false;
        continue;
      }
      if (previous == nullptr || previous->place() != extent.place()) {
        digest = base::sha256(raw.subspan(extent.offset, extent.size));
        if (const auto [known, is_new] = stored.emplace(digest, extent.record); !is_new) {
          add(bundle
                  .bad_frame(number,
                             who + " is stored twice, also for record " + std::to_string(known->second))
                  .error());
        }
        const uint64_t expected = align_to(covered, kAlignment);
        if (extent.offset == expected && !all_zero(raw.subspan(covered, expected - covered))) {
          add(bundle.bad_frame(number, "its padding before " + who + " is not zero").error());
        }
        if (extent.offset != expected) whole = false;
        covered = extent.offset + extent.size;
      }
      previous = &extent;
      if (digest != extent.digest)
        add(bundle.bad_frame(number, "the digest of " + who + " is wrong").error());
    }
    if (!bad_records && (!whole || covered != raw.size())) {
      add(bundle.bad_frame(number, "its bytes overlap, or are not referred to by any record").error());
    }
  }

  Reader::Impl& bundle;
  const Layout& layout;
  std::vector<base::Error> faults;
  uint64_t dropped = 0;
  bool bad_pages = false;
  bool bad_records = false;
  std::vector<Ref> refs;  // that records hold
  size_t distinct_refs = 0;
  std::vector<Extent> extents;
  std::unordered_map<base::Digest, uint32_t> stored;  // artifact -> a record of it
};

std::vector<base::Error> Reader::verify_all() {
  // With pages of its own: each is read again, and what other threads find damaged meanwhile is not counted.
  Impl own(impl_->source, impl_->header, impl_->pages.table(), impl_->options);
  Verifier verifier(own);
  verifier.run();
  return std::move(verifier.faults);
}

}  // namespace kc::bundle
