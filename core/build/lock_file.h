// kc.lock: which compilers the units of a folder's manifests are built with (docs/lock.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/digest.h"
#include "base/error.h"

namespace kc::build {

/// Its name, beside the manifest.
inline constexpr std::string_view kLockName = "kc.lock";
/// Bytes that one may have: a compiler has a handful of files, a line each.
inline constexpr uint64_t kMaxLockBytes = 1ULL << 20;

struct LockedCompiler {
  struct File {
    std::string role;
    base::Digest digest;
    bool operator==(const File&) const = default;
  };
  std::string backend;
  std::string host;               // architecture, as keys have it
  std::vector<std::string> keys;  // domains, without the zero at their ends
  uint32_t adapter = 0;           // revision
  base::Digest identity;
  std::string version;  // for people; may be empty
  std::vector<File> files;
  bool operator==(const LockedCompiler&) const = default;
};

struct LockFile {
  std::vector<LockedCompiler> compilers;  // sorted by backend, then host; each pair once

  /// That of this machine's architecture; null when there is none.
  const LockedCompiler* find(std::string_view backend) const;
  /// Puts `compiler` in the place of the one with its backend and host.
  void set(LockedCompiler compiler);
};

/// What `kc lock` writes of a compiler that was found.
LockedCompiler locked_from(const backend::Compiler& compiler, std::string version);

/// Whether keys made by this kc are of the format that `compiler` was written for.
bool is_of_our_keys(const LockedCompiler& compiler);

/// The files in which `found` is not what the lock names, for people: `ptxas 0b6f3a5fb8a0 -> 77aa0c1d2e3f`.
/// Empty when the identities are equal. Safe to print.
std::string difference(const LockedCompiler& locked, const backend::Compiler& found);

/// The identity of `compiler` with the roles and digests of its files, without any path: no program.
backend::Compiler without_files(const LockedCompiler& compiler);

/// Reads the text of a lock file that errors call `file`: kInput, with line and column.
base::Result<LockFile> parse_lock(const std::string& file, std::string_view text);
std::string lock_text(const LockFile& lock);

}  // namespace kc::build
