#include "build/spool.h"

#include <unistd.h>

#include <cerrno>

#include "base/atomic_file.h"

namespace kc::build {

using base::ErrorKind;
using base::Result;

Result<Spool> Spool::create(const std::string& folder) {
  // O_TMPFILE needs help from the file system; where there is none, a file that is unlinked at once does the
  // same.
  base::FileDescriptor fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) {
    const std::string name = base::join_path(folder, base::unique_name(".kc-spool-"));
    KC_ASSIGN(fd, base::open_at(AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600,
                                ErrorKind::kEnvironment));
    ::unlink(name.c_str());
  }
  return Spool(std::move(fd));
}

Result<Spool::Place> Spool::add(base::ByteView bytes) {
  const Place place{size_, bytes.size(), base::sha256(bytes)};
  KC_TRY(base::pwrite_all(fd_.get(), bytes, size_, "the spool file in the output's folder"));
  size_ += bytes.size();
  return place;
}

Result<base::Bytes> Spool::read(const Place& place) const {
  KC_ASSIGN(base::Bytes bytes, base::pread_exact(fd_.get(), place.offset, place.size, "the spool file"));
  if (base::sha256(bytes) != place.digest) {
    return base::fail(ErrorKind::kEnvironment, "the spool file does not give back what was written to it",
                      "check the disk and memory of this machine");
  }
  return bytes;
}

}  // namespace kc::build
