#include "store/repro.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/files.h"

namespace kc::store {
namespace {

using base::ErrorKind;
using base::FileDescriptor;
using base::Result;

constexpr const char* kOutputName = "output.txt";

Result<FileDescriptor> folder_at(int parent, const std::string& name) {
  if (mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::fail_errno(ErrorKind::kEnvironment, "make directory", name, errno);
  }
  return base::open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, ErrorKind::kEnvironment);
}

// Removes the oldest folders; only names of the exact form, and only the file that is written above.
void prune(int repro) {
  const auto names = base::list_directory(repro, ".");
  if (!names) return;  // nothing is lost but room
  std::vector<std::pair<int64_t, std::string>> by_age;
  for (const std::string& name : *names) {
    struct stat status;
    if (!base::parse_digest(name) || fstatat(repro, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISDIR(status.st_mode)) by_age.emplace_back(base::tuple_of(status).mtime_ns, name);
  }
  if (by_age.size() <= kReprosKept) return;
  std::sort(by_age.begin(), by_age.end());
  by_age.resize(by_age.size() - kReprosKept);
  for (const auto& [age, name] : by_age) {
    const FileDescriptor folder(openat(repro, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder) unlinkat(folder.get(), kOutputName, 0);
    unlinkat(repro, name.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace

Result<std::string> write_repro(const Layout& layout, const base::Digest& key, base::ByteView output) {
  KC_ASSIGN(const FileDescriptor repro, folder_at(layout.version(), "repro"));
  KC_ASSIGN(const FileDescriptor folder, folder_at(repro.get(), key.hex()));
  KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(folder.get(), kOutputName, 0600));
  KC_TRY(file.write(output));
  KC_TRY(file.commit(base::Sync::kNone));
  prune(repro.get());
  return base::join_path(base::join_path(layout.path(), "v1/repro/" + key.hex()), kOutputName);
}

}  // namespace kc::store
