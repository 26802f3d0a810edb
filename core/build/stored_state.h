// The state of a build as it is found in the store.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "build/listener.h"
#include "build/options.h"
#include "build/state.h"
#include "store/store.h"

namespace kc::build {

struct StoredState {
  base::Bytes bytes;    // for decode_state()
  State head;           // without its units
  bool is_own = false;  // of this very build; else of the whole manifest, as good for what it knows of a part
};

/// What the last build of `manifest` and `output` saw (both absolute; no output: the manifest's), else the
/// last of the whole manifest. A state that another kc wrote is none; that its keys were of another format is
/// told.
std::optional<StoredState> load_state(store::Store& store, const Options& options,
                                      const std::string& manifest, const std::string& output,
                                      Listener& listener);

}  // namespace kc::build
