// The pages of a bundle: read when first needed, each checked against the page table before a byte of it is
// used.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "bundle/format.h"
#include "bundle/source.h"

namespace kc::bundle {

/// Keeps a bounded cache of checked pages of a file; of memory it keeps which pages were checked. Does not
/// own the source, which must outlive it. Thread-safe; pages are read and checked outside of its lock.
class Pages {
 public:
  /// `table` was checked against the header.
  Pages(const ByteSource& source, Section pages, Piece table);

  uint32_t count() const { return static_cast<uint32_t>(pages_.size / kPageSize); }
  const Piece& table() const { return table_; }
  /// One page, checked. Precondition: `number < count()`.
  base::Result<Piece> page(uint32_t number);
  /// Fills `out` from `offset` of the file on. Precondition: the range lies within the pages.
  base::Result<void> read(uint64_t offset, std::span<uint8_t> out);
  /// How the `size` bytes at `offset` of the file compare with `text`, bytewise: below, equal to or above 0.
  /// Precondition: the range lies within the pages.
  base::Result<int> compare(uint64_t offset, uint64_t size, std::string_view text);
  /// How many pages were read so far, those read again included.
  uint64_t loads() const { return loads_.load(std::memory_order_relaxed); }
  /// How many of them were damaged or could not be read.
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  // Checked pages that are kept, 4 MiB of them: all those of a bundle of 10,000 records, so that one search
  // after another reads nothing again. When there is no room for another all are dropped.
  static constexpr size_t kMostCached = 1024;

  /// Reads and checks.
  base::Result<Piece> load(uint32_t number);
  bool is_checked(uint32_t number) const;

  const ByteSource& source_;
  Section pages_;
  Piece table_;
  std::mutex mutex_;
  std::unordered_map<uint32_t, Piece> cache_;   // of a file; guarded by mutex_
  std::vector<std::atomic<uint64_t>> checked_;  // of memory: one bit a page
  std::atomic<uint64_t> loads_ = 0;
  std::atomic<uint64_t> failures_ = 0;
};

}  // namespace kc::bundle
