// kc lock: kc.lock brought up to what is found on this machine.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "build/listener.h"
#include "build/lock_file.h"
#include "build/options.h"

namespace kc::build {

struct LockOutcome {
  enum class File : uint8_t {
    kWritten,
    kUnchanged,  // said all of this already, and was not touched
    kOutdated,   // with `check_only`: other than found, or missing
  };
  struct Compiler {
    LockedCompiler locked;  // as found
    bool is_new = false;    // kc.lock did not name it
    std::string change;     // in which files, or how else, kc.lock differed; empty: it said the same
  };
  std::string path;  // beside the manifest, as that was given
  File file = File::kUnchanged;
  std::vector<Compiler> compilers;  // of the backends that the manifest uses, sorted
};

/// Finds the compilers of `options.manifest` and writes them into the kc.lock beside it; runs none. With
/// `check_only` nothing is written. Errors go to `listener`; the returned kind is that of the worst.
std::expected<LockOutcome, base::ErrorKind> lock_compilers(const Options& options, bool check_only,
                                                           Listener& listener);

}  // namespace kc::build
