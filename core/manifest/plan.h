// What a manifest asks for, expanded: the ordered list of units (docs/manifest.md). Planning knows no store
// and no compiler; what it needs of a backend comes in as data.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
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
  uint32_t max_sources = 0;  // of one kernel; 0 = any number
  bool available = true;     // false: known by name; messages say that this version has it not
};

/// Upper bounds on the facts of an artifact; unset = no limit. Sizes in bytes.
struct Limits {
  std::optional<uint64_t> registers, local_memory, spills, shared_memory, code;
};

/// A file that a unit is made from. Sources are shared between units: each is read once.
struct Source {
  std::string path;        // as opened: relative to the working directory or absolute
  std::string identifier;  // relative to the top manifest's folder, lexically normal: same in every checkout
  base::Place place;       // where the manifest names it
};

struct Kernel {
  std::string name;
  std::string backend;
  base::Place place;
  Pairs metadata;
  Limits limits;
  util::Nanoseconds timeout{};  // its own, else that of `settings`, else kDefaultTimeout
};

struct Unit {
  std::string name;     // `matmul:TM=64,TN=128@sm_90`
  uint32_t kernel = 0;  // index into Plan::kernels
  target::Target target;
  Pairs specialization;             // keys of matrix and include, sorted; values as written
  std::string specialization_text;  // canonical: `TM=64,TN=128`, escaped
  Pairs config;                     // every value that reaches the compiler, sorted
  Pairs options;                    // every option of the backend with its value, sorted
  std::string entry;
  std::string symbol;             // empty: what the code object exports when it is one
  std::vector<uint32_t> sources;  // indices into Plan::sources, in order
  bool is_default = false;        // of `default`, or a kernel without specializations
};

struct Settings {  // of the manifest's `settings:`; unset = not written
  std::optional<int> level;
  std::optional<util::Nanoseconds> timeout;
  std::optional<uint64_t> frame_size;
  std::optional<uint64_t> keep_going;
};

/// A file that was read to make the plan.
struct Input {
  std::string path;
  base::FileTuple tuple;
  base::Digest digest;
};

struct Plan {
  std::string name;
  uint64_t release = 0;
  std::string folder;  // of the top manifest, as opened; "." when it has none
  std::string output;  // path as opened, the manifest's folder included
  Settings settings;
  std::vector<Kernel> kernels;
  std::vector<Source> sources;
  std::vector<Unit> units;    // in plan order
  std::vector<Input> inputs;  // the manifest (later: includes, tables)
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
inline constexpr util::Nanoseconds kDefaultTimeout = std::chrono::minutes(10);

/// Reads, validates and expands the manifest at `path`. That sources exist is checked, their content is not
/// read.
Loaded load(const std::string& path, const std::vector<BackendRules>& backends);

/// `kernel:key=value,key=value@target` of canonical parts, and the canonical text of a configuration: each
/// byte of a value outside [A-Za-z0-9_.+-] as %XX.
std::string canonical_configuration(const Pairs& pairs);
std::string unit_name(const std::string& kernel, const std::string& configuration, const std::string& target);

}  // namespace kc::manifest
