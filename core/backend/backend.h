// The describing half of a backend: everything about a compiler that kc needs without running it. The other
// half, backend/run.h, is linked into the engine alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "target/target.h"

namespace kc::backend {

/// Option or configuration values, sorted by name; values are text as written.
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// How a compiler may be run.
enum class RunKind : uint8_t {
  kThreads,  // in the engine, any number at once
  kChild,    // a program, each in a process group of its own
  kProcess,  // in the engine, one compile at a time (it locks or races inside)
};

/// The part that a file plays for a unit.
enum class Role : uint8_t {
  kSource,
  kLibrary,  // linked as needed
};

/// A file as a compiler gets it.
struct Source {
  std::string identifier;  // relative to the top manifest's folder: what a compiler sees and prints
  Role role = Role::kSource;
  base::Bytes bytes;
};

/// An option of a backend: one of `values`, of which the first is the default. Booleans are {"false",
/// "true"}.
struct Option {
  std::string name;
  std::vector<std::string> values;
};

/// What is fixed about a backend, found compiler or not.
struct Description {
  std::string name;  // "tileiras"
  target::Vendor vendor;
  std::vector<std::string> suffixes;  // of sources: ".tilebc"
  std::vector<Option> options;
  bool takes_configuration = false;  // may a unit have configuration values that reach the compiler?
  bool has_front_half = false;       // two keys (request, content) or one
  bool available = false;            // false: known by name, not built into this kc yet
  RunKind run = RunKind::kChild;
  uint32_t adapter_revision =
      0;  // raised when call sequence, arguments, environment or fact extraction change
  /// A rule between options ("debug needs opt 0"); gives the message, or nothing when all is well.
  std::function<std::optional<std::string>(const Pairs& options)> check_options;
  uint32_t max_sources = 0;       // of one unit; 0 = any number
  bool takes_libraries = false;   // modules linked as needed behind the sources
  bool opens_files = false;       // sources may open files themselves: a manifest names them
  bool takes_parameters = false;  // a manifest lists the kernel's parameters, which declare its keys
  /// The entry that a compile is asked for is the name in the code object too. False: the code object holds
  /// another one (Loom: the export name of the symbol).
  bool entry_is_symbol = true;
};

/// All backends known by name, in a fixed order.
const std::vector<Description>& descriptions();
const Description* find_description(std::string_view name);

/// One file that a compiler consists of.
struct IdentityFile {
  std::string role;  // "tileiras", "ptxas", "libnvvm", "libdevice"; of Loom: see backend/loom/loom.h
  std::string path;  // resolved
  base::FileTuple tuple;
  base::Digest digest;
};

/// A compiler that was found and identified.
struct Compiler {
  std::string backend;
  std::string program;  // or library: what is run or loaded
  std::vector<IdentityFile> files;
  base::Digest identity;  // over backend name, roles and digests of `files`
};

/// One place that was looked at, for "no compiler found" and kc doctor.
struct SearchStep {
  std::string where;    // "KC_TILEIRAS=/opt/tileiras", "PATH: /usr/bin"
  std::string outcome;  // "found", "no such file", "no ptxas beside it"
};

/// What of the environment directs the search; read in config/settings, passed in as data. Unset = nothing.
struct SearchVariables {
  std::optional<std::string> kc_tileiras;
  std::optional<std::string> cutile_tileiras_path;
  std::optional<std::string> virtual_env;
  std::optional<std::string> path;
  std::optional<std::string> cuda_home;
  std::optional<std::string> kc_loom_library;
  std::optional<std::string> hrx_loom_library;
  std::optional<std::string> library_path;  // LD_LIBRARY_PATH
  std::string program_folder;               // of the running kc, from /proc/self/exe
};

/// Gives the digest of a file whose tuple is already known to have it, else nothing (the file is then
/// hashed).
using KnownDigest =
    std::function<std::optional<base::Digest>(const std::string& path, const base::FileTuple& tuple)>;

/// Finds and identifies the compiler of `backend`. Opens none of its files whose digests `known` gives, runs
/// nothing. ErrorKind::kEnvironment, with every place in `steps` also listed in the message, when there is
/// none. `earlier`, which may be null, is what the last build found: a backend whose list of files stands
/// inside its files (Loom) takes that list over when `known` knows all of them.
base::Result<Compiler> find_compiler(std::string_view backend, const SearchVariables& variables,
                                     const KnownDigest& known, std::vector<SearchStep>* steps = nullptr,
                                     const Compiler* earlier = nullptr);

/// Whether a variable names the compiler of `backend` itself. Then it is that one or an error: nothing else
/// may stand in for it.
bool is_named(std::string_view backend, const SearchVariables& variables);

/// Over backend name, roles and digests of the files, in order.
base::Digest identity_of(const Compiler& compiler);
/// Depends on what goes into an identity: its domain, as key domains are.
std::string_view identity_domain();

/// True when every file still has the tuple it was identified by.
bool is_unchanged(const Compiler& compiler);
/// "the compiler changed during the build: <which file>", for a compiler that is not unchanged.
std::string change_of(const Compiler& compiler);

/// A quick look at source bytes before anything is keyed: an empty, foreign or truncated file. `name` is the
/// source's identifier. ErrorKind::kInput.
base::Result<void> check_source(std::string_view backend, std::string_view name, base::ByteView bytes);
/// Names of the entries that a source exports, in its order, as a compile is asked for them (Loom: the
/// symbols). ErrorKind::kInput when they cannot be read without the compiler. `name` tells text from bytecode
/// by its suffix.
base::Result<std::vector<std::string>> entries_of(std::string_view backend, std::string_view name,
                                                  base::ByteView bytes);
/// Why the source does not export `entry` though it holds it, and what to do ("x is a private kernel: write
/// ..."); empty when that is not so, or only the compiler can tell.
std::string missing_export_hint(std::string_view backend, std::string_view entry, std::string_view name,
                                base::ByteView bytes);
/// Names of the configuration keys that a source declares, sorted; nothing when only the compiler can tell
/// (bytecode), or the backend has none.
std::optional<std::vector<std::string>> declared_keys_of(std::string_view backend, std::string_view name,
                                                         base::ByteView bytes);

void write_compiler(base::ByteWriter& out, const Compiler& compiler);
Compiler read_compiler(base::ByteReader& in);

}  // namespace kc::backend
