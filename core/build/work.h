// The state of one build between its passes (build.cpp lists them). Inner to core/build.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "build/listener.h"
#include "build/options.h"
#include "build/prepare.h"
#include "build/spool.h"
#include "bundle/signature.h"
#include "store/store.h"
#include "util/signals.h"

namespace kc::build {

/// Thrown together by build(); its passes run one after another in the building thread.
struct Work {
  const Options& options;
  Listener& listener;
  util::SignalWatch& signals;
  store::Store* store = nullptr;  // null: every look-up misses, nothing is put
  Memory memory;                  // of the last build
  Prepared prepared;

  // Parallel to prepared.units.
  std::vector<UnitResult> results;
  std::vector<Spool::Place> places;

  std::optional<Spool> spool;  // nothing: no bundle is made, code objects are not kept
  Progress progress;
  std::optional<base::Error> stopped;  // why no more units are tried; its kind decides the exit code

  /// Units that share ChosenUnit::key are one job: indices into prepared.units, by key.
  std::unordered_map<base::Digest, std::vector<uint32_t>> by_key;

  std::optional<bundle::PrivateKey> signing_key = {};  // of Options::sign, when a bundle is made

  bool interrupted() { return signals.pending().has_value(); }
};

/// Where an artifact came from.
struct Arrival {
  UnitState state = UnitState::kHit;  // kHit or kCompiled
  double seconds = 0;
  uint64_t peak_bytes = 0;
  base::Digest code_digest;                 // of the artifact's code
  std::optional<base::Digest> content_key;  // of units with two keys
  std::vector<std::string> signers = {};    // of a hit
};

// In what follows `key` is a ChosenUnit::key. Units of one key may be of kernels that allow different things,
// so each of these decides only those that are still kPending.

/// Takes an artifact for every unit of `key`: keeps its code in the spool, its facts in the results, and
/// checks the manifest's limits. An error means that the spool could not be written.
base::Result<void> accept(Work& work, const base::Digest& key, const artifact::Artifact& artifact,
                          const Arrival& arrival);
/// Marks every unit of `key` as failed and tells the listener. `details.key` is the content key, as far as it
/// is known.
void reject(Work& work, const base::Digest& key, const base::Error& error, const UnitResult& details);
/// Marks the units of `key` as skipped whose kernels say `unsupported: skip`; false when there are none.
bool skip(Work& work, const base::Digest& key, const base::Error& why, const UnitResult& details);

/// Writes down the keys of unit `index`. `content` is left as it is known already where it is unset.
void set_keys(Work& work, size_t index, const std::optional<base::Digest>& content);

// The passes.
base::Result<void> look_up(Work& work);  // hits into results and spool
/// What is missing and must not be compiled (--require-cached, kc pack), or cannot be because its compiler is
/// not here, is told, all of it; gives what that means for the build, nothing when it can go on.
std::optional<base::ErrorKind> stop_for_missing(Work& work);
base::Result<void> compile_misses(Work& work);  // the rest, in the engine
/// Tells the listener of every unit with code that `trust` does not let a signature vouch for; how many there
/// are.
uint64_t refuse_imported(Work& work, const Trust& trust);
struct Packed {
  OutputState state = OutputState::kNone;
  base::FileTuple tuple;
  double seconds = 0;  // of compressing and writing, without the comparison, the sync and the rename
};
base::Result<Packed> pack(Work& work, const std::string& output, bool partial);

/// What of the manifest's limits an artifact exceeds; nothing when it keeps them.
/// `place` is where the error points to.
std::optional<base::Error> exceeded_limits(const manifest::Limits& limits, const base::Place& place,
                                           const UnitResult& result);

}  // namespace kc::build
