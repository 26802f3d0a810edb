#include "store/removal.h"

#include <fcntl.h>

#include <cerrno>
#include <string>

#include "base/file_system.h"

namespace kc::store {

base::Result<bool> move_aside(const Layout& layout, Kind kind, int folder, const base::Digest& key,
                              const struct stat* status) {
  const std::string name = stored_name(kind, key);
  struct stat now;
  if (base::file_system().fstatat(folder, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return false;
  // Another process may have moved it and put a good one in its place.
  if (status != nullptr && (now.st_dev != status->st_dev || now.st_ino != status->st_ino)) return false;
  const std::string bad = bad_name(key);
  if (base::file_system().renameat(folder, name.c_str(), layout.temporary(), bad.c_str()) != 0) {
    if (errno == ENOENT) return false;
    return base::fail_errno(base::ErrorKind::kEnvironment, "move aside", stored_path(kind, key), errno);
  }
  // From now on its age is that of the move. Without it, gc removes it sooner.
  (void)base::file_system().utimensat(layout.temporary(), bad.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return true;
}

base::Result<bool> remove_stored(const Layout& layout, Kind kind, const base::Digest& key) {
  KC_ASSIGN(const base::FileDescriptor folder, layout.open_shard(kind, shard_of(key), false));
  if (!folder) return false;
  const std::string name = stored_name(kind, key);
  if (base::file_system().unlinkat(folder.get(), name.c_str(), 0) == 0) return true;
  if (errno == ENOENT) return false;
  return base::fail_errno(base::ErrorKind::kEnvironment, "remove", stored_path(kind, key), errno);
}

}  // namespace kc::store
