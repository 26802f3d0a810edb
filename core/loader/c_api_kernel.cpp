#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "loader/c_api_device.h"
#include "loader/refusal.h"
#include "target/target.h"

namespace loader = kc::loader;
using loader::fail;
using loader::guarded;
using loader::Result;

namespace {

Result<loader::LoadOptions> options_of(const kc_load_options* options) {
  kc_load_options known = KC_LOAD_OPTIONS_INIT;
  if (options != nullptr) {
    if (options->struct_size < sizeof options->struct_size) {
      return fail(KC_ERROR_ARGUMENT,
                  "kc_load_options.struct_size is not set: begin with KC_LOAD_OPTIONS_INIT");
    }
    // A smaller struct is that of an older caller. What a newer one has behind it must be zero: a wish that
    // this library does not know may not be dropped in silence.
    const size_t size = options->struct_size;
    const unsigned char* const bytes = reinterpret_cast<const unsigned char*>(options);
    for (size_t i = sizeof known; i < size; ++i) {
      if (bytes[i] != 0) {
        return fail(KC_ERROR_ARGUMENT,
                    "kc_load_options has a field that this library does not know, set at byte " +
                        std::to_string(i) + ": a newer libkcload is needed");
      }
    }
    std::memcpy(&known, options, std::min(size, sizeof known));
  }
  // Read as a number: the caller may have put anything there.
  int context = 0;
  static_assert(sizeof context == sizeof known.context);
  std::memcpy(&context, &known.context, sizeof context);
  if (context != KC_CONTEXT_PRIMARY && context != KC_CONTEXT_CURRENT) {
    return fail(KC_ERROR_ARGUMENT, "kc_load_options.context is " + std::to_string(context) +
                                       ": neither KC_CONTEXT_PRIMARY nor KC_CONTEXT_CURRENT");
  }
  return loader::LoadOptions{static_cast<kc_context>(context), known.dynamic_shared_memory};
}

template <typename Handle>
Result<void> not_null(const char* function, const char* name, const Handle* handle) {
  if (handle != nullptr) return {};
  return fail(KC_ERROR_ARGUMENT, std::string(function) + ": " + name + " is NULL");
}

}  // namespace

extern "C" {

kc_status kc_load(const kc_bundle* bundle, const char* kernel, const char* configuration,
                  const kc_device* device, const kc_load_options* options, kc_kernel** loaded,
                  kc_error** error) {
  return guarded(error, [&]() -> Result<void> {
    KC_TRY(not_null("kc_load", "loaded", loaded));
    *loaded = nullptr;
    KC_TRY(not_null("kc_load", "bundle", bundle));
    KC_TRY(not_null("kc_load", "kernel", kernel));
    KC_TRY(not_null("kc_load", "device", device));
    KC_ASSIGN(const loader::LoadOptions chosen, options_of(options));
    std::optional<std::string_view> wanted;
    if (configuration != nullptr) wanted = configuration;
    KC_ASSIGN(const std::vector<loader::Entry> candidates,
              bundle->set.candidates(kernel, wanted, device->device.target));
    KC_ASSIGN(std::unique_ptr<loader::Kernel> made, loader::load(candidates, device->device, chosen));
    *loaded = new kc_kernel(std::move(made));
    return {};
  });
}

kc_status kc_load_entry(const kc_entry* entry, const kc_device* device, const kc_load_options* options,
                        kc_kernel** loaded, kc_error** error) {
  return guarded(error, [&]() -> Result<void> {
    KC_TRY(not_null("kc_load_entry", "loaded", loaded));
    *loaded = nullptr;
    KC_TRY(not_null("kc_load_entry", "entry", entry));
    KC_TRY(not_null("kc_load_entry", "device", device));
    KC_ASSIGN(const loader::LoadOptions chosen, options_of(options));
    const kc::bundle::Record& record = entry->entry.record;
    const auto found = kc::target::parse_target(record.found_target);
    if (!found || kc::target::runs_on(*found, device->device.target) == kc::target::Fit::kNo) {
      return std::unexpected(loader::explain_no_code(record.kernel, record.specialization,
                                                     device->device.target, {record.found_target}));
    }
    KC_ASSIGN(std::unique_ptr<loader::Kernel> made, loader::load({entry->entry}, device->device, chosen));
    *loaded = new kc_kernel(std::move(made));
    return {};
  });
}

void* kc_kernel_function(const kc_kernel* kernel) {
  return kernel != nullptr ? kernel->kernel->function() : nullptr;
}

const kc_entry* kc_kernel_entry(const kc_kernel* kernel) {
  return kernel != nullptr ? &kernel->entry : nullptr;
}

void kc_kernel_release(kc_kernel* kernel) {
  delete kernel;
}

void kc_unload_all(void) {
  loader::unload_all();
}

}  // extern "C"
