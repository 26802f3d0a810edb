#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file_system.h"
#include "store/archive.h"
#include "store/archive_format.h"
#include "store/frozen.h"

namespace kc::store {
namespace {

using base::Bytes;
using base::ByteView;
using base::Digest;
using base::ErrorKind;
using base::FileDescriptor;
using base::Result;

// What the first reading takes at a time.
constexpr uint64_t kChunk = 1U << 20;

// Of what lies behind the content: as many signature blocks as a bundle may have, each of the largest size
// (docs/bundle-format.md).
constexpr uint64_t kMaxBlockBytes = 1024ULL * (48 + 65536 + 16);

std::unexpected<base::Error> damaged_archive(const std::string& path, const std::string& what) {
  return base::fail_at(ErrorKind::kFailed, {path}, "the archive is damaged: " + what,
                       "export or copy it again");
}

// Reads a part of a file from its start to its end, in pieces of any size, through a buffer of one chunk.
class Stream {
 public:
  Stream(int fd, const std::string& name, uint64_t at, uint64_t end)
      : fd_(fd), name_(name), at_(at), end_(end) {}

  uint64_t left() const { return end_ - at_ + (buffer_.size() - used_); }

  /// At least one and at most `most` bytes, valid until the next call. Precondition: 0 < most <= left().
  Result<ByteView> some(uint64_t most) {
    if (used_ == buffer_.size()) {
      const uint64_t size = std::min(kChunk, end_ - at_);
      KC_ASSIGN(buffer_, base::pread_exact(fd_, at_, static_cast<size_t>(size), name_));
      at_ += size;
      used_ = 0;
    }
    const auto size = static_cast<size_t>(std::min<uint64_t>(most, buffer_.size() - used_));
    const ByteView out = ByteView(buffer_).subspan(used_, size);
    used_ += size;
    return out;
  }

