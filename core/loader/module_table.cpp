#include "loader/module_table.h"

#include <cstddef>

namespace kc::loader {
namespace {

// What drivers may expect of an image's address: that of memory from malloc.
constexpr size_t kImageAlignment = alignof(std::max_align_t);

bundle::Code copy_of(base::ByteView bytes) {
  auto copy = std::make_shared<const base::Bytes>(bytes.begin(), bytes.end());
  const base::ByteView view = *copy;
  return {std::move(copy), view};
}

Failure unloaded() {
  return {KC_ERROR_UNLOADED, "kc_unload_all() was called while this kernel was being loaded"};
}

}  // namespace

Result<ContextHandle> PrimaryContext::get() {
  const std::lock_guard lock(mutex_);
  if (!held_) {
    KC_ASSIGN(context_, driver_.context(device_, KC_CONTEXT_PRIMARY));
    held_ = true;
  }
  return context_;
}

void PrimaryContext::drop() noexcept {
  const std::lock_guard lock(mutex_);
  if (held_) driver_.release_context(device_, KC_CONTEXT_PRIMARY);
  held_ = false;
}

Answer<FunctionHandle> Module::function(const std::string& symbol, uint32_t dynamic_shared_memory) {
  const std::lock_guard lock(functions_mutex_);
  const auto [at, is_new] = functions_.try_emplace(symbol);
  Function& function = at->second;
  if (is_new) {
    Answer<FunctionHandle> got = driver_.function(device_, key_.context, handle_, symbol);
    if (!got) {
      functions_.erase(at);
      return std::unexpected(std::move(got).error());
    }
    function.handle = *got;
  }
  if (dynamic_shared_memory > function.dynamic_shared_memory) {
    KC_TRY(driver_.request_shared_memory(device_, key_.context, function.handle, dynamic_shared_memory));
    function.dynamic_shared_memory = dynamic_shared_memory;
  }
  return function.handle;
}

Answer<void> Module::load(bundle::Code code) {
  const bool is_aligned = reinterpret_cast<uintptr_t>(code.bytes.data()) % kImageAlignment == 0;
  // HIP goes on reading the image; memory that a bundle was opened from belongs to its own kernels alone.
  const bool may_go = key_.api == KC_HIP && code.owner == nullptr;
  image_ = is_aligned && !may_go ? std::move(code) : copy_of(code.bytes);
  KC_ASSIGN(handle_, driver_.load(device_, key_.context, image_.bytes));
  if (key_.api == KC_CUDA) image_ = {};  // the driver has a copy
  return {};
}

void Module::unload() noexcept {
  driver_.unload(device_, key_.context, handle_);
  handle_ = nullptr;
  image_ = {};
  primary_.reset();
}

// A flight lives on a stack and stands in the table's list as long as it lives, no longer: its destructor
// takes it out. GCC sees the first half.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#endif
void ModuleTable::Flight::enter() {
  generation_ = table_.generation_;
  before_ = table_.last_flight_;
  (before_ != nullptr ? before_->after_ : table_.first_flight_) = this;
  table_.last_flight_ = this;
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

ModuleTable::Flight::Flight(ModuleTable& table) : table_(table) {
  const std::lock_guard lock(table_.mutex_);
  enter();
}

ModuleTable::Flight::~Flight() {
  const std::lock_guard lock(table_.mutex_);
  (before_ != nullptr ? before_->after_ : table_.first_flight_) = after_;
  (after_ != nullptr ? after_->before_ : table_.last_flight_) = before_;
  table_.landed_.notify_all();
}

std::shared_ptr<PrimaryContext> ModuleTable::primary(Driver& driver, const Device& device) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<PrimaryContext>& known = primaries_[{device.api, device.ordinal}];
  std::shared_ptr<PrimaryContext> out = known.lock();
  if (out == nullptr) {
    out = std::make_shared<PrimaryContext>(driver, device);
    known = out;
  }
  return out;
}

Try<std::shared_ptr<Module>> ModuleTable::acquire(const Flight& flight, Driver& driver, const Device& device,
                                                  ContextHandle context,
                                                  const std::shared_ptr<PrimaryContext>& primary,
                                                  const Entry& entry) {
  const ModuleKey key{device.api, device.ordinal, context, entry.record.artifact_digest};
  const auto fresh = std::make_shared<Module>(key, driver, device, entry.record.symbol);
  fresh->primary_ = primary;
  if (auto found = find_or_begin(flight, fresh)) return std::move(*found);
  return load(flight, fresh, entry);
}

// What there is already, waited for while another thread loads it; nothing when `fresh` now stands in the
// table and the caller has to load it.
std::optional<Try<std::shared_ptr<Module>>> ModuleTable::find_or_begin(const Flight& flight,
                                                                       const std::shared_ptr<Module>& fresh) {
  std::unique_lock lock(mutex_);
  while (flight.generation() == generation_) {
    const auto [at, is_new] = modules_.try_emplace(fresh->key_, fresh);
    if (is_new) return std::nullopt;
    const std::shared_ptr<Module> module = at->second;
    module->settled_.wait(lock, [&] { return module->state_ != Module::State::kLoading; });
    if (module->state_ == Module::State::kLoaded) {
      ++module->users_;
      return module;
    }
    // Another function of the same code may be there where that one was not.
    const bool concerns_us = !module->symbol_failed_ || module->first_symbol_ == fresh->first_symbol_;
    if (module->state_ == Module::State::kFailed && concerns_us) return std::unexpected(*module->trouble_);
    // Otherwise it was unloaded before this thread came to it: look again.
  }
  return std::unexpected(Trouble(unloaded()));
}

Try<std::shared_ptr<Module>> ModuleTable::load(const Flight& flight, const std::shared_ptr<Module>& module,
                                               const Entry& entry) {
  std::optional<Trouble> trouble;
  try {
    if (Result<bundle::Code> code = entry.image(); !code) {
      trouble = std::move(code).error();
    } else if (Answer<void> loaded = module->load(std::move(*code)); !loaded) {
      trouble = std::move(loaded).error();
    } else if (Answer<FunctionHandle> got = module->function(entry.record.symbol, 0); !got) {
      trouble = std::move(got).error();
      module->symbol_failed_ = true;
    }
  } catch (...) {
    if (module->handle_ != nullptr) module->unload();
    settle_failure(module, Failure{KC_ERROR_MEMORY, "out of memory"});
    throw;
  }
  if (trouble) {
    if (module->handle_ != nullptr) module->unload();
    settle_failure(module, std::move(*trouble));
    return std::unexpected(*module->trouble_);
  }
  {
    const std::lock_guard lock(mutex_);
    if (flight.generation() == generation_) {
      module->state_ = Module::State::kLoaded;
      module->users_ = 1;
      module->settled_.notify_all();
      return module;
    }
    module->state_ = Module::State::kUnloaded;
    module->unloaded_ = true;
    module->settled_.notify_all();
  }
  module->unload();
  return std::unexpected(Trouble(unloaded()));
}

void ModuleTable::settle_failure(const std::shared_ptr<Module>& module, Trouble trouble) noexcept {
  const std::lock_guard lock(mutex_);
  forget(module);
  module->trouble_ = std::move(trouble);
  module->state_ = Module::State::kFailed;
  module->settled_.notify_all();
}

void ModuleTable::forget(const std::shared_ptr<Module>& module) noexcept {
  const auto at = modules_.find(module->key_);
  if (at != modules_.end() && at->second == module) modules_.erase(at);
}

void ModuleTable::release(const std::shared_ptr<Module>& module) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (--module->users_ != 0 || module->state_ != Module::State::kLoaded) return;
    forget(module);
    module->state_ = Module::State::kUnloaded;
    module->unloaded_ = true;
  }
  module->unload();
}

void ModuleTable::unload_all() noexcept {
  std::map<ModuleKey, std::shared_ptr<Module>> modules;
  std::map<std::pair<kc_api, int>, std::weak_ptr<PrimaryContext>> primaries;
  std::optional<Flight> flight;
  {
    std::unique_lock lock(mutex_);
    const uint64_t generation = ++generation_;
    flight.emplace(*this, lock);  // so that an unload_all() that begins now waits for this one, too
    modules.swap(modules_);
    primaries.swap(primaries_);
    // What is still being loaded is its loader's to unload.
    std::erase_if(modules, [](const auto& at) { return at.second->state_ != Module::State::kLoaded; });
    for (const auto& [key, module] : modules) {
      module->state_ = Module::State::kUnloaded;
      module->unloaded_ = true;
    }
    landed_.wait(lock, [&] { return first_flight_->generation_ >= generation; });
  }
  for (const auto& [key, module] : modules) module->unload();
  for (const auto& [device, known] : primaries) {
    if (const std::shared_ptr<PrimaryContext> primary = known.lock()) primary->drop();
  }
}

ModuleTable& module_table() {
  static ModuleTable* const table = new ModuleTable;
  return *table;
}

}  // namespace kc::loader
