#include "build/spool.h"

#include <cerrno>
#include <string_view>

#include "base/atomic_file.h"
#include "base/file_system.h"

namespace kc::build {

using base::ErrorKind;
using base::Result;

namespace {

constexpr std::string_view kFileName = "the spool file in the output's folder";
// A small code object costs more to write by itself than to make a digest of.
constexpr size_t kMostWaiting = 1U << 20;

}  // namespace

Result<Spool> Spool::create(const std::string& folder) {
  // O_TMPFILE needs help from the file system; where there is none, a file that is unlinked at once does the
  // same.
  auto fd = base::open_at(AT_FDCWD, folder, O_TMPFILE | O_RDWR, 0600, ErrorKind::kEnvironment);
  if (!fd) {
    const std::string name = base::join_path(folder, base::unique_name(".kc-spool-"));
    fd = base::open_at(AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, ErrorKind::kEnvironment);
    if (!fd) return std::unexpected(std::move(fd).error());
    // A spool that keeps its name would outlive this process.
    if (base::file_system().unlinkat(AT_FDCWD, name.c_str(), 0) != 0 && errno != ENOENT) {
      return base::fail_errno(ErrorKind::kEnvironment, "remove", name, errno);
    }
  }
  return Spool(std::move(*fd));
}

Result<void> Spool::write_waiting() {
  KC_TRY(base::pwrite_all(fd_.get(), waiting_, written_, kFileName));
  written_ += waiting_.size();
  waiting_.clear();
  return {};
}

Result<Spool::Place> Spool::add(base::ByteView bytes, const base::Digest& digest) {
  const Place place{written_ + waiting_.size(), bytes.size(), digest};
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  if (waiting_.size() >= kMostWaiting) KC_TRY(write_waiting());
  return place;
}

Result<base::Bytes> Spool::read(const Place& place) const {
  if (place.offset < written_) return base::pread_exact(fd_.get(), place.offset, place.size, kFileName);
  const base::ByteView bytes = base::ByteView(waiting_).subspan(place.offset - written_, place.size);
  return base::Bytes(bytes.begin(), bytes.end());
}

}  // namespace kc::build
