// Which files make up a Loom library.
#include <fcntl.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "backend/loom/identity.h"
#include "backend/loom/loom.h"
#include "base/files.h"
#include "util/text.h"

namespace kc::backend::loom {
namespace {

// A library has a handful of companions; more than this is a mistake, or a trap.
constexpr size_t kMostFiles = 256;

constexpr std::array<std::string_view, 13> kSystemLibraries = {
    "libc.so.6",      "libm.so.6",     "libdl.so.2",     "libpthread.so.0",      "librt.so.1",
    "libutil.so.1",   "libmvec.so.1",  "libresolv.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
    "libstdc++.so.6", "libgcc_s.so.1", "linux-vdso.so.1"};

constexpr std::string_view kLibm = "libm.so.6";

#if defined(__x86_64__)
constexpr std::string_view kMultiarch = "x86_64-linux-gnu";
#else
constexpr std::string_view kMultiarch = "aarch64-linux-gnu";
#endif

base::Result<util::ElfObject> read_object(const std::string& path) {
  KC_ASSIGN(const base::FileDescriptor fd,
            base::open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0, base::ErrorKind::kEnvironment));
  return util::read_elf_object(fd.get(), path);
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Where the dynamic linker finds `name` for the object at `path`; nothing when nowhere.
std::optional<std::string> resolve_needed(const std::string& name, const std::string& path,
                                          const util::ElfObject& object) {
  const std::string origin = base::parent_path(path);
  std::vector<std::string> folders;
  for (const std::string& part : object.search_path) {
    folders.push_back(replaced(replaced(part, "${ORIGIN}", origin), "$ORIGIN", origin));
  }
  for (const std::string& folder : standard_folders()) folders.push_back(folder);
  for (const std::string& folder : folders) {
    if (!folder.starts_with('/')) continue;  // from the working directory nothing is taken
    const std::string candidate = base::join_path(folder, name);
    if (!is_regular(candidate)) continue;
    const auto found = read_object(candidate);
    if (found && found->is_64 && found->machine == util::host_elf_machine()) return resolve(candidate);
  }
  return std::nullopt;
}

class Collector {
 public:
  explicit Collector(const std::vector<Component>& known) : out_(known) {
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].role == kLibmRole) continue;
      seen_.insert(known[i].path);
      open_.push_back({i, known[i].role == kLibraryRole});
    }
  }

  // Breadth first: the order that the dynamic linker loads them in.
  base::Result<std::vector<Component>> run() {
    while (!open_.empty()) {
      const Open by = open_.front();
      open_.pop_front();
      const std::string path = out_[by.at].path;
      const auto object = read_object(path);
      if (!object) {
        if (by.is_loaded) return std::unexpected(object.error());
        continue;  // a companion that is no library is only hashed
      }
      for (const std::string& name : object->needed) KC_TRY(add(name, path, *object, by));
    }
    return std::move(out_);
  }

 private:
  struct Open {
    size_t at;       // in out_
    bool is_loaded;  // by the library itself: what it needs must be there
  };

  base::Result<void> add(const std::string& name, const std::string& user, const util::ElfObject& object,
                         Open by) {
    if (is_system_library(base::file_name(name))) return {};
    const auto path =
        name.find('/') == std::string::npos ? resolve_needed(name, user, object) : resolve(name);
    if (!path) {
      if (by.is_loaded) {
        return base::fail(
            base::ErrorKind::kEnvironment,
            util::format("{} needs {}, which is neither on its own search path nor in the system's",
                         util::escape(user), util::escape(name)),
            "install that library where the dynamic linker finds it without LD_LIBRARY_PATH");
      }
      // What is not there for a companion may never be asked for. Its role tells of it: a list of files that
      // was made without it is looked at again, and is another one once it is there.
      if (!out_[by.at].role.starts_with(kNeededRole)) out_[by.at].role += util::format(" lacks {}", name);
      return {};
    }
    if (!seen_.insert(*path).second) return {};
    if (out_.size() >= kMostFiles) {
      return base::fail(base::ErrorKind::kEnvironment,
                        util::format("more than {} files belong to the library", kMostFiles));
    }
    out_.push_back({util::format("{}{}", kNeededRole, name), *path});
    open_.push_back({out_.size() - 1, by.is_loaded});
    return {};
  }

  std::vector<Component> out_;
  std::set<std::string> seen_;
  std::deque<Open> open_;
};

int note_libm(dl_phdr_info* info, size_t, void* out) {
  if (info->dlpi_name == nullptr || base::file_name(info->dlpi_name) != kLibm) return 0;
  *static_cast<std::string*>(out) = info->dlpi_name;
  return 1;
}

// The one that this process has, and so the engine too; kc may be linked without it.
std::optional<std::string> host_libm() {
  std::string path;
  dl_iterate_phdr(note_libm, &path);
  if (!path.empty()) return resolve(path);
  for (const std::string& folder : standard_folders()) {
    const std::string candidate = base::join_path(folder, kLibm);
    if (is_regular(candidate)) return resolve(candidate);
  }
  return std::nullopt;
}

}  // namespace

const std::vector<std::string>& standard_folders() {
  static const std::vector<std::string> all = {util::format("/usr/local/lib/{}", kMultiarch),
                                               "/usr/local/lib",
                                               util::format("/lib/{}", kMultiarch),
                                               util::format("/usr/lib/{}", kMultiarch),
                                               "/lib64",
                                               "/usr/lib64",
                                               "/lib",
                                               "/usr/lib"};
  return all;
}

bool is_system_library(std::string_view file_name) {
  // Runtimes of sanitizers, in builds for tests: they watch, and compute nothing.
  for (const std::string_view runtime : {"libasan.so.", "liblsan.so.", "libtsan.so.", "libubsan.so."}) {
    if (file_name.starts_with(runtime)) return true;
  }
  return std::ranges::find(kSystemLibraries, file_name) != kSystemLibraries.end();
}

base::Result<std::vector<Component>> components_without_needed(const std::string& library) {
  std::vector<Component> out = {{std::string(kLibraryRole), library}};
  std::set<std::string> seen = {library};
  const std::string folder = base::parent_path(library);
  const auto add_all = [&](std::string_view role, const std::string& from) {
    const auto names = base::list_directory(AT_FDCWD, from);
    if (!names)
      return;  // a folder that cannot be listed: files in it can still be loaded by name, and are then
               // refused
    for (const std::string& name : *names) {
      if (!util::glob_match("libloom*.so*", name)) continue;
      const std::string path = base::join_path(from, name);
      const auto real = is_regular(path) ? resolve(path) : std::nullopt;
      if (real && seen.insert(*real).second) out.push_back({util::format("{}{}", role, name), *real});
    }
  };
  add_all(kBesideRole, folder);
  add_all(kAboveRole, base::parent_path(folder));
  if (out.size() > kMostFiles) {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("{} libraries called libloom*.so* lie in or above {}", out.size(),
                                   util::escape(folder)));
  }
  const auto libm = host_libm();
  if (!libm) {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("no {} found, whose build id belongs to the compiler's identity", kLibm));
  }
  out.push_back({std::string(kLibmRole), *libm});
  return out;
}

base::Result<std::vector<Component>> components_of(const std::string& library) {
  KC_ASSIGN(const std::vector<Component> known, components_without_needed(library));
  return Collector(known).run();
}

}  // namespace kc::backend::loom
