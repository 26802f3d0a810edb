#include "cli/loader_policy.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "util/text.h"

namespace kc::cli {
namespace {

using base::ErrorKind;
using base::Result;

void add_once(std::vector<bundle::PublicKey>& out, const bundle::PublicKey& key) {
  if (std::ranges::find(out, key) == out.end()) out.push_back(key);
}

ErrorKind kind_of(kc_status status) {
  switch (status) {
    case KC_ERROR_ARGUMENT:
    case KC_ERROR_IO:
    case KC_ERROR_NOT_FOUND:
      return ErrorKind::kInput;
    case KC_ERROR_MEMORY:
    case KC_ERROR_NO_DRIVER:
    case KC_ERROR_NO_DEVICE:
      return ErrorKind::kEnvironment;
    case KC_OK:
    case KC_ERROR_INTERNAL:
      return ErrorKind::kInternal;
    case KC_ERROR_DAMAGED:
    case KC_ERROR_VERSION:
    case KC_ERROR_UNTRUSTED:
    case KC_ERROR_POLICY:
    case KC_ERROR_NO_CODE:
    case KC_ERROR_DRIVER_TOO_OLD:
    case KC_ERROR_DRIVER:
    case KC_ERROR_UNLOADED:
      return ErrorKind::kFailed;
  }
  return ErrorKind::kInternal;
}

}  // namespace

Result<std::vector<bundle::PublicKey>> read_keys(const KeyArguments& arguments) {
  std::vector<bundle::PublicKey> out;
  for (const std::string& path : arguments.keys) {
    KC_ASSIGN(const bundle::PublicKey key, bundle::read_public_key(path));
    add_once(out, key);
  }
  if (arguments.folder) {
    KC_ASSIGN(const std::vector<bundle::PublicKey> keys, bundle::read_key_folder(*arguments.folder));
    for (const bundle::PublicKey& key : keys) add_once(out, key);
  }
  return out;
}

Result<kcload::Bundle> open_bundle(const PolicyArguments& arguments) {
  kcload::Policy policy;
  KC_ASSIGN(const std::vector<bundle::PublicKey> keys, read_keys(arguments.keys));
  for (const bundle::PublicKey& key : keys) policy.keys.push_back(key.bytes);
  policy.name = arguments.name;
  policy.min_release = arguments.min_release.value_or(0);
  policy.allow_partial = arguments.allow_partial;
  kcload::Error error;
  kcload::Bundle bundle = kcload::Bundle::open(arguments.bundle, policy, error);
  if (error) return std::unexpected(error_of(error, arguments.bundle));
  return bundle;
}

base::Error error_of(const kcload::Error& error, const std::string& place) {
  const std::string_view text = error.what();
  const size_t end = std::min(text.find('\n'), text.size());
  std::string message(text.substr(0, end));
  // The library names the file itself, where its message would not be clear without.
  base::Place where;
  if (!message.starts_with(place)) where.file = place;
  std::string hint;
  if (end < text.size()) {
    for (const std::string& line : util::split(text.substr(end + 1), '\n')) {
      // The library indents what belongs to the first line by as much as the console does.
      hint += hint.empty() ? std::string(util::trim(line)) : "\n" + line;
    }
  }
  return {kind_of(error.status()), std::move(message), std::move(where), std::move(hint)};
}

}  // namespace kc::cli
