#include "store/new_file.h"

#include "base/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace kc::store {

using base::ErrorKind;
using base::Result;

Result<NewFile> NewFile::write(const Layout& layout, base::ByteView bytes, mode_t mode, base::Sync sync) {
  NewFile file(layout.temporary(), new_file_name());
  auto fd = base::open_at(file.directory_, file.name_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode,
                          ErrorKind::kEnvironment);
  if (!fd) {
    file.name_.clear();
    return std::unexpected(std::move(fd).error());
  }
  KC_TRY(base::write_all(fd->get(), bytes, file.name_));
  if (sync == base::Sync::kFull) KC_TRY(base::sync_all(fd->get(), file.name_));
  // Network file systems report a full disk only here.
  if (base::file_system().close(fd->release()) != 0 && errno != EINTR) {
    return base::fail_errno(ErrorKind::kEnvironment, "write", file.name_, errno);
  }
  return file;
}

NewFile::NewFile(NewFile&& other) noexcept
    : directory_(other.directory_), name_(std::exchange(other.name_, {})) {}

NewFile::~NewFile() {
  if (!name_.empty()) base::file_system().unlinkat(directory_, name_.c_str(), 0);
}

Result<bool> NewFile::place(int folder, const std::string& name) {
  if (base::file_system().linkat(directory_, name_.c_str(), folder, name.c_str(), 0) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) {
    return base::fail_errno(ErrorKind::kEnvironment, "link", name, errno);
  }
  // No hard links here. Whoever comes between the look and the rename has written the same key.
  struct stat status;
  if (base::file_system().fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return false;
  KC_TRY(replace(folder, name));
  return true;
}

Result<void> NewFile::replace(int folder, const std::string& name) {
  if (base::file_system().renameat(directory_, name_.c_str(), folder, name.c_str()) != 0) {
    return base::fail_errno(ErrorKind::kEnvironment, "replace", name, errno);
  }
  name_.clear();
  return {};
}

}  // namespace kc::store
