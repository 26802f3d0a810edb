// The running half of a backend: calls the compiler. Linked into the engine alone.
#pragma once

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

struct Source {
  std::string identifier;  // relative to the top manifest's folder: what a compiler sees and prints
  base::Bytes bytes;
};

struct CompileRequest {
  std::string entry;
  target::Target target;
  Pairs options;
  Pairs config;
  std::vector<Source> sources;
  util::Nanoseconds timeout{};
  std::string folder;  // the job's own, exists, empty; whoever made it removes it
};

enum class Status : uint8_t {
  kCompiled,
  kFailed,       // the compiler said no, or its code object is not what was asked for
  kUnsupported,  // "not for this target"
  kTimeout,
  kChanged,  // the compiler on disk is not the one identified: nothing may be put, the build ends with exit 3
  kEnvironment,  // could not be started, no space, a foreign ptxas: not this unit's fault
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
  /// Compiles one unit, reads the facts of what came out, and checks that it holds the asked entry and
  /// architecture.
  virtual CompileOutcome compile(const CompileRequest& request, const util::ProcessHooks& hooks) = 0;
};

/// Prepares a compiler that kc found: compares tuples, asks the program who it is. ErrorKind::kEnvironment
/// when it is not what it should be.
base::Result<std::unique_ptr<Runner>> open_runner(const Compiler& compiler);

}  // namespace kc::backend
