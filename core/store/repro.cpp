#include "store/repro.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "base/files.h"
#include "util/text.h"

namespace kc::store {
namespace {

using base::ErrorKind;
using base::FileDescriptor;
using base::Result;

Result<FileDescriptor> folder_at(int parent, const std::string& name) {
  if (base::file_system().mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::fail_errno(ErrorKind::kEnvironment, "make directory", name, errno);
  }
  return base::open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, ErrorKind::kEnvironment);
}

Result<void> write_file(int folder, const std::string& name, base::ByteView bytes) {
  KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(folder, name, 0600));
  KC_TRY(file.write(bytes));
  return file.commit(base::Sync::kNone);
}

// Folder by folder from the descriptor of the one above, so that no link leads out.
Result<void> write_below(int folder, std::string_view path, base::ByteView bytes) {
  FileDescriptor inner;
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    KC_ASSIGN(inner, folder_at(inner ? inner.get() : folder, std::string(path.substr(0, slash))));
    path.remove_prefix(slash + 1);
  }
  return write_file(inner ? inner.get() : folder, std::string(path), bytes);
}

// Removes the oldest folders; only names of the exact form.
void prune(const std::string& path, int repro) {
  const auto names = base::list_directory(repro, ".");
  if (!names) return;  // nothing is lost but room
  std::vector<std::pair<int64_t, std::string>> by_age;
  for (const std::string& name : *names) {
    struct stat status;
    if (!base::parse_digest(name) ||
        base::file_system().fstatat(repro, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISDIR(status.st_mode)) by_age.emplace_back(base::tuple_of(status).mtime_ns, name);
  }
  if (by_age.size() <= kReprosKept) return;
  std::sort(by_age.begin(), by_age.end());
  by_age.resize(by_age.size() - kReprosKept);
  for (const auto& [age, name] : by_age) static_cast<void>(base::remove_tree(base::join_path(path, name)));
}

}  // namespace

bool is_inner_path(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  return std::ranges::none_of(util::split(path, '/'), [](const std::string& part) {
    return part.empty() || part == "." || part == "..";
  });
}

Result<std::string> write_repro(const Layout& layout, const base::Digest& key, const Repro& repro) {
  for (const Repro::File& input : repro.inputs) {
    if (is_inner_path(input.path)) continue;
    return base::fail(ErrorKind::kInternal,
                      "an input of a failed unit would lie outside its folder: " + util::escape(input.path));
  }
  const std::string all = base::join_path(layout.path(), "v1/repro");
  const std::string path = base::join_path(all, key.hex());
  KC_ASSIGN(const FileDescriptor above, folder_at(layout.version(), "repro"));
  KC_TRY(base::remove_tree(path));
  KC_ASSIGN(const FileDescriptor folder, folder_at(above.get(), key.hex()));
  for (const Repro::File& input : repro.inputs) {
    KC_TRY(write_below(folder.get(), "inputs/" + input.path, input.bytes));
  }
  if (!repro.manifest.empty())
    KC_TRY(write_file(folder.get(), "kernels.yaml", base::as_bytes(repro.manifest)));
  if (!repro.command.empty()) KC_TRY(write_file(folder.get(), "command.txt", base::as_bytes(repro.command)));
  // Last: who sees it sees all the rest.
  if (!repro.output.empty()) KC_TRY(write_file(folder.get(), kReproOutput, repro.output));
  prune(all, above.get());
  return path;
}

}  // namespace kc::store
