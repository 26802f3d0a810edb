// From a manifest to keyed units: parses and expands, chooses the named units, reads each source once, finds
// the compilers, or else their identities, and computes the keys. Knows no store.
#pragma once

#include <expected>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/digest.h"
#include "build/identities.h"
#include "build/keys.h"
#include "build/listener.h"
#include "build/options.h"
#include "build/state.h"
#include "manifest/plan.h"

namespace kc::build {

/// A unit of this build.
struct ChosenUnit {
  uint32_t unit = 0;  // index into Plan::units
  /// What the unit is looked up and compiled by: the request key of a backend with a front half, else the
  /// content key. Units that share it are one job.
  base::Digest key;
  bool has_request = false;  // `key` is a request key
  util::Nanoseconds timeout{};
  std::optional<base::Error> refused;  // its sources cannot be compiled, as a look at them shows
};

struct Prepared {
  manifest::Plan plan;
  /// Parallel to Plan::sources, whose own contents have moved here; empty for those that neither a chosen
  /// unit nor planning needed.
  std::vector<manifest::SourceContent> sources;
  std::vector<backend::Compiler> compilers;  // those that were found
  Identities identities;                     // and those that were not; its `found` has moved here
  std::vector<ChosenUnit> units;             // in plan order
  uint64_t warnings = 0;

  const manifest::Unit& unit(size_t index) const { return plan.units[units[index].unit]; }
  const manifest::Kernel& kernel(size_t index) const { return plan.kernels[unit(index).kernel]; }
  /// Whose identity the keys of `backend` have; perhaps one that is absent.
  const backend::Compiler* compiler(std::string_view backend) const;
  /// Null when the compiler of `backend` is on this machine.
  const AbsentCompiler* absent(std::string_view backend) const;
  const manifest::Limits& limits(size_t index) const { return plan.limits[unit(index).limits]; }
  /// What unit `index` is made from.
  InputFiles input_files(size_t index) const;
};

/// Errors go to `listener`, all of them; the returned kind is that of the worst. `earlier` may be null.
std::expected<Prepared, base::ErrorKind> prepare(const Options& options, const State* earlier,
                                                 Listener& listener);

}  // namespace kc::build
