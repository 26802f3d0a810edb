// Writing a bundle, as a list of passes; each says what holds after it.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/compress.h"
#include "base/file_system.h"
#include "base/parallel.h"
#include "bundle/bundle.h"
#include "bundle/format.h"
#include "bundle/grammar.h"
#include "bundle/packing.h"
#include "bundle/strings.h"
#include "target/target.h"

namespace kc::bundle {
namespace {

using base::ErrorKind;

// Raw bytes whose frames are compressed together and then written: enough frames of the default size (128)
// to keep many threads busy, and a bound on the memory that finished frames take.
constexpr uint64_t kBatchBytes = 32ULL << 20;
constexpr std::string_view kFileName = "the bundle";

// Calls `work(i)` for each i in [0, count) in parallel, until one fails; of several errors the one of the
// lowest i is given back.
template <typename Work>
base::Result<void> parallel_try(size_t count, unsigned threads, const Work& work) {
  std::mutex mutex;
  std::optional<base::Error> error;
  size_t failed_at = count;
  std::atomic<bool> failed{false};
  base::parallel_for(count, threads, [&](size_t i) {
    if (failed) return;
    base::Result<void> result = work(i);
    if (result) return;
    failed = true;
    const std::lock_guard lock(mutex);
    if (i < failed_at) {
      failed_at = i;
      error = std::move(result).error();
    }
  });
  if (error) return std::unexpected(std::move(*error));
  return {};
}

class Writer {
 public:
  Writer(int fd, const Info& info, std::vector<Record> records, const ArtifactSource& artifacts,
         const WriteOptions& options)
      : fd_(fd), info_(info), records_(std::move(records)), artifacts_(artifacts), options_(options) {}

  base::Result<void> write() {
    KC_TRY(check_input());
    KC_TRY(sort_records());
    KC_TRY(measure_artifacts());
    KC_TRY(pack_frames());
    KC_TRY(make_strings());
    KC_TRY(write_frames());
    return write_head();
  }

 private:
  struct Frame {
    FrameEntry entry;
    base::Bytes stored;
  };

  // After it: options, name and every record are within format and limits, and the file is empty.
  base::Result<void> check_input() {
    struct stat status;
    if (base::file_system().fstat(fd_, &status) != 0)
      return base::fail_errno(ErrorKind::kEnvironment, "stat", kFileName, errno);
    if (status.st_size != 0) return base::fail(ErrorKind::kInternal, "a bundle is written to an empty file");
    if (options_.level < base::kMinLevel || options_.level > base::kMaxLevel) {
      return base::fail(ErrorKind::kInternal, "compression level " + std::to_string(options_.level));
    }
    if (options_.frame_size < kLeastFrameSize || options_.frame_size > kMaxFrameBytes) {
      return base::fail(ErrorKind::kInternal, "frame size " + std::to_string(options_.frame_size));
    }
    if (!is_plain_text(info_.name, kMaxNameLength)) {
      return base::fail(ErrorKind::kInput,
                        "the bundle's name is longer than 255 bytes or holds control characters",
                        "give it another with \"name:\" in the manifest");
    }
    if (records_.size() > kMaxRecords) {
      return base::fail(
          ErrorKind::kFailed,
          std::to_string(records_.size()) + " units; a bundle holds at most " + std::to_string(kMaxRecords));
    }
    for (const Record& record : records_) {
      if (const auto fault = fault_of(record)) {
        return base::fail(ErrorKind::kInternal, "bundle record of " + record.unit() + ": " + *fault);
      }
    }
    return {};
  }

