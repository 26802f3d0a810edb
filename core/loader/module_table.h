// The inside of modules.h: the process-wide table of loaded artifacts.
//
// One mutex guards the table and the states in it; no driver is called under it. What takes time happens in a
// Flight, which unload_all() waits for: it raises the generation, takes the whole table, waits until no
// flight of an older generation is left, and unloads. A load that sees another generation than its own ends
// with KC_ERROR_UNLOADED.
#pragma once

#include <atomic>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/digest.h"
#include "loader/bundles.h"
#include "loader/driver.h"
#include "loader/modules.h"

namespace kc::loader {

/// Why a load failed: the driver refused the code or a call, or it did not come to that.
using Trouble = std::variant<Failure, Refusal>;
template <typename T>
using Try = std::expected<T, Trouble>;

struct ModuleKey {
  kc_api api = KC_CUDA;
  int ordinal = 0;
  ContextHandle context = nullptr;
  base::Digest artifact;

  auto operator<=>(const ModuleKey&) const = default;
};

/// A device's primary context, retained once for all that share this object. Thread-safe.
class PrimaryContext {
 public:
  PrimaryContext(Driver& driver, Device device) : driver_(driver), device_(std::move(device)) {}
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;
  ~PrimaryContext() { drop(); }

  /// Retains it at the first call.
  Result<ContextHandle> get();
  /// Lets go of it now, whoever shares this.
  void drop() noexcept;

 private:
  Driver& driver_;
  const Device device_;
  std::mutex mutex_;
  bool held_ = false;
  ContextHandle context_ = nullptr;
};

/// One artifact on one device and context.
class Module {
 public:
  Module(ModuleKey key, Driver& driver, Device device, std::string symbol)
      : key_(key), driver_(driver), device_(std::move(device)), first_symbol_(std::move(symbol)) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  bool is_unloaded() const { return unloaded_.load(std::memory_order_acquire); }

  /// The function of that name, with at least so much dynamic shared memory requested for it. Requests only
  /// ever grow: another kernel may count on the larger one.
  Answer<FunctionHandle> function(const std::string& symbol, uint32_t dynamic_shared_memory);

 private:
  friend class ModuleTable;

  enum class State : uint8_t { kLoading, kLoaded, kFailed, kUnloaded };
  struct Function {
    FunctionHandle handle = nullptr;
    uint32_t dynamic_shared_memory = 0;
  };

  Answer<void> load(bundle::Code code);
  void unload() noexcept;

  const ModuleKey key_;
  Driver& driver_;
  const Device device_;
  const std::string first_symbol_;  // the one that its loader asked for

  // Under the table's mutex.
  State state_ = State::kLoading;
  size_t users_ = 0;
  std::optional<Trouble> trouble_;  // of kFailed: for those who waited
  bool symbol_failed_ = false;      // the code was taken, that function was not got
  std::condition_variable settled_;

  std::atomic<bool> unloaded_{false};

  // The loader's until it has settled.
  ModuleHandle handle_ = nullptr;
  bundle::Code image_;  // HIP reads it as long as the module is loaded
  std::shared_ptr<PrimaryContext> primary_;

  std::mutex functions_mutex_;
  std::map<std::string, Function> functions_;
};

class ModuleTable {
 public:
  /// Something under way that calls a driver. Lives on the stack of the thread that does it.
  class Flight {
   public:
    explicit Flight(ModuleTable& table);
    /// For who has locked the table's mutex already.
    Flight(ModuleTable& table, const std::unique_lock<std::mutex>&) : table_(table) { enter(); }
    Flight(const Flight&) = delete;
    Flight& operator=(const Flight&) = delete;
    ~Flight();

    uint64_t generation() const { return generation_; }

   private:
    friend class ModuleTable;
    void enter();

    ModuleTable& table_;
    uint64_t generation_ = 0;
    Flight* before_ = nullptr;
    Flight* after_ = nullptr;
  };

  std::shared_ptr<PrimaryContext> primary(Driver& driver, const Device& device);

  /// The module of `entry` in `context`, loaded by this call, by another, or before. The caller becomes one
  /// of its users.
  Try<std::shared_ptr<Module>> acquire(const Flight& flight, Driver& driver, const Device& device,
                                       ContextHandle context, const std::shared_ptr<PrimaryContext>& primary,
                                       const Entry& entry);
  /// Of one user; unloads with the last. In a flight.
  void release(const std::shared_ptr<Module>& module) noexcept;

  void unload_all() noexcept;

 private:
  std::optional<Try<std::shared_ptr<Module>>> find_or_begin(const Flight& flight,
                                                            const std::shared_ptr<Module>& fresh);
  Try<std::shared_ptr<Module>> load(const Flight& flight, const std::shared_ptr<Module>& module,
                                    const Entry& entry);
  void settle_failure(const std::shared_ptr<Module>& module, Trouble trouble) noexcept;
  void forget(const std::shared_ptr<Module>& module) noexcept;  // under mutex_

  std::mutex mutex_;
  uint64_t generation_ = 0;
  Flight* first_flight_ = nullptr;  // the oldest, so that of the lowest generation
  Flight* last_flight_ = nullptr;
  std::condition_variable landed_;
  std::map<ModuleKey, std::shared_ptr<Module>> modules_;  // loading or loaded
  std::map<std::pair<kc_api, int>, std::weak_ptr<PrimaryContext>> primaries_;
};

/// The one of this process. Never destroyed: kernels may be released while the process ends.
ModuleTable& module_table();

}  // namespace kc::loader
