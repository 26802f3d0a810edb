// An archive: entries and records of a store in one file, to seed another (docs/store-format.md: Archive).
// Neither direction holds more of it in memory than one item. What a signature is worth is decided by who
// demands one: here the blocks behind the content are bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "store/layout.h"

namespace kc::store {

/// More than fit the largest stores; a reader remembers 32 bytes of each.
inline constexpr uint64_t kMaxArchiveItems = 1ULL << 22;

struct ArchiveCounts {
  uint64_t entries = 0, records = 0;
};

/// Order of calls: create(), add() in ascending order of kind and key, finish(), append_block() for each
/// signature, commit(). What `path` leads to is replaced by commit() alone; nothing is left without it. Not
/// for concurrent use.
class ArchiveWriter {
 public:
  /// ErrorKind::kInput when something other than an archive or an empty file is at `path`: it stays.
  static base::Result<ArchiveWriter> create(const std::string& path);

  /// `file` as it stands in the store, which the caller has checked.
  base::Result<void> add(Kind kind, const base::Digest& key, base::ByteView file);
  /// Completes the content and reads it back: gives the digest that is signed.
  base::Result<base::Digest> finish();
  base::Result<void> append_block(base::ByteView block);
  /// On disk when this returns.
  base::Result<void> commit();

  const ArchiveCounts& counts() const { return counts_; }
  /// Of the file so far.
  uint64_t bytes() const { return bytes_; }

 private:
  ArchiveWriter(std::string path, base::AtomicFile file) : path_(std::move(path)), file_(std::move(file)) {}
  base::Result<void> write(base::ByteView bytes);
  base::Result<void> flush();

  std::string path_;
  base::AtomicFile file_;
  base::Bytes waiting_;  // written to the file once there is enough of it
  // Over the digests of the items.
  std::unique_ptr<base::Sha256> items_ = std::make_unique<base::Sha256>();
  ArchiveCounts counts_;
  base::Digest last_;  // key of the item before
  bool any_ = false;
  Kind last_kind_ = Kind::kEntry;
  uint64_t bytes_ = 0;
};

/// An archive that has been read once: its structure is right, its items are not yet looked at. Not for
/// concurrent use.
class ArchiveReader {
 public:
  /// Opens the file, once for all, and reads it whole. ErrorKind::kInput: missing, unreadable or no regular
  /// file; kFailed: no archive, a newer, a damaged one.
  static base::Result<ArchiveReader> open(const std::string& path);

  /// The digest that is signed.
  const base::Digest& content_digest() const { return content_digest_; }
  /// All that lies behind the content, unchecked.
  base::ByteView blocks() const { return blocks_; }
  const ArchiveCounts& counts() const { return counts_; }
  uint64_t file_bytes() const { return file_bytes_; }

  /// Reads the file again and gives each item in order; what `visit` returns ends it when it is an error. An
  /// item that is not the one that open() has read is ErrorKind::kFailed and is not given.
  base::Result<void> visit_items(const std::function<base::Result<void>(Kind kind, const base::Digest& key,
                                                                        base::ByteView file)>& visit) const;

 private:
  ArchiveReader(std::string path, base::FileDescriptor fd, uint64_t file_bytes)
      : path_(std::move(path)), fd_(std::move(fd)), file_bytes_(file_bytes) {}
  base::Result<void> read_header();
  base::Result<void> read_content();
  base::Result<void> read_blocks();

  std::string path_;
  base::FileDescriptor fd_;
  uint64_t file_bytes_ = 0;
  uint64_t content_end_ = 0;  // where the blocks begin
  base::Digest content_digest_;
  std::vector<base::Digest> item_digests_;
  ArchiveCounts counts_;
  base::Bytes blocks_;
};

}  // namespace kc::store
