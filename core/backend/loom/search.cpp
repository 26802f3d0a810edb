#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <utility>

#include "backend/loom/identity.h"
#include "backend/loom/loom.h"
#include "base/digest.h"
#include "base/files.h"
#include "util/elf_object.h"
#include "util/text.h"

namespace kc::backend::loom {
namespace {

// As the developer's link and as the SONAME call it.
constexpr std::array<std::string_view, 2> kFileNames = {"libloomc.so", "libloomc.so.0"};
constexpr std::string_view kPackage = "hrx_loom";

void add_folder(std::vector<Place>& places, const std::string& where, const std::string& folder) {
  for (const std::string_view name : kFileNames) {
    const std::string path = base::join_path(folder, name);
    places.push_back({where.empty() ? path : util::format("{}: {}", where, path), path});
  }
}

// The package's own folder, then those directly inside it (`lib`, `bin`).
void add_python_environment(std::vector<Place>& places, const std::string& label, const std::string& root) {
  for (const std::string& packages : site_packages_of(root)) {
    const std::string package = base::join_path(packages, kPackage);
    add_folder(places, label, package);
    const auto names = base::list_directory(AT_FDCWD, package);
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      const std::string folder = base::join_path(package, name);
      if (is_directory(folder)) add_folder(places, label, folder);
    }
  }
}

std::vector<Place> places_of(const SearchVariables& variables) {
  std::vector<Place> out;
  const auto named = [&](std::string_view name, const std::optional<std::string>& value) {
    if (is_set(value)) out.push_back({util::format("{}={}", name, *value), *value, true});
  };
  named("KC_LOOM_LIBRARY", variables.kc_loom_library);
  named("HRX_LOOM_LIBRARY", variables.hrx_loom_library);
  if (!out.empty()) return out;  // such a place is taken or an error: no folder need be listed for the others
  if (is_set(variables.virtual_env)) add_python_environment(out, "VIRTUAL_ENV", *variables.virtual_env);
  if (!variables.program_folder.empty()) {
    add_python_environment(out, "private environment", private_environment(variables));
  }
  for (const std::string& folder : util::split(variables.library_path.value_or(""), ':')) {
    // An empty or relative element means the working directory, from where no compiler is taken.
    if (folder.starts_with('/')) add_folder(out, "LD_LIBRARY_PATH", folder);
  }
  for (const std::string& folder : standard_folders()) add_folder(out, "", folder);
  return out;
}

// Why `object` cannot be loaded here; nothing when it can.
std::optional<std::string> why_foreign(const util::ElfObject& object) {
  const uint16_t host = util::host_elf_machine();
  if (object.machine != host) {
    return util::format("made for {}, this machine is {}", util::elf_machine_name(object.machine),
                        util::elf_machine_name(host));
  }
  if (!object.is_64) return "not a 64-bit little-endian object";
  if (!object.is_shared) return "a program or an object file, not a shared library";
  return std::nullopt;
}

// Why the file at `path` cannot be taken as the library; nothing when it can.
std::optional<std::string> why_unusable(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? "no such file" : std::generic_category().message(errno);
  }
  if (S_ISDIR(status.st_mode)) return "a directory without libloomc.so";
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  return std::nullopt;
}

base::Result<void> inspect(const Component& component, int fd) {
  if (component.role != kLibraryRole) return {};
  KC_ASSIGN(const util::ElfObject object, util::read_elf_object(fd, component.path));
  if (const auto reason = why_foreign(object)) {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("{} is {}", util::escape(component.path), *reason));
  }
  return {};
}

// libm counts by its build id: the same libm in another package, or stripped, computes the same.
base::Result<IdentityFile> identify_libm(const Component& component, const KnownDigest& known) {
  if (auto file = remembered(component, known)) return std::move(*file);
  KC_ASSIGN(const base::FileDescriptor fd,
            base::open_at(AT_FDCWD, component.path, O_RDONLY, 0, base::ErrorKind::kEnvironment));
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) {
    return base::fail_errno(base::ErrorKind::kEnvironment, "stat", component.path, errno);
  }
  KC_ASSIGN(const util::ElfObject object, util::read_elf_object(fd.get(), component.path));
  if (object.build_id.empty()) {
    KC_ASSIGN(std::vector<IdentityFile> whole, identify({component}, known, {}));
    return std::move(whole.front());
  }
  return IdentityFile{component.role, component.path, base::tuple_of(status), base::sha256(object.build_id)};
}

