// What a manifest asks for, expanded: the ordered list of units (docs/manifest.md). Planning knows no store
// and no compiler; what it needs of a backend comes in as data.
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
#include "util/time.h"

namespace kc::manifest {

/// Sorted by name; values keep the text as written.
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// What planning must know of a backend (build fills it in from backend/backend.h).
struct BackendRules {
  std::string name;
  target::Vendor vendor = target::Vendor::kNvidia;
  std::vector<std::string> suffixes;
  struct Option {
    std::string name;
    std::vector<std::string> values;  // allowed; the first is the default
  };
  std::vector<Option> options;
  bool takes_configuration = false;
  std::function<std::optional<std::string>(const Pairs& options)> check_options;
  uint32_t max_sources = 0;       // of one kernel; 0 = any number
  bool available = true;          // false: known by name; messages say that this version has it not
  bool takes_libraries = false;   // `libraries`: linked as needed behind the sources
  bool opens_files = false;       // `depends`: its sources may open files themselves
  bool takes_parameters = false;  // `parameters`; then these declare its configuration keys
  /// The entries that a source exports, in its order. Nothing when only the compiler can tell (`entries:
  /// exported` is then an error); an empty function: never told.
  std::function<std::optional<std::vector<std::string>>(const std::string& path, base::ByteView bytes)>
      exported_entries;
  /// The configuration keys that a source or library declares. Nothing when only the compiler can tell; an
  /// empty function: every key is taken.
  std::function<std::optional<std::vector<std::string>>(const std::string& path, base::ByteView bytes)>
      declared_keys;
};

/// Upper bounds on the facts of an artifact; unset = no limit. Sizes in bytes.
struct Limits {
  std::optional<uint64_t> registers, local_memory, spills, shared_memory, code;
};

/// A source as it was read: exactly these bytes are hashed, keyed and compiled.
struct SourceContent {
  base::Bytes bytes;
  base::Digest digest;
  base::FileTuple tuple;
};

/// A file that a unit is made from: a source, a library, or a file that a source opens. They are shared
/// between units: each is read once.
struct Source {
  std::string path;        // as opened: relative to the working directory or absolute
  std::string identifier;  // relative to the top manifest's folder, lexically normal: same in every checkout
  base::Place place;       // where the manifest names it
  std::optional<SourceContent> content;  // set when planning had to look into it
};

/// A parameter of a cuTile kernel: its words (`dtype`, `ndim`, ...) with their values, items of lists joined
/// by commas. `constant`: its value is that of the configuration key of its name.
struct Parameter {
  std::string name;
  bool constant = false;
  Pairs words;
};

struct Kernel {
  std::string name;
  std::string backend;
  base::Place place;
  Pairs metadata;
  bool skip_unsupported = false;      // `unsupported: skip`
  std::vector<uint32_t> libraries;    // indices into Plan::sources, in order
  std::vector<uint32_t> depends;      // likewise
  std::vector<Parameter> parameters;  // in order
};

struct Unit {
  std::string name;     // `matmul:TM=64,TN=128@sm_90`
  uint32_t kernel = 0;  // index into Plan::kernels
  target::Target target;
  Pairs specialization;             // keys of matrix, include and table, sorted; values as written
  std::string specialization_text;  // canonical: `TM=64,TN=128`, escaped
  Pairs config;                     // every value that reaches the compiler, sorted; no `option.` keys
  Pairs options;                    // every option of the backend with its value, sorted
  std::string entry;
  std::string symbol;             // empty: what the code object exports when it is one
  std::vector<uint32_t> sources;  // indices into Plan::sources, in order
  bool is_default = false;        // of `default`, or a kernel without specializations
  util::Nanoseconds timeout{};    // an override's, else the kernel's, else `settings`, else load()'s
  uint32_t limits = 0;            // index into Plan::limits
  /// What the columns `when.*` of the table say about it: `m=64,n=128;m=64,n=256`, a part for each row in its
  /// order, in each the keys without `when.` and values as in canonical text; empty without such columns.
  std::string selection;
};

struct Settings {  // of the manifest's `settings:`; unset = not written
  std::optional<int> level;
  std::optional<util::Nanoseconds> timeout;
  std::optional<uint64_t> frame_size;
  std::optional<uint64_t> keep_going;
};

/// A file that was read to make the plan, or a folder that was listed for a pattern.
struct Input {
  std::string path;
  std::string pattern;  // empty: a file. Else of the folder's names those that match it, see list_folder()
  base::FileTuple tuple;
  base::Digest digest;  // of the file's bytes, or of the listing
};

/// What one part of a pattern sees of a folder. `pattern` is `*.loom` for files, `attention*/` for folders,
/// `**/` for the folders that `**` goes on into; names that begin with a dot only match a pattern that does.
/// Symbolic links to files are files, so are links that lead nowhere; links to folders are folders, but not
/// for `**/`. An error has no place; also when more names match than a pattern may find.
struct Listing {
  std::vector<std::string> names;  // sorted bytewise
  base::Digest digest;             // of the names: tells whether the same would be found again
  /// Of the folder, taken before it was listed. All zero, which no folder has, when the names do not depend
  /// on the folder alone: a link that the pattern does not take now may lead to something else one day.
  base::FileTuple tuple;
};
base::Result<Listing> list_folder(const std::string& path, const std::string& pattern);

struct Plan {
  std::string name;
  uint64_t release = 0;
  std::string folder;  // of the top manifest, as opened; "." when it has none
  std::string output;  // path as opened, the manifest's folder included
  Settings settings;
  std::vector<Kernel> kernels;
  std::vector<Source> sources;
  std::vector<Limits> limits;  // what Unit::limits points into
  std::vector<Unit> units;     // in plan order
  std::vector<Input> inputs;   // manifest, includes, tables, lists, listed folders; each once
};

struct Loaded {
  std::optional<Plan> plan;           // set when there are no errors
  std::vector<base::Error> errors;    // all of them, in order of place
  std::vector<base::Error> warnings;  // messages with places; `kind` is meaningless
};

inline constexpr uint64_t kMaxManifestBytes = 8ULL << 20;
inline constexpr uint64_t kMaxUnits = 1'000'000;
/// What a bundle can hold of one unit, so that a plan which cannot be packed is refused before it is built.
inline constexpr uint64_t kMaxSpecializationBytes = 65'535;  // of Unit::specialization_text
inline constexpr uint64_t kMaxMetadataBytes = 64ULL << 10;   // of a kernel's keys and values; a bundle: 1 MiB
inline constexpr uint64_t kMaxSelectionBytes = 512ULL << 10;  // of Unit::selection
/// The name under which a bundle keeps Unit::selection among the metadata; no metadata of a manifest may be
/// called so.
inline constexpr std::string_view kSelectionName = "when";
/// How the key of an option that varies begins, in specializations: `option.opt`.
inline constexpr std::string_view kOptionPrefix = "option.";
inline constexpr util::Nanoseconds kDefaultTimeout = std::chrono::minutes(10);

/// Reads, validates and expands the manifest at `path` and what it includes. That sources exist is checked;
/// they are read only where entries or configuration keys must be known, and then kept in Source::content.
/// More than `max_units`, or what would take more time or memory than so many may, is refused before it is
/// expanded. Units whose timeout nothing in the manifest says get `default_timeout`.
Loaded load(const std::string& path, const std::vector<BackendRules>& backends,
            uint64_t max_units = kMaxUnits, util::Nanoseconds default_timeout = kDefaultTimeout);

/// `kernel:key=value,key=value@target` of canonical parts, and the canonical text of a configuration: each
/// byte of a value outside [A-Za-z0-9_.+-] as %XX.
std::string canonical_configuration(const Pairs& pairs);
std::string unit_name(const std::string& kernel, const std::string& configuration, const std::string& target);

}  // namespace kc::manifest
