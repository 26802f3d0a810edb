// list_folder() of plan.h.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "base/digest.h"
#include "base/files.h"
#include "manifest/pattern.h"
#include "manifest/plan.h"
#include "util/text.h"

namespace kc::manifest {
namespace {

using base::ErrorKind;
using base::Result;

// Raised when the same folder gives other names than before.
constexpr std::string_view kDomain = "kc-listing-v1";

enum class Type { kFile, kFolder, kOther };
struct Kind {
  Type type = Type::kOther;
  bool is_link = false;  // then the type is that of what it leads to
};

Kind kind_at(int directory, const char* name) {
  struct stat status {};
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return {};  // gone meanwhile
  const bool is_link = S_ISLNK(status.st_mode);
  // What a link that leads nowhere was meant to be is not known; who opens it as a file will say so.
  if (is_link && ::fstatat(directory, name, &status, 0) != 0) return {Type::kFile, true};
  if (S_ISREG(status.st_mode)) return {Type::kFile, is_link};
  return {S_ISDIR(status.st_mode) ? Type::kFolder : Type::kOther, is_link};
}

Kind kind_of(int directory, const dirent& entry) {
  if (entry.d_type == DT_REG) return {Type::kFile, false};
  if (entry.d_type == DT_DIR) return {Type::kFolder, false};
  return entry.d_type == DT_LNK || entry.d_type == DT_UNKNOWN ? kind_at(directory, entry.d_name) : Kind{};
}

// What a pattern of one part asks for.
class Wanted {
 public:
  explicit Wanted(std::string_view pattern)
      : folders_(pattern.ends_with('/')), part_(pattern.substr(0, pattern.size() - (folders_ ? 1 : 0))) {
    if (folders_ && part_ == "**") {
      part_ = "*";
      follows_links_ = false;
    }
  }
  std::string_view part() const { return part_; }
  bool folders() const { return folders_; }
  bool takes_name(std::string_view name) const {
    if (name == "." || name == ".." || (name.starts_with('.') && !part_.starts_with('.'))) return false;
    return util::glob_match(part_, name);
  }
  bool takes(Kind kind) const {
    return kind.type == (folders_ ? Type::kFolder : Type::kFile) && (follows_links_ || !kind.is_link);
  }
  // Whether what is not taken now could be one day although nothing in its folder has changed.
  bool might_take(Kind kind) const { return kind.is_link && follows_links_; }

 private:
  bool folders_;
  bool follows_links_ = true;
  std::string_view part_;
};

struct Names {
  std::vector<std::string> taken;
  bool are_settled = true;  // by the folder alone
};

Result<Names> list(const base::FileDescriptor& folder, const std::string& path, const Wanted& wanted) {
  Names names;
  const auto add = [&](const char* name, Kind kind) {
    if (wanted.takes(kind)) {
      names.taken.emplace_back(name);
    } else if (wanted.might_take(kind)) {
      names.are_settled = false;
    }
  };
  if (!is_pattern(wanted.part())) {
    const std::string name(wanted.part());
    add(name.c_str(), kind_at(folder.get(), name.c_str()));
    return names;
  }
  KC_ASSIGN(base::FileDescriptor fd, base::open_at(folder.get(), ".", O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fd.get()), closedir);
  if (stream == nullptr) return base::fail_errno(ErrorKind::kEnvironment, "list", path, errno);
  fd.release();  // the stream owns it now
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    if (!wanted.takes_name(entry->d_name)) continue;
    add(entry->d_name, kind_of(folder.get(), *entry));
    if (names.taken.size() > kMaxFilesFound) {
      return base::fail(ErrorKind::kInput,
                        util::format("finds more than {} names in one folder", kMaxFilesFound));
    }
  }
  if (errno != 0) return base::fail_errno(ErrorKind::kEnvironment, "list", path, errno);
  std::sort(names.taken.begin(), names.taken.end());
  return names;
}

}  // namespace

Result<Listing> list_folder(const std::string& path, const std::string& pattern) {
  const Wanted wanted(pattern);
  KC_ASSIGN(const base::FileDescriptor folder,
            base::open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK));
  struct stat status {};
  if (::fstat(folder.get(), &status) != 0) return base::fail_errno(ErrorKind::kInput, "stat", path, errno);
  Listing out;
  out.tuple = base::tuple_of(status);
  KC_ASSIGN(Names names, list(folder, path, wanted));
  out.names = std::move(names.taken);
  if (!names.are_settled) out.tuple = {};
  base::KeyHasher digest(kDomain);
  const uint8_t kind = wanted.folders() ? 2 : 1;
  for (const std::string& name : out.names) digest.field(kind, name);
  out.digest = digest.finish();
  return out;
}

}  // namespace kc::manifest
