// The running half of a backend: calls the compiler. Linked into the engine alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "backend/backend.h"
#include "base/bytes.h"
#include "base/error.h"
#include "util/process.h"
#include "util/time.h"

namespace kc::backend {

/// The files that units are compiled from, in the order written (the order is an input of a compile). One set
/// serves every specialization of a kernel, so a runner may keep what it makes of it, by `id`.
struct SourceSet {
  uint32_t id = 0;  // never used again for other files while this runner lives
  std::vector<Source> files;
};

struct CompileRequest {
  std::string entry;
  target::Target target;
  Pairs options;
  Pairs config;
  std::shared_ptr<const SourceSet> sources;
  util::Nanoseconds timeout{};  // for a child; in process nobody can end a compile but the engine's end
  std::string folder;           // RunKind::kChild: the job's own, exists, empty; whoever made it removes it
  /// Only for a backend with a front half, called once before code is generated, with the digest of what the
  /// code generator will get (the linked module, its configuration applied): after the front half, or before
  /// it where an earlier request has shown what it makes. False: somebody has the result already, or makes
  /// it; the compile ends as kStopped.
  std::function<bool(const base::Digest& module)> has_module;
};

enum class Status : uint8_t {
  kCompiled,
  kFailed,       // the compiler said no, or its code object is not what was asked for
  kUnsupported,  // "not for this target"
  kTimeout,
  kChanged,  // the compiler on disk is not the one identified: nothing may be put, the build ends with exit 3
  kEnvironment,  // could not be started, no space, a foreign ptxas: not this unit's fault
  kStopped,      // has_module() said so; nothing was compiled
  /// In process only: the compiler left the process in a state in which no result can be believed (it threw
  /// an exception). `message` says what it did.
  kTainted,
};

struct CompileOutcome {
  Status status = Status::kFailed;
  artifact::Artifact artifact;  // code and facts only when kCompiled; diagnostics always
  std::string message;          // why it is not kCompiled, one sentence
  std::string hint;             // what to do, may be empty
  // The compiler gave this answer itself, so the same request would get it again: it was not killed, nor out
  // of time.
  bool is_own_answer = false;
  std::string output;  // all that the compiler printed
  double seconds = 0;
  uint64_t peak_bytes = 0;
};

/// A compiler ready to run. compile() may be called from several threads at once.
class Runner {
 public:
  virtual ~Runner() = default;
  /// Compiles one unit, reads the facts of what came out, and checks that it holds the asked architecture
  /// and, where the description says `entry_is_symbol`, the asked entry. Throws nothing.
  virtual CompileOutcome compile(const CompileRequest& request, const util::ProcessHooks& hooks) = 0;
};

/// Prepares a compiler that kc found: compares tuples, asks the program who it is. ErrorKind::kEnvironment
/// when it is not what it should be.
base::Result<std::unique_ptr<Runner>> open_runner(const Compiler& compiler);

}  // namespace kc::backend
