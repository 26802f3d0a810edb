// Keys as flags, variables and the user's settings name them.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "build/trust.h"
#include "cli/command.h"
#include "cli/loader_policy.h"

namespace kc::cli {

/// Who may bring code into the store: these and the user's trusted_keys. A file of trusted_keys that others
/// can write is ErrorKind::kInput.
base::Result<build::Trust> choose_trust(const Common& common, const KeyArguments& arguments);

/// KC_KEY_PASSPHRASE; with `ask` what is typed on the terminal, with `twice` the same two times. Nothing when
/// there is none. ErrorKind::kInput: no terminal, nothing was typed, or two that differ.
base::Result<std::optional<std::string>> choose_passphrase(const Common& common, bool ask, bool twice);

}  // namespace kc::cli
