// The keys of a unit (docs/architecture.md: keys). A backend without a front half has one, the content key;
// one with a front half has a request key too, and its content key is known to whoever has linked the module.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/content_key.h"
#include "base/digest.h"
#include "manifest/plan.h"

namespace kc::build {

/// Raised together with the list of expected keys in tests/golden when keys are meant to change.
inline constexpr std::string_view kRequestDomain{"kc-request-v1\0", 14};

/// The domains of all keys, one behind the other: what a state says of the keys in it.
std::string key_domains();
/// Whether `earlier`, what another kc wrote so, names a domain that this one does not make keys of: what was
/// stored under those is not found again.
bool is_another_key_format(std::string_view earlier);

/// A file that a unit is made from.
struct InputFile {
  std::string identifier;
  base::Digest digest;
};

/// What a unit is made from, each list in order.
struct InputFiles {
  std::vector<InputFile> sources;
  std::vector<InputFile> libraries;
  std::vector<InputFile> depends;
};

/// What was asked: of `unit`, with everything that its compiler could look at.
base::Digest request_key(const manifest::Unit& unit, const backend::Description& backend,
                         const base::Digest& compiler_identity, const InputFiles& inputs);

/// The same fields for people: name and value, digests and numbers in hexadecimal. A record keeps them.
std::vector<std::pair<std::string, std::string>> request_key_fields(const manifest::Unit& unit,
                                                                    const backend::Description& backend,
                                                                    const base::Digest& compiler_identity,
                                                                    const InputFiles& inputs);

/// What the content key of `unit` is made of; `module` is filled in by who has it.
backend::ContentKeyInputs content_key_inputs(const manifest::Unit& unit, const backend::Description& backend,
                                             const base::Digest& compiler_identity, const InputFiles& inputs);

}  // namespace kc::build
