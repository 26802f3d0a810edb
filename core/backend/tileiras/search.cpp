#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <system_error>

#include "backend/tileiras/tileiras.h"
#include "base/files.h"
#include "util/text.h"

namespace kc::backend::tileiras {
namespace {

// Where the wheels of nvidia-cuda-tileiras and its companions unpack to, below a Python's site-packages.
constexpr std::string_view kWheelFolder = "nvidia/cu13/bin";

void add_python_environment(std::vector<Place>& places, std::string_view label, const std::string& root) {
  for (const std::string& packages : site_packages_of(root)) {
    const std::string bin = base::join_path(packages, kWheelFolder);
    places.push_back({util::format("{}: {}", label, bin), base::join_path(bin, kName)});
  }
}

std::vector<Place> places_of(const SearchVariables& variables) {
  std::vector<Place> out;
  const auto named = [&](std::string_view name, const std::optional<std::string>& value) {
    if (is_set(value)) out.push_back({util::format("{}={}", name, *value), *value, true});
  };
  named("KC_TILEIRAS", variables.kc_tileiras);
  named("CUTILE_TILEIRAS_PATH", variables.cutile_tileiras_path);
  if (!out.empty()) return out;  // such a place is taken or an error: no folder need be listed for the others
  if (is_set(variables.virtual_env)) add_python_environment(out, "VIRTUAL_ENV", *variables.virtual_env);
  if (!variables.program_folder.empty()) {
    add_python_environment(out, "private environment", private_environment(variables));
  }
  for (const std::string& folder : util::split(variables.path.value_or(""), ':')) {
    // An empty or relative element means the working directory, from where no compiler is taken.
    if (!folder.starts_with('/')) continue;
    out.push_back({"PATH: " + folder, base::join_path(folder, kName)});
  }
  if (is_set(variables.cuda_home)) {
    const std::string bin = base::join_path(*variables.cuda_home, "bin");
    out.push_back({"CUDA_HOME: " + bin, base::join_path(bin, kName)});
  }
  const std::string local = "/usr/local";
  std::vector<std::string> toolkits = newest_first(local, "cuda*");
  // `cuda` is the toolkit that whoever runs the machine has chosen.
  std::ranges::stable_partition(toolkits, [](const std::string& name) { return name == "cuda"; });
  for (const std::string& toolkit : toolkits) {
    const std::string bin = base::join_path(base::join_path(local, toolkit), "bin");
    out.push_back({bin, base::join_path(bin, kName)});
  }
  return out;
}

// Why the file at `path` cannot be taken as the compiler; nothing when it can.
std::optional<std::string> why_unusable(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? "no such file" : std::generic_category().message(errno);
  }
  if (S_ISDIR(status.st_mode)) return "a directory, not the program";
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  if (access(path.c_str(), X_OK) != 0) return "not executable";
  const auto real = resolve(path);
  if (!real) return std::generic_category().message(errno);
  const std::string ptxas = base::join_path(base::parent_path(*real), "ptxas");
  if (!is_regular(ptxas)) return util::format("no ptxas beside it ({})", ptxas);
  if (access(ptxas.c_str(), X_OK) != 0)
    return util::format("the ptxas beside it is not executable ({})", ptxas);
  return std::nullopt;
}

// Scripts are fine: a wrapper or a stand-in. Other text with an execute bit is a mistake.
base::Result<void> inspect(const Component& component, int fd) {
  if (component.role != kName) return {};
  const auto head = base::pread_exact(fd, 0, 4, component.path);
  const std::string_view text = head ? base::as_text(*head) : std::string_view();
  if (text.starts_with("#!") || text ==
                                    "\x7F"
                                    "ELF") {
    return {};
  }
  return base::fail(base::ErrorKind::kEnvironment,
                    util::format("{} is neither a program nor a script", util::escape(component.path)));
}

base::Result<Compiler> identify_all(const std::string& path, const KnownDigest& known) {
  const auto program = resolve(path);
  if (!program) return base::fail_errno(base::ErrorKind::kEnvironment, "resolve", path, errno);
  Compiler out;
  out.backend = kName;
  out.program = *program;
  KC_ASSIGN(out.files, identify(components_of(*program), known, inspect));
  return out;
}

void note_unset(const SearchVariables& variables, std::vector<SearchStep>& steps) {
  const auto note = [&](std::string_view name, const std::optional<std::string>& value) {
    if (!is_set(value)) steps.push_back({std::string(name), "not set"});
  };
  note("KC_TILEIRAS", variables.kc_tileiras);
  note("CUTILE_TILEIRAS_PATH", variables.cutile_tileiras_path);
  note("VIRTUAL_ENV", variables.virtual_env);
  note("PATH", variables.path);
  note("CUDA_HOME", variables.cuda_home);
}

// A variable may also name the folder that holds the program.
std::string file_of(const Place& place) {
  const std::string inside = base::join_path(place.path, kName);
  return is_directory(place.path) && is_regular(inside) ? inside : place.path;
}

}  // namespace

std::vector<Component> components_of(const std::string& program) {
  const std::string bin = base::parent_path(program);
  const std::string root = base::parent_path(bin);
  std::vector<Component> out = {{std::string(kName), program}};
  const auto add_first = [&](std::string_view role, std::initializer_list<std::string> paths) {
    for (const std::string& path : paths) {
      const auto real = is_regular(path) ? resolve(path) : std::nullopt;
      if (!real) continue;
      out.push_back({std::string(role), *real});
      return;
    }
  };
  add_first("ptxas", {base::join_path(bin, "ptxas")});
  add_first("libnvvm",
            {base::join_path(root, "nvvm/lib64/libnvvm.so"), base::join_path(root, "lib/libnvvm.so.4")});
  add_first("libdevice", {base::join_path(root, "nvvm/libdevice/libdevice.10.bc")});
  return out;
}

base::Result<Compiler> find(const SearchVariables& variables, const KnownDigest& known,
                            std::vector<SearchStep>* steps) {
  std::vector<SearchStep> tried;
  std::vector<SearchStep>& log = steps != nullptr ? *steps : tried;
  log.clear();
  note_unset(variables, log);
  const auto identify_it = [&](const std::string& path) { return identify_all(path, known); };
  return take_first(places_of(variables),
                    {kName, "the variable must name the tileiras program of a whole installation",
                     kInstallHint, file_of, why_unusable, identify_it},
                    log);
}

}  // namespace kc::backend::tileiras