base::Result<std::vector<IdentityFile>> identify_components(std::vector<Component> components,
                                                            const KnownDigest& known) {
  const auto libm = std::ranges::find(components, kLibmRole, &Component::role);
  KC_ASSIGN(IdentityFile libm_file, identify_libm(*libm, known));
  const auto at = libm - components.begin();
  components.erase(libm);
  KC_ASSIGN(std::vector<IdentityFile> files, identify(components, known, inspect));
  files.insert(files.begin() + at, std::move(libm_file));
  return files;
}

// The files of `earlier` when that is the same library with the same files around it and `known` vouches for
// all: then nothing is opened. What other libraries these need can only be read in the files, so one that
// needs more than the system has is looked into each time.
std::optional<std::vector<IdentityFile>> taken_over(const std::string& library, const Compiler* earlier,
                                                    const KnownDigest& known) {
  if (earlier == nullptr || earlier->program != library) return std::nullopt;
  const auto components = components_without_needed(library);
  const auto is_same = [](const Component& now, const IdentityFile& then) {
    return now.role == then.role && now.path == then.path;
  };
  if (!components || !std::ranges::equal(*components, earlier->files, is_same)) return std::nullopt;
  std::vector<IdentityFile> out;
  for (const Component& component : *components) {
    auto file = remembered(component, known);
    if (!file) return std::nullopt;
    out.push_back(std::move(*file));
  }
  return out;
}

base::Result<Compiler> identify_all(const std::string& path, const KnownDigest& known,
                                    const Compiler* earlier) {
  const auto library = resolve(path);
  if (!library) return base::fail_errno(base::ErrorKind::kEnvironment, "resolve", path, errno);
  Compiler out;
  out.backend = kName;
  out.program = *library;
  if (auto files = taken_over(*library, earlier, known)) {
    out.files = std::move(*files);
    return out;
  }
  // First what the file itself is: a text has no libraries that it needs.
  KC_ASSIGN(const base::FileDescriptor fd,
            base::open_at(AT_FDCWD, *library, O_RDONLY, 0, base::ErrorKind::kEnvironment));
  KC_TRY(inspect({std::string(kLibraryRole), *library}, fd.get()));
  KC_ASSIGN(std::vector<Component> components, components_of(*library));
  KC_ASSIGN(out.files, identify_components(std::move(components), known));
  return out;
}

void note_unset(const SearchVariables& variables, std::vector<SearchStep>& steps) {
  const auto note = [&](std::string_view name, const std::optional<std::string>& value) {
    if (!is_set(value)) steps.push_back({std::string(name), "not set"});
  };
  note("KC_LOOM_LIBRARY", variables.kc_loom_library);
  note("HRX_LOOM_LIBRARY", variables.hrx_loom_library);
  note("VIRTUAL_ENV", variables.virtual_env);
  note("LD_LIBRARY_PATH", variables.library_path);
}

// A variable may also name the folder that holds the library.
std::string file_of(const Place& place) {
  if (!is_directory(place.path)) return place.path;
  for (const std::string_view name : kFileNames) {
    const std::string inside = base::join_path(place.path, name);
    if (is_regular(inside)) return inside;
  }
  return place.path;
}

}  // namespace

base::Result<Compiler> find(const SearchVariables& variables, const KnownDigest& known,
                            std::vector<SearchStep>* steps, const Compiler* earlier) {
  std::vector<SearchStep> tried;
  std::vector<SearchStep>& log = steps != nullptr ? *steps : tried;
  log.clear();
  note_unset(variables, log);
  const auto identify_it = [&](const std::string& path) { return identify_all(path, known, earlier); };
  return take_first(places_of(variables),
                    {"Loom library", "the variable must name libloomc.so, or the folder that holds it",
                     kInstallHint, file_of, why_unusable, identify_it},
                    log);
}

}  // namespace kc::backend::loom
