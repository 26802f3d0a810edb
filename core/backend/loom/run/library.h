// Loading libloomc: once, by its absolute path, never unloaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/loom/run/functions.h"
#include "backend/loom/run/generation.h"
#include "base/error.h"

namespace kc::backend::loom {

/// A library of a generation that kc can call. Stays mapped when this object is gone: parts of it may keep
/// pointers into it.
class Library {
 public:
  /// Loads what kc identified and recognises it. The files are compared before and after, and afterwards
  /// nothing but them may have been mapped, apart from the system's own runtime. ErrorKind::kEnvironment.
  static base::Result<Library> load(const Compiler& compiler);

  const Functions& functions() const { return functions_; }
  Generation generation() const { return generation_; }
  /// Address of an exported symbol, null when there is none.
  void* find(const std::string& symbol) const;
  /// `G4`, and what else the library tells of its version: for people.
  const std::string& version() const { return version_; }

  /// That nothing is mapped but what kc identified, for this library or another that was loaded. To be called
  /// again whenever objects_loaded() has changed: a library may load parts late.
  base::Result<void> check_mapped() const;

 private:
  Library(void* handle, const Compiler& compiler, std::vector<std::string> mapped_before);

  void* handle_;
  std::vector<IdentityFile> files_;
  std::vector<std::string> mapped_before_;
  Functions functions_;
  Generation generation_ = Generation::kG4;
  std::string version_;
};

/// How many objects the dynamic linker has loaded in this process so far. Takes less than a microsecond.
uint64_t objects_loaded();

}  // namespace kc::backend::loom
