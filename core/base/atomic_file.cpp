#include "base/atomic_file.h"

#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/digest.h"
#include "base/file_system.h"

namespace kc::base {

uint64_t random_u64() {
  uint64_t value = 0;
  // Up to 256 bytes are never interrupted nor short once the pool is ready; before that, retry.
  while (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
  }
  return value;
}

Result<void> sync_all(int fd, std::string_view name) {
  int result;
  do result = file_system().fsync(fd);
  while (result != 0 && errno == EINTR);
  if (result != 0) return fail_errno(ErrorKind::kEnvironment, "sync", name, errno);
  return {};
}

std::string unique_name(std::string_view prefix) {
  static std::atomic<uint64_t> counter{0};
  ByteWriter random;
  random.u64(random_u64());
  return std::string(prefix) + std::to_string(getpid()) + '-' + std::to_string(counter++) + '-' +
         to_hex(random.bytes());
}

Result<AtomicFile> AtomicFile::create(int directory, const std::string& name, mode_t mode) {
  const std::string temporary =
      join_path(parent_path(name), unique_name('.' + file_name(name).substr(0, 100) + ".kc-tmp-"));
  KC_ASSIGN(FileDescriptor fd, open_at(directory, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode,
                                       ErrorKind::kEnvironment));
  return AtomicFile(directory, name, temporary, std::move(fd));
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : directory_(other.directory_),
      name_(std::move(other.name_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) file_system().unlinkat(directory_, temporary_.c_str(), 0);
}

Result<void> AtomicFile::write(ByteView bytes) {
  return write_all(fd_.get(), bytes, temporary_);
}

Result<void> AtomicFile::commit(Sync sync) {
  if (sync == Sync::kFull) KC_TRY(sync_all(fd_.get(), temporary_));
  if (file_system().renameat(directory_, temporary_.c_str(), directory_, name_.c_str()) != 0) {
    return fail_errno(ErrorKind::kEnvironment, "replace", name_, errno);
  }
  temporary_.clear();
  if (sync == Sync::kFull) {
    KC_ASSIGN(const FileDescriptor folder,
              open_at(directory_, parent_path(name_), O_RDONLY | O_DIRECTORY, 0, ErrorKind::kEnvironment));
    KC_TRY(sync_all(folder.get(), parent_path(name_)));
  }
  return {};
}

}  // namespace kc::base
