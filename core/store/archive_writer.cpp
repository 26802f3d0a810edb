#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/file_system.h"
#include "store/archive.h"
#include "store/archive_format.h"
#include "store/frozen.h"

namespace kc::store {
namespace {

using base::ByteView;
using base::Digest;
using base::ErrorKind;
using base::Result;

// Small files are gathered up to this: entries of some KiB each would else be two system calls each.
constexpr size_t kGathered = 256U << 10;
// What reading back takes at a time.
constexpr uint64_t kChunk = 1U << 20;

// Only an archive, or nothing, may be replaced: a name that was mistyped must not cost a manifest.
Result<void> check_place(const std::string& path) {
  struct stat status;
  if (base::file_system().fstatat(AT_FDCWD, path.c_str(), &status, 0) != 0) {
    if (errno == ENOENT) return {};
    return base::fail_errno(ErrorKind::kEnvironment, "look at", path, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return base::fail_at(ErrorKind::kInput, {path},
                         S_ISDIR(status.st_mode) ? "is a directory; an archive is a file"
                                                 : "is not a regular file, so it is not replaced",
                         "name another file");
  }
  if (status.st_size == 0) return {};
  KC_ASSIGN(const base::FileDescriptor fd, base::open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK));
  const auto start = base::pread_exact(fd.get(), 0, kArchiveMagic.size(), path);
  if (start && base::as_text(*start) == kArchiveMagic) return {};
  return base::fail_at(ErrorKind::kInput, {path}, "exists and is no archive of kc, so it is not replaced",
                       "remove it, or name another file");
}

}  // namespace

Result<ArchiveWriter> ArchiveWriter::create(const std::string& path) {
  KC_TRY(check_place(path));
  KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(AT_FDCWD, path, 0666));
  ArchiveWriter writer(path, std::move(file));
  KC_TRY(writer.write(base::Bytes(kFrozenSize)));  // the header, whose sizes are known at the end
  return writer;
}

Result<void> ArchiveWriter::write(ByteView bytes) {
  bytes_ += bytes.size();
  if (waiting_.size() + bytes.size() > kGathered) KC_TRY(flush());
  if (bytes.size() > kGathered) return file_.write(bytes);
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> ArchiveWriter::flush() {
  KC_TRY(file_.write(waiting_));
  waiting_.clear();
  return {};
}

Result<void> ArchiveWriter::add(Kind kind, const Digest& key, ByteView file) {
  if (any_ && !is_after(kind, key, last_kind_, last_)) {
    return base::fail(ErrorKind::kInternal, "items of an archive are added in the order of kind and key");
  }
  if (counts_.entries + counts_.records == kMaxArchiveItems) {
    return base::fail_at(ErrorKind::kFailed, {path_},
                         "an archive holds at most " + std::to_string(kMaxArchiveItems) + " files",
                         "export less of the store at a time");
  }
  const base::Bytes head = encode_item_head({.kind = kind, .size = file.size(), .key = key});
  if (const auto checked = decode_item_head(head, file.size()); !checked) {
    return base::fail(ErrorKind::kInternal, checked.error());
  }
  items_->update(base::Sha256().update(head).update(file).finish().view());
  KC_TRY(write(head));
  KC_TRY(write(file));
  ++(kind == Kind::kEntry ? counts_.entries : counts_.records);
  any_ = true;
  last_kind_ = kind;
  last_ = key;
  return {};
}

Result<Digest> ArchiveWriter::finish() {
  KC_TRY(write(encode_end_mark({.counts = counts_, .items = items_->finish()})));
  KC_TRY(flush());
  const int fd = file_.descriptor();
  const base::Bytes header = build_header(kArchiveMagic, kVersion, 0, {}, bytes_ - kFrozenSize);
  KC_TRY(base::pwrite_all(fd, header, 0, path_));
  base::Sha256 content;
  for (uint64_t at = 0; at < bytes_;) {
    const uint64_t size = std::min(kChunk, bytes_ - at);
    KC_ASSIGN(const base::Bytes chunk, base::pread_exact(fd, at, static_cast<size_t>(size), path_));
    content.update(chunk);
    at += size;
  }
  return content.finish();
}

Result<void> ArchiveWriter::append_block(ByteView block) {
  KC_TRY(write(block));
  return flush();
}

Result<void> ArchiveWriter::commit() {
  return file_.commit(base::Sync::kFull);
}

}  // namespace kc::store