  /// Exactly `size` bytes, which are few. Precondition: size <= left().
  Result<Bytes> exactly(size_t size) {
    Bytes out;
    while (out.size() < size) {
      KC_ASSIGN(const ByteView part, some(size - out.size()));
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }

 private:
  const int fd_;
  const std::string& name_;
  uint64_t at_;         // of the file, behind the buffer
  const uint64_t end_;  // where reading ends
  Bytes buffer_;
  size_t used_ = 0;
};

}  // namespace

Result<ArchiveReader> ArchiveReader::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not hang; it has no effect on regular files.
  KC_ASSIGN(FileDescriptor fd, base::open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK));
  struct stat status;
  if (base::file_system().fstat(fd.get(), &status) != 0) {
    return base::fail_errno(ErrorKind::kInput, "stat", path, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return base::fail_at(ErrorKind::kInput, {path},
                         S_ISDIR(status.st_mode) ? "is a directory, not a file" : "is not a regular file");
  }
  ArchiveReader reader(path, std::move(fd), static_cast<uint64_t>(status.st_size));
  KC_TRY(reader.read_header());
  KC_TRY(reader.read_content());
  KC_TRY(reader.read_blocks());
  return reader;
}

Result<void> ArchiveReader::read_header() {
  const uint64_t start_size = std::min<uint64_t>(file_bytes_, kMaxHeader);
  KC_ASSIGN(const Bytes start, base::pread_exact(fd_.get(), 0, static_cast<size_t>(start_size), path_));
  if (!base::as_text(start).starts_with(kArchiveMagic)) {
    return base::fail_at(ErrorKind::kFailed, {path_},
                         file_bytes_ == 0 ? "is empty, not an archive of kc"
                                          : "is not an archive of kc: it does not begin with KCARCHIV");
  }
  const auto frozen = read_frozen(start, kArchiveMagic, file_bytes_);
  if (!frozen) return damaged_archive(path_, "it " + frozen.error().why);
  // A sum that does not fit is caught below: no file has so many bytes.
  const uint64_t content_end = frozen->header_size + frozen->payload_size;
  const ByteView header = ByteView(start).first(static_cast<size_t>(frozen->header_size));
  const auto checked = check_header(header, *frozen, 0, content_end);
  if (!checked && checked.error().flaw == Flaw::kNewer) {
    return base::fail_at(ErrorKind::kFailed, {path_}, "the archive " + checked.error().why,
                         "it was made by a newer kc: import it with that");
  }
  if (!checked) return damaged_archive(path_, "it " + checked.error().why);
  if (frozen->header_size != kFrozenSize) return damaged_archive(path_, "its header has the wrong size");
  if (frozen->payload_size > file_bytes_ - frozen->header_size) {
    return damaged_archive(path_, "it ends early");
  }
  if (frozen->payload_size < kEndMarkSize) return damaged_archive(path_, "it has no end mark");
  content_end_ = content_end;
  return {};
}

Result<void> ArchiveReader::read_content() {
  base::Sha256 content, items;
  Stream in(fd_.get(), path_, 0, content_end_);
  KC_ASSIGN(const Bytes header, in.exactly(kFrozenSize));
  content.update(header);
  Digest last;
  Kind last_kind = Kind::kEntry;
  while (in.left() > kEndMarkSize) {
    if (in.left() < kEndMarkSize + kItemHeadSize) return damaged_archive(path_, "it has no end mark");
    KC_ASSIGN(const Bytes head_bytes, in.exactly(kItemHeadSize));
    const auto head = decode_item_head(head_bytes, in.left() - kEndMarkSize);
    if (!head) return damaged_archive(path_, head.error());
    if (!item_digests_.empty() && !is_after(head->kind, head->key, last_kind, last)) {
      return damaged_archive(path_, "its items are not in order");
    }
    if (item_digests_.size() == kMaxArchiveItems) {
      return damaged_archive(path_, "it has more than " + std::to_string(kMaxArchiveItems) + " items");
    }
    content.update(head_bytes);
    base::Sha256 item;
    item.update(head_bytes);
    for (uint64_t left = head->size; left > 0;) {
      KC_ASSIGN(const ByteView part, in.some(left));
      content.update(part);
      item.update(part);
      left -= part.size();
    }
    item_digests_.push_back(item.finish());
    items.update(item_digests_.back().view());
    ++(head->kind == Kind::kEntry ? counts_.entries : counts_.records);
    last = head->key;
    last_kind = head->kind;
  }
  KC_ASSIGN(const Bytes end, in.exactly(kEndMarkSize));
  content.update(end);
  const auto mark = decode_end_mark(end);
  if (!mark) return damaged_archive(path_, "it has no end mark");
  if (mark->counts.entries != counts_.entries || mark->counts.records != counts_.records) {
    return damaged_archive(path_, "it does not hold as many files as it says");
  }
  if (mark->items != items.finish()) return damaged_archive(path_, "its files do not match their digest");
  content_digest_ = content.finish();
  return {};
}

Result<void> ArchiveReader::read_blocks() {
  const uint64_t size = file_bytes_ - content_end_;
  if (size > kMaxBlockBytes) {
    return damaged_archive(path_, std::to_string(size) + " bytes behind its end are no signatures");
  }
  KC_ASSIGN(blocks_, base::pread_exact(fd_.get(), content_end_, static_cast<size_t>(size), path_));
  return {};
}

Result<void> ArchiveReader::visit_items(
    const std::function<Result<void>(Kind kind, const Digest& key, ByteView file)>& visit) const {
  const auto changed = [this] {
    return base::fail_at(ErrorKind::kFailed, {path_}, "the archive changed while it was read",
                         "import it again when nobody writes to it");
  };
  const uint64_t items_end = content_end_ - kEndMarkSize;
  uint64_t at = kFrozenSize;
  for (const Digest& digest : item_digests_) {
    if (items_end - at < kItemHeadSize) return changed();
    KC_ASSIGN(const Bytes head_bytes, base::pread_exact(fd_.get(), at, kItemHeadSize, path_));
    at += kItemHeadSize;
    const auto head = decode_item_head(head_bytes, items_end - at);
    if (!head) return changed();
    KC_ASSIGN(const Bytes file, base::pread_exact(fd_.get(), at, static_cast<size_t>(head->size), path_));
    at += head->size;
    if (base::Sha256().update(head_bytes).update(file).finish() != digest) return changed();
    KC_TRY(visit(head->kind, head->key, file));
  }
  return {};
}

}  // namespace kc::store
