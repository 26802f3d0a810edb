// Which compilers a build is for: those that are found, checked against kc.lock, and where none is found the
// identity that kc.lock or a bundle tells (docs/lock.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "build/listener.h"
#include "build/options.h"
#include "build/state.h"
#include "manifest/plan.h"

namespace kc::build {

/// A compiler that is not on this machine.
struct AbsentCompiler {
  /// Its identity, so that what it made is found in the store. Without a program, and of its files there are
  /// at most roles and digests: nothing that could be run.
  backend::Compiler compiler;
  base::Error why;  // no compiler was found: where it was looked for
};

struct Identities {
  std::vector<backend::Compiler> found;
  std::vector<AbsentCompiler> absent;
  /// kc.lock, if there is one, and the bundle that told an identity: a change of them may change the build.
  std::vector<manifest::Input> inputs;
  std::string no_lock;  // where there is no kc.lock, absolute; empty: there is one
  bool locked = false;  // kc.lock names exactly the compilers of this build, for keys such as ours
};

/// Those of `backends`. `folder` is the manifest's, where kc.lock lies; `earlier`, which may be null, saves
/// hashing files. Errors are added to `errors`; notes and warnings go to `listener`.
Identities find_identities(const std::vector<std::string>& backends, const std::string& folder,
                           const Options& options, const State* earlier, Listener& listener,
                           std::vector<base::Error>& errors);

/// Where the kc.lock of a manifest in `folder` lies.
std::string lock_path(const std::string& folder);

}  // namespace kc::build
