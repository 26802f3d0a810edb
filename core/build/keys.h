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

/// The key of `unit`: what its code generator gets and nothing else. `sources` are the digests of its
/// sources, in order.
base::Digest content_key(const manifest::Unit& unit, const backend::Description& backend,
                         const base::Digest& compiler_identity, const std::vector<base::Digest>& sources);

/// The same fields for people: name and value, digests and numbers in hexadecimal. An entry keeps them.
std::vector<std::pair<std::string, std::string>> content_key_fields(const manifest::Unit& unit,
                                                                    const backend::Description& backend,
                                                                    const base::Digest& compiler_identity,
                                                                    const std::vector<base::Digest>& sources);

}  // namespace kc::build
