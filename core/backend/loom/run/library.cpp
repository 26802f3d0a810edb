#include "backend/loom/run/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "backend/loom/loom.h"
#include "base/files.h"
#include "util/elf_object.h"
#include "util/text.h"

namespace kc::backend::loom {
namespace {

using base::ErrorKind;

int note_object(dl_phdr_info* info, size_t, void* out) {
  if (info->dlpi_name != nullptr && *info->dlpi_name != 0) {
    static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
  }
  return 0;
}

// Paths of the objects that are mapped, as the dynamic linker knows them; not the program itself.
std::vector<std::string> mapped_objects() {
  std::vector<std::string> out;
  dl_iterate_phdr(note_object, &out);
  return out;
}

// Files of all libraries that were loaded: none is ever unloaded, so each sees the others' files mapped.
class KnownFiles {
 public:
  void add(const std::vector<IdentityFile>& files) {
    const std::lock_guard lock(mutex_);
    all_.insert(all_.end(), files.begin(), files.end());
  }
  bool has(const std::string& path) const;

 private:
  mutable std::mutex mutex_;
  std::vector<IdentityFile> all_;
};

KnownFiles& known_files() {
  static KnownFiles files;
  return files;
}

int note_loads(dl_phdr_info* info, size_t, void* out) {
  *static_cast<uint64_t*>(out) = info->dlpi_adds;
  return 1;  // it is the same for all objects
}

bool is_same_file(const std::string& path, const IdentityFile& file) {
  const auto tuple = base::stat_tuple(path);
  return tuple && tuple->device == file.tuple.device && tuple->inode == file.tuple.inode;
}

bool KnownFiles::has(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(all_, [&](const IdentityFile& file) { return is_same_file(path, file); });
}

// What tells builds of one generation apart: the version, if the library knows it, else its build id, if it
// has one. A file that cannot be read is an error: else a bundle would differ by what a disk said.
base::Result<std::string> version_text(const Library& library, const std::string& path) {
  if (void* version = library.find("loomc_version"); version != nullptr) {
    int major = 0;
    int minor = 0;
    int patch = 0;
    reinterpret_cast<void (*)(int*, int*, int*)>(version)(&major, &minor, &patch);
    return util::format(" {}.{}.{}", major, minor, patch);
  }
  KC_ASSIGN(const base::FileDescriptor fd,
            base::open_at(AT_FDCWD, path, O_RDONLY, 0, ErrorKind::kEnvironment));
  KC_ASSIGN(const util::ElfObject object, util::read_elf_object(fd.get(), path));
  return object.build_id.empty() ? std::string() : " " + base::to_hex(object.build_id);
}

std::unexpected<base::Error> refuse(std::string message, std::string hint = {}) {
  return base::fail(ErrorKind::kEnvironment, std::move(message), std::move(hint));
}

}  // namespace

Library::Library(void* handle, const Compiler& compiler, std::vector<std::string> mapped_before)
    : handle_(handle), files_(compiler.files), mapped_before_(std::move(mapped_before)) {}

void* Library::find(const std::string& symbol) const {
  return dlsym(handle_, symbol.c_str());
}

uint64_t objects_loaded() {
  uint64_t out = 0;
  dl_iterate_phdr(note_loads, &out);
  return out;
}

base::Result<void> Library::check_mapped() const {
  const std::vector<std::string> mapped = mapped_objects();
  for (const std::string& path : mapped) {
    if (is_system_library(base::file_name(path))) continue;
    if (std::ranges::find(mapped_before_, path) != mapped_before_.end()) continue;
    if (known_files().has(path)) continue;
    return refuse(
        util::format(
            "the Loom library has loaded {}, which does not belong to the compiler that kc identified",
            util::escape(path)),
        "a library that it needs must lie beside it, called libloom*.so*, or be one of its DT_NEEDED");
  }
  // What the process had already is used in place of a needed file of that name.
  for (const IdentityFile& file : files_) {
    std::string name = file.role == kLibmRole ? "libm.so.6" : "";
    if (file.role.starts_with(kNeededRole)) name = base::file_name(file.role.substr(kNeededRole.size()));
    if (name.empty()) continue;
    for (const std::string& path : mapped) {
      if (base::file_name(path) != name || is_same_file(path, file)) continue;
      return refuse(util::format("the Loom library uses {}, where kc identified {}", util::escape(path),
                                 util::escape(file.path)));
    }
  }
  return {};
}

base::Result<Library> Library::load(const Compiler& compiler) {
#if !defined(__x86_64__)
  return refuse("Loom works on x86-64 hosts only: kc knows the library's layouts for no other processor");
#endif
  const std::string shown = util::escape(compiler.program);
  if (!is_unchanged(compiler)) return refuse(change_of(compiler));
  std::vector<std::string> before = mapped_objects();
  void* handle = dlopen(compiler.program.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* why = dlerror();
    return refuse(
        util::format("the Loom library cannot be loaded: {}", util::escape(why != nullptr ? why : shown)));
  }
  if (!is_unchanged(compiler)) return refuse(change_of(compiler));

  Library out(handle, compiler, std::move(before));
  known_files().add(compiler.files);
  KC_TRY(out.check_mapped());  // before anything of it is called
  Marks marks;
  marks.target_selection = out.find("loomc_target_selection_create_from_profile") != nullptr;
  marks.compile_artifact = out.find("loomc_compile_artifact") != nullptr;
  marks.import_cxx = out.find("loomc_module_import_cxx") != nullptr;
  marks.byte_sequences = out.find("loomc_byte_sequence_clone") != nullptr;
  if (void* size = out.find("loomc_hrx_diagnostic_size"); size != nullptr) {
    marks.diagnostic_size = reinterpret_cast<size_t (*)()>(size)();
  }
  auto generation = recognise(marks);
  if (!generation) {
    generation.error().message = util::format("{}: {}", shown, generation.error().message);
    return std::unexpected(std::move(generation).error());
  }
  out.generation_ = *generation;

  std::vector<std::string> missing;
  const auto look_up = [&](const char* name) {
    void* found = out.find(name);
    if (found == nullptr) missing.emplace_back(name);
    return found;
  };
#define KC_LOOM_LOOK_UP(name, result, ...) \
  out.functions_.name = reinterpret_cast<result (*)(__VA_ARGS__)>(look_up("loomc_" #name));
  KC_LOOM_FUNCTIONS(KC_LOOM_LOOK_UP)
#undef KC_LOOM_LOOK_UP
  const bool is_g4 = out.generation_ == Generation::kG4;
  if (!is_g4) {
    look_up("loomc_compile_module");
    look_up("loomc_emit_module");
  }
  out.version_ = is_g4 ? "G4" : "G3";
  if (!missing.empty()) {
    return refuse(util::format("{} looks like Loom's ABI generation {} but lacks {}", shown, out.version_,
                               util::listed(missing)));
  }

  KC_ASSIGN(const std::string version, version_text(out, compiler.program));
  out.version_ += version;
  return out;
}

}  // namespace kc::backend::loom
