// What a build is asked to do, as plain data: flags, variables and defaults already merged except where the
// manifest comes in between (`settings:`), which the build itself decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "build/trust.h"
#include "store/store.h"
#include "util/time.h"

namespace kc::build {

struct StoreChoice {
  std::string directory;  // empty: none was named, a temporary store for this build alone
  std::vector<std::string> read_only_directories;  // stores under it, absolute
  store::Mode mode = store::Mode::kReadWrite;
  uint64_t limit_bytes = 0;
  bool strict = false;           // store trouble is an error
  std::string temporary_folder;  // where a temporary store and a spool without output go
};

/// What the user's settings file says where neither a flag, a variable nor the manifest's `settings:` does.
struct UserDefaults {
  std::optional<uint64_t> keep_going;
  std::optional<util::Nanoseconds> timeout;
  std::optional<int> level;
  std::optional<uint64_t> frame_size;
};

/// As core/store takes it.
inline store::Options store_options(const StoreChoice& choice) {
  return {choice.directory, choice.mode, choice.limit_bytes, choice.read_only_directories};
}

struct Options {
  std::string manifest;
  std::optional<std::string> output;  // -o
  std::vector<std::string> units;     // names, kernels, globs; empty = all
  std::vector<std::string> targets;   // empty = all
  std::optional<unsigned> jobs;
  // Flag or variable; unset = the manifest's, then the default.
  std::optional<uint64_t> keep_going;
  std::optional<util::Nanoseconds> timeout;
  std::optional<int> level;
  std::optional<uint64_t> frame_size;
  std::optional<uint64_t> release;
  std::optional<util::Nanoseconds> lock_timeout;
  bool dry_run = false;
  bool require_cached = false;
  bool pack_only = false;  // kc pack: nothing is compiled
  bool allow_partial = false;
  bool locked = false;                       // the compilers must be those of kc.lock
  std::optional<std::string> identity_from;  // a bundle that tells identities of compilers that are not here
  bool warm = false;                         // kc warm: no bundle is made
  std::optional<std::string> sign;           // file of the private key that signs the bundle
  std::optional<std::string> passphrase;     // of that key
  Trust trust;                               // who may have signed imported units that `sign` vouches for
  UserDefaults defaults;
  StoreChoice store;
  backend::SearchVariables search;
  std::string program;  // of the running kc: the engine is found beside it

  bool narrowed() const { return !units.empty() || !targets.empty(); }
};

}  // namespace kc::build