  // After it: order_ leads through records_ sorted by (kernel, specialization, target), no two equal.
  base::Result<void> sort_records() {
    const auto key = [this](uint32_t i) {
      const Record& record = records_[i];
      return std::tie(record.kernel, record.specialization, record.target);
    };
    order_.resize(records_.size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    const auto twin = std::adjacent_find(order_.begin(), order_.end(),
                                         [&](uint32_t a, uint32_t b) { return key(a) == key(b); });
    if (twin != order_.end()) {
      return base::fail(ErrorKind::kInternal, "two bundle records of one unit, " + records_[*twin].unit());
    }
    return {};
  }

  // After it: size and digest of every artifact are known; no artifact is held.
  base::Result<void> measure_artifacts() {
    return parallel_try(records_.size(), options_.threads, [this](size_t i) -> base::Result<void> {
      Record& record = records_[i];
      if (record.artifact_size == 0 || record.artifact_digest.is_zero()) {
        KC_ASSIGN(const base::Bytes code, artifacts_(i));
        record.artifact_size = code.size();
        record.artifact_digest = base::sha256(code);
      }
      if (record.artifact_size == 0) {
        return base::fail(ErrorKind::kInternal, "the code object of " + record.unit() + " is empty");
      }
      if (record.artifact_size > kMaxFrameBytes) {
        return base::fail(ErrorKind::kFailed, "the code object of " + record.unit() + " has " +
                                                  std::to_string(record.artifact_size) +
                                                  " bytes; a bundle takes at most " +
                                                  std::to_string(kMaxFrameBytes));
      }
      return {};
    });
  }

  // After it: each record knows its frame and offset, and packing_ names records by their index.
  base::Result<void> pack_frames() {
    std::vector<std::string> families(records_.size());
    for (size_t i = 0; i < records_.size(); ++i) {
      KC_ASSIGN(const target::Target target, target::parse_target(records_[i].target));
      families[i] = target::family_of(target);
    }
    std::vector<uint32_t> order = order_;  // by (kernel, specialization, target)
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::tie(families[a], records_[a].kernel) < std::tie(families[b], records_[b].kernel);
    });
    std::vector<PackItem> items;
    items.reserve(order.size());
    for (const uint32_t i : order) {
      items.push_back(
          {families[i], records_[i].kernel, records_[i].artifact_digest, records_[i].artifact_size});
    }
    packing_ = pack(items, options_.frame_size);
    for (size_t k = 0; k < order.size(); ++k) {
      records_[order[k]].frame = packing_.places[k].frame;
      records_[order[k]].frame_offset = packing_.places[k].offset;
    }
    for (PackedFrame& frame : packing_.frames) {
      for (uint32_t& item : frame.items) item = order[item];
    }
    return {};
  }

  // After it: index and details are encoded, the strings complete, and where frames begin is known.
  base::Result<void> make_strings() {
    // What a search reads comes first, sorted as the index is, so that it lies in few pages.
    for (const uint32_t i : order_) strings_.add(records_[i].kernel);
    std::vector<std::string_view> names;
    for (const Record& record : records_) {
      names.push_back(record.target);
      names.push_back(record.found_target);
    }
    std::sort(names.begin(), names.end());
    for (const std::string_view name : names) strings_.add(name);
    names.clear();
    for (const Record& record : records_) names.push_back(record.specialization);
    std::sort(names.begin(), names.end());
    for (const std::string_view name : names) strings_.add(name);

    for (const uint32_t i : order_) {
      const Record& record = records_[i];
      IndexEntry entry;
      entry.kernel = strings_.add(record.kernel);
      entry.specialization = strings_.add(record.specialization);
      entry.target = strings_.add(record.target);
      entry.found_target = strings_.add(record.found_target);
      entry.is_default = record.is_default;
      entry.frame = record.frame;
      entry.frame_offset = record.frame_offset;
      entry.artifact_size = record.artifact_size;
      entry.lowest_driver = record.lowest_driver;
      encode_index(index_, entry);

      DetailEntry detail;
      detail.artifact_digest = record.artifact_digest;
      detail.content_key = record.content_key;
      detail.entry = strings_.add(record.entry);
      detail.symbol = strings_.add(record.symbol);
      detail.facts_symbol = strings_.add(record.facts.symbol);
      detail.tool = strings_.add(encode_tool(record));
      detail.arguments = strings_.add(encode_arguments(record.facts.arguments));
      const base::Bytes metadata = record.metadata.empty() ? base::Bytes() : encode_metadata(record.metadata);
      if (metadata.size() > kMaxMetadataSize) {
        return base::fail(ErrorKind::kFailed, "the metadata of " + record.unit() + " is larger than 1 MiB");
      }
      detail.metadata = strings_.add(metadata);
      detail.facts = record.facts;
      encode_detail(details_, detail);
    }
    if (strings_.full()) {
      return base::fail(ErrorKind::kFailed,
                        "the names and metadata of the units have more than 1 GiB together");
    }
    frames_offset_ = layout(0, 0).frames.offset;
    return {};
  }

  Layout layout(uint64_t frames_size, uint64_t metadata_size) const {
    return layout_of(static_cast<uint32_t>(records_.size()), static_cast<uint32_t>(packing_.frames.size()),
                     strings_.bytes().size(), frames_size, metadata_size);
  }

