#include "base/lock.h"

#include <fcntl.h>

#include <cerrno>

#include "base/file_system.h"

namespace kc::base {
namespace {

int set_lock(int fd, uint64_t offset, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(offset);
  range.l_len = 1;
  int result;
  do result = file_system().set_lock(fd, &range);
  while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

Result<bool> try_lock_byte(int fd, uint64_t offset) {
  if (set_lock(fd, offset, F_WRLCK) == 0) return true;
  // POSIX allows EACCES for a busy byte too; Linux says EAGAIN, and EACCES where a policy forbids locks.
  if (errno == EAGAIN) return false;
  return fail_errno(ErrorKind::kEnvironment, "lock", "a byte of the lock file", errno);
}

Result<void> unlock_byte(int fd, uint64_t offset) {
  if (set_lock(fd, offset, F_UNLCK) == 0) return {};
  return fail_errno(ErrorKind::kEnvironment, "unlock", "a byte of the lock file", errno);
}

}  // namespace kc::base
