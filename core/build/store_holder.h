// The store of one build, found or made do without.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "build/listener.h"
#include "build/options.h"
#include "store/store.h"

namespace kc::build {

/// Opens the store that was chosen, or a temporary one for this build alone, which goes with the object. One
/// thread only.
class StoreHolder {
 public:
  StoreHolder(const StoreChoice& choice, Listener& listener) : choice_(choice), listener_(listener) {}
  ~StoreHolder();
  StoreHolder(const StoreHolder&) = delete;
  StoreHolder& operator=(const StoreHolder&) = delete;

  /// An error is final; without one get() may still be null (mode off, or a store that cannot be used).
  base::Result<void> open();
  store::Store* get() const { return store_.get(); }
  bool is_temporary() const { return !temporary_.empty(); }

 private:
  base::Result<void> open_without(const std::string& why);

  const StoreChoice& choice_;
  Listener& listener_;
  std::unique_ptr<store::Store> store_;
  std::string temporary_;
};

}  // namespace kc::build
