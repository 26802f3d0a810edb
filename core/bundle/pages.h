// The pages of a bundle: read when first needed, each checked against the page table before a byte of it is
// used.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "bundle/format.h"

namespace kc::bundle {

/// Owns the page table and a bounded cache of checked pages; does not own the descriptor, which must outlive
/// it. Not for concurrent use.
class Pages {
 public:
  /// `table` was checked against the header. `path` is for messages.
  Pages(int fd, std::string path, Section pages, base::Bytes table)
      : fd_(fd), path_(std::move(path)), pages_(pages), table_(std::move(table)) {}

  uint32_t count() const { return static_cast<uint32_t>(pages_.size / kPageSize); }
  /// The checked bytes of one page; valid until the next call. Precondition: `number < count()`.
  base::Result<base::ByteView> page(uint32_t number);
  /// Fills `out` from `offset` of the file on. Precondition: the range lies within the pages.
  base::Result<void> read(uint64_t offset, std::span<uint8_t> out);
  /// How many pages were read from the file so far, those read again included.
  uint64_t loads() const { return loads_; }
  /// How many of them were damaged or could not be read.
  uint64_t failures() const { return failures_; }

 private:
  // Checked pages that are kept, 1 MiB of them; when there is no room for another all are dropped. A search
  // touches a tenth as many, and a walk over all records reads few twice.
  static constexpr size_t kMostCached = 256;

  int fd_;
  std::string path_;
  Section pages_;
  base::Bytes table_;
  std::unordered_map<uint32_t, base::Bytes> cache_;
  uint64_t loads_ = 0;
  uint64_t failures_ = 0;
};

}  // namespace kc::bundle
