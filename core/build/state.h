// What the last build of one manifest and output saw. It makes the next no-op cheap, orders misses, and is
// never trusted for more than it can prove: a state that does not decode is no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "artifact/compare.h"
#include "backend/backend.h"
#include "base/digest.h"
#include "base/files.h"
#include "build/options.h"

namespace kc::build {

struct InputMemory {
  std::string path;     // absolute
  std::string pattern;  // of a listed folder, see manifest::list_folder(); empty for a file
  base::FileTuple tuple;
  base::Digest digest;  // of the file's bytes, or of the listing; zero: the tuple alone tells
};

struct UnitMemory {
  std::string name;
  std::optional<base::Digest> request_key;  // of a unit with two keys
  base::Digest key;                         // content key; zero while only an engine could tell it
  double seconds = 0;
  uint64_t peak_bytes = 0;
  std::optional<artifact::Numbers> numbers;  // of its code object; unset for a unit without one
};

struct State {
  std::string build_id;     // of the kc that wrote it: another one plans anew
  std::string key_domain;   // of all keys, see key_domains()
  int64_t recorded_ns = 0;  // no tuple below was taken before: younger files were not settled
  int64_t touched_s = 0;    // when the entries were last marked as used
  std::vector<InputMemory> inputs;
  std::vector<backend::Compiler> compilers;
  // Identities of compilers that were not found, by backend: kc.lock or a bundle, both among the inputs,
  // told.
  std::vector<std::pair<std::string, base::Digest>> absent;
  std::string no_lock;  // absolute path where no kc.lock was; empty: it is among the inputs
  bool locked = false;  // kc.lock named exactly the compilers of this build
  std::string output;   // absolute; empty: that build did not end with a bundle
  base::FileTuple output_tuple;
  uint64_t unit_count = 0;
  uint64_t skipped_count = 0;  // of those: without code, as their kernels allow
  std::vector<UnitMemory> units;
};

/// What a state remembers of units, by name; refers into the state.
using Memory = std::unordered_map<std::string_view, const UnitMemory*>;
Memory memory_of(const State& state);

/// Names the state of a build: the manifest, the output, and every flag that changes what is built.
base::Digest state_id(const Options& options, const std::string& manifest, const std::string& output);

base::Bytes encode_state(const State& state);
/// `with_units` false leaves State::units empty: an unchanged build does not need them.
std::optional<State> decode_state(base::ByteView bytes, bool with_units);

/// Answers for find_compiler() from what `compilers` were when a state was recorded at `recorded_ns`: only
/// files that were settled then are known. `compilers` must outlive the answer.
backend::KnownDigest known_digests(const std::vector<backend::Compiler>& compilers, int64_t recorded_ns);

enum class Freshness : uint8_t {
  kUnchanged,
  kUnchangedRecord,  // unchanged, but `state` was brought up to date and should be saved
  kChanged,
};
/// Compares every tuple with the disk. Opens only inputs whose tuple differs or was not settled when
/// recorded, to compare their digests; folders are then listed again. `now_ns` is the time this run started.
Freshness check_state(State& state, const backend::SearchVariables& search, int64_t now_ns);

}  // namespace kc::build
