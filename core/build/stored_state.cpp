#include "build/stored_state.h"

#include <utility>

#include "build/keys.h"
#include "engine/wire.h"

namespace kc::build {

std::optional<StoredState> load_state(store::Store& store, const Options& options,
                                      const std::string& manifest, const std::string& output,
                                      Listener& listener) {
  auto bytes = store.load_state(state_id(options, manifest, output));
  const bool is_own = bytes.has_value();
  if (!bytes) {
    Options whole;
    whole.defaults = options.defaults;
    bytes = store.load_state(state_id(whole, manifest, {}));
  }
  if (!bytes) return std::nullopt;
  auto head = decode_state(*bytes, false);
  // Another kc may have written other fields in another order; what keys it made stands before them.
  if (head && is_another_key_format(head->key_domain)) {
    listener.note("key format changed: everything is compiled once more");
  }
  if (!head || head->build_id != engine::build_id()) return std::nullopt;
  return StoredState{std::move(*bytes), std::move(*head), is_own};
}

}  // namespace kc::build
