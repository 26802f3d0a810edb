// The pages of a bundle: read when first needed, each checked against the page table before a byte of it is
// used, but for guesses that a check follows.
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

/// Whether the bytes of a page must have its digest. Checking one takes several times as long as reading it.
enum class Trust : uint8_t {
  kChecked,
  kGuess,  // any bytes will do: what is made of them is proved by checked ones before it is believed
};

/// Keeps a bounded cache of pages of a file, and whether each was checked; of memory it keeps which pages
/// were checked. Does not own the source, which must outlive it. Thread-safe; pages are read and checked
/// outside of its lock.
class Pages {
 public:
  /// `table` was checked against the header.
  Pages(const ByteSource& source, Section pages, Piece table);

  uint32_t count() const { return static_cast<uint32_t>(pages_.size / kPageSize); }
  const Piece& table() const { return table_; }
  /// One page. Precondition: `number < count()`.
  base::Result<Piece> page(uint32_t number, Trust trust = Trust::kChecked);
  /// Fills `out` from `offset` of the file on. Precondition: the range lies within the pages.
  base::Result<void> read(uint64_t offset, std::span<uint8_t> out, Trust trust = Trust::kChecked);
  /// How the `size` bytes at `offset` of the file compare with `text`, bytewise: below, equal to or above 0.
  /// Precondition: the range lies within the pages.
  base::Result<int> compare(uint64_t offset, uint64_t size, std::string_view text,
                            Trust trust = Trust::kChecked);
  /// How many pages were read so far, those read again included.
  uint64_t loads() const { return loads_.load(std::memory_order_relaxed); }
  /// How many of them were damaged or could not be read.
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  // Pages that are kept, 4 MiB of them: all those of a bundle of 10,000 records, so that one search
  // after another reads nothing again. When there is no room for another all are dropped.
  static constexpr size_t kMostCached = 1024;

  struct Kept {
    Piece piece;
    bool is_checked = false;
  };

  base::Result<Piece> load(uint32_t number);
  base::Result<void> check(uint32_t number, const Piece& piece);
  base::Result<Piece> page_of_memory(uint32_t number, Trust trust);

  const ByteSource& source_;
  Section pages_;
  Piece table_;
  std::mutex mutex_;
  std::unordered_map<uint32_t, Kept> cache_;    // of a file; guarded by mutex_
  std::vector<std::atomic<uint64_t>> checked_;  // of memory: one bit a page
  std::atomic<uint64_t> loads_ = 0;
  std::atomic<uint64_t> failures_ = 0;
};

}  // namespace kc::bundle
