// Loaded code of this process: each artifact once on each device and context, shared by all kernels that it
// serves. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "loader/bundles.h"
#include "loader/driver.h"

namespace kc::loader {

struct LoadOptions {
  kc_context context = KC_CONTEXT_PRIMARY;
  uint32_t dynamic_shared_memory = 0;
};

class Module;          // inner: one loaded artifact
class PrimaryContext;  // inner: keeps a device's primary context

/// A loaded function of an entry. Unloads its module with the last of them.
class Kernel {
 public:
  /// Takes over one of the module's users; `primary` is null for a context of the caller's.
  Kernel(Entry entry, std::shared_ptr<Module> module, std::shared_ptr<PrimaryContext> primary,
         FunctionHandle function);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel();

  void set_function(FunctionHandle function) { function_ = function; }

  const Entry& entry() const { return entry_; }
  /// nullptr after unload_all().
  FunctionHandle function() const;

 private:
  Entry entry_;
  std::shared_ptr<Module> module_;
  std::shared_ptr<PrimaryContext> primary_;
  FunctionHandle function_;
};

/// Loads the first of `candidates` (best first, never empty) that the driver takes: after a refusal that
/// speaks of the code (200, 209, 218, 221, 222, 300, 301, 500, 999 and HIP's of the same meaning) the next
/// one is tried; any other ends it. When all were refused the failure is that of the first, told by
/// explain_refusal().
Result<std::unique_ptr<Kernel>> load(const std::vector<Entry>& candidates, const Device& device,
                                     const LoadOptions& options);

/// Unloads everything and lets go of primary contexts. When it returns, no call of a load or release that
/// began before it is in a driver any more: such loads have ended with KC_ERROR_UNLOADED.
void unload_all() noexcept;

}  // namespace kc::loader
