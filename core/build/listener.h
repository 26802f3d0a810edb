// How a build tells what happens: one interface, so that console, JSON lines and later reports see the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/compare.h"
#include "base/digest.h"
#include "base/error.h"
#include "manifest/plan.h"

namespace kc::build {

enum class UnitState : uint8_t {
  kPending,  // known, not yet decided (kc plan: a miss)
  kHit,
  kCompiled,
  kFailed,
  kSkipped,   // not for this target, and the manifest says `unsupported: skip`; `error` says why
  kNotTried,  // the build stopped before it
};

/// How one unit went.
struct UnitResult {
  UnitState state = UnitState::kPending;
  std::optional<base::Digest> request_key;  // of a unit with two keys
  std::optional<base::Digest> key;          // content key; unset while only an engine could tell it
  double seconds = 0;                       // of the compile, also for a hit
  uint64_t peak_bytes = 0;
  uint64_t code_bytes = 0;
  std::string compiler_version;
  std::string toolkit;
  std::string found_target;
  /// Of a hit: store::signers_of(). None: it was compiled here.
  std::vector<std::string> signers;
  artifact::KernelFacts facts;            // of the unit's entry
  std::optional<artifact::Numbers> last;  // of a compiled unit: what the last build had of the same name
  std::vector<artifact::Diagnostic> diagnostics;
  base::Error error;        // why it failed or was skipped
  std::string output;       // what the compiler printed, when it failed
  std::string output_path;  // where that is kept, empty if nowhere
  std::optional<double>
      expected_seconds;  // kc plan, of a miss: what an earlier build took; unset when unknown
};

struct Progress {
  uint64_t units = 0, done = 0, running = 0, hits = 0, failed = 0;
  std::optional<double> seconds_left;  // when enough earlier times are known
};

enum class OutputState : uint8_t { kNone, kWritten, kUnchanged };

/// Of a plan: the units of one kernel. What is neither hit, skipped nor failed is a miss.
struct KernelSummary {
  std::string name;
  uint64_t units = 0, hits = 0, skipped = 0, failed = 0;
  std::vector<std::string> targets;  // in plan order
  std::optional<double> expected_seconds;

  uint64_t misses() const { return units - hits - skipped - failed; }
};

struct Summary {
  uint64_t units = 0, hits = 0, compiled = 0, failed = 0, skipped = 0, not_tried = 0, warnings = 0;
  double seconds = 0;
  double pack_seconds = 0;  // of them compressing and writing the bundle
  /// kc plan: how long compiling the misses will take, one after another, by what earlier builds took: a unit
  /// that they did not have counts as the median of those that they had. Units that share a key count once.
  /// Unset when nothing is known.
  std::optional<double> expected_seconds;
  std::vector<KernelSummary> kernels;  // kc plan: in plan order
  std::string output;                  // empty when nothing is packed
  OutputState output_state = OutputState::kNone;
  bool packs = false;          // a bundle was to be made
  bool interrupted = false;    // a signal ended it: what was compiled is kept
  bool nothing_to_do = false;  // the recorded state held: nothing was read
  bool subset = false, partial = false;
};

/// Called from the building thread only. Text in results and errors may be untrusted: who prints it escapes
/// it.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void error(const base::Error& error) = 0;
  virtual void warning(const base::Error& warning) = 0;
  virtual void note(const std::string& text) = 0;
  virtual void progress(const Progress& progress) = 0;
  /// A unit failed, at the moment it did.
  virtual void failed(const manifest::Plan& plan, const manifest::Unit& unit, const UnitResult& result) = 0;
  /// Every unit once, in plan order, when all have ended.
  virtual void unit(const manifest::Plan& plan, const manifest::Unit& unit, const UnitResult& result) = 0;
  virtual void summary(const Summary& summary) = 0;
};

}  // namespace kc::build
