#include "store/stored_file.h"

#include "base/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace kc::store {

Checked<std::optional<StoredFile>> open_stored(const Layout& layout, int folder, const std::string& name) {
  // O_NONBLOCK: a FIFO under this name must not hang; it has no effect on regular files.
  auto fd = base::open_at(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) {
    const int error = fd.error().sys_errno;
    if (error == ENOENT) return std::nullopt;
    if (error == ELOOP || error == ENXIO) return damaged("is a symbolic link or a device");
    return std::unexpected(Refusal{Flaw::kUnreadable, fd.error().message});
  }
  StoredFile file;
  file.fd = std::move(*fd);
  if (base::file_system().fstat(file.fd.get(), &file.status) != 0) {
    auto error = base::fail_errno(base::ErrorKind::kEnvironment, "stat", name, errno);
    return std::unexpected(Refusal{Flaw::kUnreadable, std::move(error).error().message});
  }
  if (!S_ISREG(file.status.st_mode)) return damaged("is not a regular file");
  std::string hint;
  if (auto why = distrust(file.status, layout.access(), geteuid(), hint)) return damaged(std::move(*why));
  return file;
}

}  // namespace kc::store
