// From a manifest to keyed units: parses and expands, chooses the named units, reads each source once, finds
// the compilers, computes the keys. Knows no store.
#pragma once

#include <expected>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "build/listener.h"
#include "build/options.h"
#include "build/state.h"
#include "manifest/plan.h"

namespace kc::build {

/// A source as it was read: exactly these bytes are hashed, keyed and compiled.
struct SourceContent {
  base::Bytes bytes;
  base::Digest digest;
  base::FileTuple tuple;
};

/// A unit of this build.
struct ChosenUnit {
  uint32_t unit = 0;  // index into Plan::units
  base::Digest key;
  util::Nanoseconds timeout{};
  std::optional<base::Error> refused;  // its sources cannot be compiled, as a look at them shows
};

struct Prepared {
  manifest::Plan plan;
  std::vector<SourceContent> sources;  // parallel to Plan::sources; empty for those that no chosen unit needs
  std::vector<backend::Compiler> compilers;
  std::vector<ChosenUnit> units;  // in plan order
  uint64_t warnings = 0;

  const manifest::Unit& unit(size_t index) const { return plan.units[units[index].unit]; }
  const manifest::Kernel& kernel(size_t index) const { return plan.kernels[unit(index).kernel]; }
  const backend::Compiler* compiler(std::string_view backend) const;
  /// Digests of the sources of unit `index`, in order.
  std::vector<base::Digest> source_digests(size_t index) const;
};

/// Errors go to `listener`, all of them; the returned kind is that of the worst. `earlier` may be null.
std::expected<Prepared, base::ErrorKind> prepare(const Options& options, const State* earlier,
                                                 Listener& listener);

}  // namespace kc::build
