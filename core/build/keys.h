// Content keys (docs/architecture.md: keys). For a backend without a front half this is the unit's only key.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/digest.h"
#include "manifest/plan.h"

namespace kc::build {

/// Raised together with the list of expected keys in tests/golden when keys are meant to change.
inline constexpr std::string_view kContentDomain{"kc-content-v1\0", 14};

/// Digests of what a unit is made from, each list in order.
struct InputDigests {
  std::vector<base::Digest> sources;
  std::vector<base::Digest> libraries;
  std::vector<std::pair<std::string, base::Digest>>
      depends;  // with the identifiers: sources open them by name
};

/// The key of `unit`: what its code generator gets and nothing else.
base::Digest content_key(const manifest::Unit& unit, const backend::Description& backend,
                         const base::Digest& compiler_identity, const InputDigests& inputs);

/// The same fields for people: name and value, digests and numbers in hexadecimal. An entry keeps them.
std::vector<std::pair<std::string, std::string>> content_key_fields(const manifest::Unit& unit,
                                                                    const backend::Description& backend,
                                                                    const base::Digest& compiler_identity,
                                                                    const InputDigests& inputs);

}  // namespace kc::build
