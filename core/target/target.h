// Names of GPU architectures and what runs on what: the one table for manifest, checks and loader.
// Sources: NVIDIA "CUDA C++ Programming Guide" (compute capability, architecture- and family-specific
// features), LLVM "User Guide for AMDGPU Backend" (processors, generic processors, target features).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace kc::target {

enum class Vendor : uint8_t { kNvidia, kAmd };

enum class Feature : uint8_t { kAny, kOn, kOff };  // unnamed, `name+`, `name-`

/// One architecture as a manifest, a compiler or a code object names it.
struct Target {
  std::string text;  // as given: `sm_90a`, `gfx942:sramecc+:xnack-`, `gfx11-generic`
  Vendor vendor = Vendor::kNvidia;
  std::string processor;            // without suffix or features: `sm_90`, `gfx942`, `gfx11-generic`
  uint32_t sm = 0;                  // NVIDIA: 10 * major + minor; AMD: 0
  char suffix = 0;                  // NVIDIA: 0, 'a' (exactly this SM) or 'f' (its family)
  Feature sramecc = Feature::kAny;  // AMD only
  Feature xnack = Feature::kAny;

  bool operator==(const Target& other) const { return text == other.text; }
};

/// Parses a name; the error (ErrorKind::kInput) names the nearest known one. A well-formed NVIDIA name that
/// is not in the table (`sm_130`) is accepted: whether a compiler has it is the compiler's to say.
base::Result<Target> parse_target(std::string_view text);

/// Processors of AMD in the table, in its order. (What NVIDIA's compilers have they tell themselves.)
std::vector<std::string_view> amd_processors();

/// Whether an architecture found in a code object answers what was asked: the same, or the same with `a` or
/// `f`.
bool found_answers_asked(const Target& found, const Target& asked);

enum class Fit : uint8_t {
  kNo,
  kByRule,  // same NVIDIA major and higher minor, an `f` family, an AMD generic processor
  kExact,
};
/// Whether code for `code` (the architecture *found* in it) runs on the device `device`. A driver may still
/// refuse.
Fit runs_on(const Target& code, const Target& device);

/// How well code suits a device on which it runs: 0 when runs_on() says kNo, else more is better. Exact
/// before by rule. NVIDIA: `sm_90a` before `sm_90` on sm_90 (it may use all of that processor), `sm_100f`
/// between the two; by rule a family's code before plain code, then the higher minor. AMD: the device's
/// processor before a generic one, code that was made for a state of a feature before code for any.
uint32_t suitability(const Target& code, const Target& device);
/// Whether code for `a` is to be taken rather than code for `b`; false for equals. A strict weak order for
/// one device.
inline bool better(const Target& a, const Target& b, const Target& device) {
  return suitability(a, device) > suitability(b, device);
}

/// Targets of one family compress well together and a family is what a frame of a bundle holds: `sm_9`,
/// `gfx11`.
std::string family_of(const Target& target);

}  // namespace kc::target
