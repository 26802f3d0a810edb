#include "loader/modules.h"

#include <algorithm>
#include <utility>

#include "loader/module_table.h"
#include "loader/refusal.h"

namespace kc::loader {
namespace {

// Targets that are named in a message; the message itself shows fewer.
constexpr size_t kMostListed = 256;

// What has to be requested for launches with that much dynamic shared memory: 0 where the default is enough.
Result<uint32_t> shared_memory_to_request(const bundle::Record& record, const Device& device,
                                          const LoadOptions& options) {
  const uint64_t needed = uint64_t{options.dynamic_shared_memory} + record.facts.shared_memory;
  if (options.dynamic_shared_memory == 0 || needed <= device.max_shared_memory) return 0;
  if (needed > device.max_shared_memory_opt_in) {
    return fail(KC_ERROR_ARGUMENT, "kernel \"" + record.kernel + "\" cannot have " +
                                       std::to_string(options.dynamic_shared_memory) +
                                       " bytes of dynamic shared memory beside its own " +
                                       std::to_string(record.facts.shared_memory) + ": a block on " +
                                       device.name + " has at most " +
                                       std::to_string(device.max_shared_memory_opt_in));
  }
  return options.dynamic_shared_memory;
}

// Everything that the candidates' files have for this kernel and configuration, for the message of a failure.
std::vector<std::string> bundle_has(const std::vector<Entry>& candidates) {
  std::vector<std::string> out;
  std::vector<const File*> seen;
  for (const Entry& entry : candidates) {
    if (std::find(seen.begin(), seen.end(), entry.file.get()) != seen.end()) continue;
    seen.push_back(entry.file.get());
    bundle::Reader& reader = entry.file->reader();
    const bundle::Record& record = entry.record;
    const auto at = reader.lower_bound(record.kernel, record.specialization, "");
    if (!at || *at == reader.record_count()) continue;
    const auto add = [&](uint32_t, const std::string& target, const std::string& found_target) {
      out.push_back(has_text(target, found_target));
      return out.size() < kMostListed;
    };
    // What cannot be read is left out of a message that is about something else.
    static_cast<void>(reader.variants(*at, add));
  }
  return out;
}

Try<std::unique_ptr<Kernel>> load_one(const ModuleTable::Flight& flight, const Entry& entry, Driver& driver,
                                      const Device& device, ContextHandle context,
                                      const std::shared_ptr<PrimaryContext>& primary,
                                      const LoadOptions& options) {
  Result<uint32_t> request = shared_memory_to_request(entry.record, device, options);
  if (!request) return std::unexpected(Trouble(std::move(request).error()));
  ModuleTable& table = module_table();
  KC_ASSIGN(std::shared_ptr<Module> module, table.acquire(flight, driver, device, context, primary, entry));
  // From here on it is the kernel that lets go of the module.
  std::unique_ptr<Kernel> kernel;
  try {
    kernel = std::make_unique<Kernel>(entry, module, primary, nullptr);
  } catch (...) {
    table.release(module);
    throw;
  }
  Answer<FunctionHandle> function = module->function(entry.record.symbol, *request);
  if (!function) return std::unexpected(Trouble(std::move(function).error()));
  kernel->set_function(*function);
  return kernel;
}

}  // namespace

Kernel::Kernel(Entry entry, std::shared_ptr<Module> module, std::shared_ptr<PrimaryContext> primary,
               FunctionHandle function)
    : entry_(std::move(entry)),
      module_(std::move(module)),
      primary_(std::move(primary)),
      function_(function) {}

Kernel::~Kernel() {
  const ModuleTable::Flight flight(module_table());
  module_table().release(module_);
  primary_.reset();
}

FunctionHandle Kernel::function() const {
  return module_->is_unloaded() ? nullptr : function_;
}

Result<std::unique_ptr<Kernel>> load(const std::vector<Entry>& candidates, const Device& device,
                                     const LoadOptions& options) {
  KC_ASSIGN(Driver* const driver, kc::loader::driver(device.api));
  ModuleTable& table = module_table();
  const ModuleTable::Flight flight(table);
  std::shared_ptr<PrimaryContext> primary;
  ContextHandle context = nullptr;
  if (options.context == KC_CONTEXT_PRIMARY) {
    primary = table.primary(*driver, device);
    KC_ASSIGN(context, primary->get());
  } else {
    KC_ASSIGN(context, driver->context(device, options.context));
  }

  std::optional<Refusal> first;
  std::vector<Entry> refused;
  for (const Entry& entry : candidates) {
    Try<std::unique_ptr<Kernel>> loaded = load_one(flight, entry, *driver, device, context, primary, options);
    if (loaded) return std::move(*loaded);
    Trouble& trouble = loaded.error();
    if (Failure* const failure = std::get_if<Failure>(&trouble)) return std::unexpected(std::move(*failure));
    Refusal& refusal = std::get<Refusal>(trouble);
    if (!speaks_of_code(device.api, refusal)) {
      return std::unexpected(explain_refusal(refusal, entry, {entry}, device, bundle_has({entry})));
    }
    if (!first) first = std::move(refusal);
    refused.push_back(entry);
  }
  return std::unexpected(explain_refusal(*first, refused.front(), refused, device, bundle_has(refused)));
}

void unload_all() noexcept {
  module_table().unload_all();
}

}  // namespace kc::loader