  // After it: all frames are in the file, each followed by its padding; frame_table_ is complete.
  base::Result<void> write_frames() {
    uint64_t offset = frames_offset_;
    const std::vector<PackedFrame>& planned = packing_.frames;
    for (size_t begin = 0; begin < planned.size();) {
      size_t end = begin;
      for (uint64_t bytes = 0; end < planned.size() && (end == begin || bytes < kBatchBytes); ++end) {
        bytes += planned[end].raw_size;
      }
      std::vector<Frame> batch(end - begin);
      KC_TRY(parallel_try(batch.size(), options_.threads, [&](size_t i) -> base::Result<void> {
        KC_ASSIGN(batch[i], make_frame(planned[begin + i]));
        return {};
      }));
      for (Frame& frame : batch) {
        frame.entry.offset = offset;
        encode_frame(frame_table_, frame.entry);
        frame.stored.resize(align_to(frame.stored.size(), kAlignment));
        KC_TRY(base::pwrite_all(fd_, frame.stored, offset, kFileName));
        offset += frame.stored.size();
      }
      begin = end;
    }
    frames_size_ = offset - frames_offset_;
    return {};
  }

  base::Result<Frame> make_frame(const PackedFrame& planned) const {
    base::Bytes raw;
    raw.reserve(planned.raw_size);
    for (const uint32_t i : planned.items) {
      const Record& record = records_[i];
      KC_ASSIGN(const base::Bytes code, artifacts_(i));
      if (base::sha256(code) != record.artifact_digest) {
        return base::fail(ErrorKind::kEnvironment,
                          "the code object of " + record.unit() + " changed while packing",
                          "check the disk and memory of this machine");
      }
      raw.resize(align_to(raw.size(), kAlignment));
      raw.insert(raw.end(), code.begin(), code.end());
    }
    if (raw.size() != planned.raw_size) return base::fail(ErrorKind::kInternal, "a frame has a wrong size");
    Frame frame;
    frame.entry.raw_size = raw.size();
    KC_ASSIGN(frame.stored, base::compress(raw, options_.level));
    frame.entry.compressed = frame.stored.size() < raw.size();
    if (!frame.entry.compressed) frame.stored = std::move(raw);
    frame.entry.stored_size = frame.stored.size();
    frame.entry.digest = base::sha256(frame.stored);
    return frame;
  }

  // After it: the file is complete. The header comes last: without it the file is no bundle.
  base::Result<void> write_head() {
    base::Bytes metadata = encode_metadata({{"compressor", std::string("zstd ") + base::compressor_version()},
                                            {"frame_size", std::to_string(options_.frame_size)},
                                            {"level", std::to_string(options_.level)}});
    Header header;
    header.required_flags = (info_.partial ? kFlagPartial : 0) | (info_.subset ? kFlagSubset : 0);
    header.release = info_.release;
    header.record_count = static_cast<uint32_t>(records_.size());
    header.frame_count = static_cast<uint32_t>(packing_.frames.size());
    header.layout = layout(frames_size_, metadata.size());
    header.name = info_.name;
    header.metadata_digest = base::sha256(metadata);

    const Layout& at = header.layout;
    base::ByteWriter pages;
    for (const base::Bytes* part : {&index_.bytes(), &details_.bytes(), &frame_table_.bytes()}) {
      pages.raw(*part);
      pages.pad_to(kAlignment);
    }
    pages.raw(strings_.bytes());
    pages.pad_to(kPageSize);
    base::ByteWriter table;
    for (uint64_t offset = 0; offset < pages.size(); offset += kPageSize) {
      table.raw(base::sha256(base::ByteView(pages.bytes()).subspan(offset, kPageSize)).view());
    }
    header.page_table_digest = base::sha256(table.bytes());
    table.pad_to(kAlignment);
    metadata.resize(at.content_size - at.metadata.offset);

    KC_TRY(base::pwrite_all(fd_, metadata, at.metadata.offset, kFileName));
    KC_TRY(base::pwrite_all(fd_, pages.bytes(), at.pages.offset, kFileName));
    KC_TRY(base::pwrite_all(fd_, table.bytes(), at.page_table.offset, kFileName));
    return base::pwrite_all(fd_, encode_header(header), 0, kFileName);
  }

  int fd_;
  const Info& info_;
  std::vector<Record> records_;
  const ArtifactSource& artifacts_;
  const WriteOptions& options_;
  std::vector<uint32_t> order_;
  Packing packing_;
  StringArea strings_;
  base::ByteWriter index_, details_, frame_table_;
  uint64_t frames_offset_ = 0;
  uint64_t frames_size_ = 0;
};

}  // namespace

std::string Record::unit() const {
  return kernel + (specialization.empty() ? "" : ":" + specialization) + "@" + target;
}

base::Result<void> write_bundle(int fd, const Info& info, std::vector<Record> records,
                                const ArtifactSource& artifacts, const WriteOptions& options) {
  return Writer(fd, info, std::move(records), artifacts, options).write();
}

}  // namespace kc::bundle
