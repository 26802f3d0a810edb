#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <memory>
#include <system_error>

#include "backend/tileiras/tileiras.h"
#include "base/parallel.h"
#include "util/text.h"

namespace kc::backend::tileiras {
namespace {

// Compilers are up to 100 MB: they are hashed in pieces that stay in the processor's cache.
constexpr size_t kHashPiece = 1U << 20;
constexpr unsigned kHashThreads = 4;  // an installation has at most four files
// Where the wheels of nvidia-cuda-tileiras and its companions unpack to, below a Python's site-packages.
constexpr std::string_view kWheelFolder = "site-packages/nvidia/cu13/bin";

/// A folder or file that might hold the compiler.
struct Place {
  std::string where;      // for people
  std::string path;       // of the program
  bool is_named = false;  // a variable names the compiler itself: take it or fail
};

std::optional<std::string> resolve(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  if (!real) return std::nullopt;
  return std::string(real.get());
}

bool is_regular(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Numbers in names compare as numbers, so that cuda-13.10 is newer than cuda-13.4, and python3.11 than
// python3.9.
bool is_newer(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      size_t end_a = i;
      size_t end_b = j;
      while (end_a < a.size() && is_digit(a[end_a])) ++end_a;
      while (end_b < b.size() && is_digit(b[end_b])) ++end_b;
      while (i + 1 < end_a && a[i] == '0') ++i;
      while (j + 1 < end_b && b[j] == '0') ++j;
      const std::string_view number_a = a.substr(i, end_a - i);
      const std::string_view number_b = b.substr(j, end_b - j);
      if (number_a.size() != number_b.size()) return number_a.size() > number_b.size();
      if (number_a != number_b) return number_a > number_b;
      i = end_a;
      j = end_b;
    } else {
      if (a[i] != b[j]) return a[i] > b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i > b.size() - j;
}

// Names in `folder` that match `pattern`, newest version first.
std::vector<std::string> newest_first(const std::string& folder, std::string_view pattern) {
  const auto names = base::list_directory(AT_FDCWD, folder);
  std::vector<std::string> out;
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (util::glob_match(pattern, name)) out.push_back(name);
  }
  std::ranges::sort(out, is_newer);
  return out;
}

void add_python_environment(std::vector<Place>& places, std::string_view label, const std::string& root) {
  const std::string lib = base::join_path(root, "lib");
  const std::vector<std::string> pythons = newest_first(lib, "python3*");
  if (pythons.empty()) {
    places.push_back({util::format("{}: {}", label, root), base::join_path(lib, "python3*")});
  }
  for (const std::string& python : pythons) {
    const std::string bin = base::join_path(base::join_path(lib, python), kWheelFolder);
    places.push_back({util::format("{}: {}", label, bin), base::join_path(bin, kName)});
  }
}

bool is_set(const std::optional<std::string>& variable) {
  return variable && !variable->empty();
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
    add_python_environment(out, "private environment",
                           base::join_path(base::parent_path(variables.program_folder), "venv"));
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

// The digest of what `fd` leads to, read once in pieces. `head` gets its first bytes.
base::Result<base::Digest> hash_descriptor(int fd, const std::string& path, std::string* head) {
  base::Sha256 hasher;
  base::Bytes piece(kHashPiece);
  for (;;) {
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::fail_errno(base::ErrorKind::kEnvironment, "read", path, errno);
    if (got == 0) return hasher.finish();
    const base::ByteView view(piece.data(), static_cast<size_t>(got));
    if (head->size() < 4) head->append(base::as_text(view.first(std::min<size_t>(view.size(), 4))));
    hasher.update(view);
  }
}

// The file without opening it, when its tuple is known to belong to a digest.
std::optional<IdentityFile> remembered(const Component& component, const KnownDigest& known) {
  if (!known) return std::nullopt;
  const auto tuple = base::stat_tuple(component.path);
  if (!tuple) return std::nullopt;
  const auto digest = known(component.path, *tuple);
  if (!digest) return std::nullopt;
  return IdentityFile{component.role, component.path, *tuple, *digest};
}

base::Result<IdentityFile> identify(const Component& component) {
  IdentityFile out{component.role, component.path, {}, {}};
  KC_ASSIGN(const base::FileDescriptor fd,
            base::open_at(AT_FDCWD, component.path, O_RDONLY, 0, base::ErrorKind::kEnvironment));
  struct stat before {};
  struct stat after {};
  if (fstat(fd.get(), &before) != 0) {
    return base::fail_errno(base::ErrorKind::kEnvironment, "stat", component.path, errno);
  }
  std::string head;
  KC_ASSIGN(out.digest, hash_descriptor(fd.get(), component.path, &head));
  if (fstat(fd.get(), &after) != 0) {
    return base::fail_errno(base::ErrorKind::kEnvironment, "stat", component.path, errno);
  }
  out.tuple = base::tuple_of(after);
  if (out.tuple != base::tuple_of(before)) {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("{} changed while it was read", util::escape(component.path)));
  }
  // Scripts are fine: a wrapper or a stand-in. Other text with an execute bit is a mistake.
  if (component.role == kName &&
      !head.starts_with("\x7F"
                        "ELF") &&
      !head.starts_with("#!")) {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("{} is neither a program nor a script", util::escape(component.path)));
  }
  return out;
}

base::Result<Compiler> identify_all(const std::string& path, const KnownDigest& known) {
  const auto program = resolve(path);
  if (!program) return base::fail_errno(base::ErrorKind::kEnvironment, "resolve", path, errno);
  Compiler out;
  out.backend = kName;
  out.program = *program;
  const std::vector<Component> components = components_of(*program);
  out.files.resize(components.size());
  // An unchanged build knows them all, and then not even a thread is started.
  std::vector<size_t> unknown;
  for (size_t i = 0; i < components.size(); ++i) {
    if (auto file = remembered(components[i], known)) {
      out.files[i] = std::move(*file);
    } else {
      unknown.push_back(i);
    }
  }
  std::vector<std::optional<base::Error>> errors(unknown.size());
  base::parallel_for(unknown.size(), kHashThreads, [&](size_t i) {
    auto file = identify(components[unknown[i]]);
    if (file) {
      out.files[unknown[i]] = std::move(*file);
    } else {
      errors[i] = std::move(file).error();
    }
  });
  for (auto& error : errors) {
    if (error) return std::unexpected(std::move(*error));
  }
  return out;
}

std::string listed(const std::vector<SearchStep>& steps) {
  std::string out;
  for (const SearchStep& step : steps) {
    if (!out.empty()) out += "; ";
    out += util::format("{} ({})", util::escape(step.where), util::escape(step.outcome));
  }
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
  for (const Place& place : places_of(variables)) {
    std::string path = place.path;
    // A variable may also name the folder that holds the program.
    if (place.is_named && is_directory(path) && is_regular(base::join_path(path, kName))) {
      path = base::join_path(path, kName);
    }
    auto reason = why_unusable(path);
    if (!reason) {
      auto compiler = identify_all(path, known);
      if (compiler) {
        log.push_back({place.where, "found"});
        return compiler;
      }
      reason = compiler.error().text();
    }
    log.push_back({place.where, *reason});
    if (place.is_named) {
      return base::fail(base::ErrorKind::kEnvironment,
                        util::format("{}: {}", util::escape(place.where), util::escape(*reason)),
                        "the variable must name the tileiras program of a whole installation");
    }
  }
  return base::fail(base::ErrorKind::kEnvironment,
                    util::format("no tileiras found; looked in: {}", listed(log)), std::string(kInstallHint));
}

}  // namespace kc::backend::tileiras
