// `kc warm --from`: the code objects of a bundle become entries of the store, without any compiler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "build/listener.h"
#include "build/options.h"

namespace kc::build {

enum class Warmth : uint8_t {
  kStored,
  kThere,      // the store has the same code under this key
  kOther,      // the store has other code under this key, or the answer that there is none; it stays
  kNotStored,  // the store did not take it
};

/// A unit of the bundle.
struct WarmedUnit {
  std::string unit;
  base::Digest key;
  Warmth state = Warmth::kStored;
};

/// A unit of the manifest.
struct ExpectedUnit {
  std::string unit, kernel, target;
  std::optional<base::Digest> request_key;
  std::optional<base::Digest> key;
  UnitState state = UnitState::kPending;  // as kc plan says it
  std::string reason;                     // why it is a miss
};

struct Warmed {
  int code = 0;        // kc's exit code; the listener knows why
  std::string signer;  // the trusted key; empty: nobody
  std::vector<WarmedUnit> units;
  uint64_t stored = 0, there = 0, other = 0, not_stored = 0;  // of them
  std::optional<std::vector<ExpectedUnit>> expected;          // when a manifest was planned
};

/// Puts what `bundle` has into the store of `options`, after its signature was checked against
/// `options.trust`; entries say who signed it. What they say of a kernel is what the bundle says. All records
/// and artifacts are read before the first is put. With `plans` the manifest of `options` is planned then:
/// which units will be hits, and why the others will not. Where there is no compiler, the bundle tells its
/// identity.
Warmed warm_from(const Options& options, const std::string& bundle, bool plans, Listener& listener);

}  // namespace kc::build
