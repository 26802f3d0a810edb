// The C functions of "Entries" in loader.h.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "loader/c_api.h"
#include "loader/text.h"

namespace {

// Selection data, which kc writes beside the manifest's own metadata (docs/bundle-format.md).
constexpr std::string_view kWhen = "when";

}  // namespace

kc_entry::kc_entry(kc::loader::Entry from) : entry(std::move(from)) {
  const kc::bundle::Record& record = entry.record;
  const kc::artifact::KernelFacts& facts = record.facts;
  unit = record.unit();
  info.unit = unit.c_str();
  info.kernel = record.kernel.c_str();
  info.configuration = record.specialization.c_str();
  info.target = record.target.c_str();
  info.found_target = record.found_target.c_str();
  info.backend = record.backend.c_str();
  info.entry = record.entry.c_str();
  info.symbol = record.symbol.c_str();
  info.is_default = record.is_default ? 1 : 0;
  info.compiler = record.compiler.c_str();
  info.compiler_version = record.compiler_version.c_str();
  info.toolkit = record.toolkit.c_str();
  info.lowest_driver = record.lowest_driver;
  std::ranges::copy(record.content_key.bytes, info.content_key);
  std::ranges::copy(record.artifact_digest.bytes, info.code_digest);
  info.code_size = record.artifact_size;

  info.registers = facts.registers;
  info.scalar_registers = facts.scalar_registers.value_or(KC_UNKNOWN);
  info.spills = facts.spills.value_or(KC_UNKNOWN);
  info.local_memory = facts.local_memory;
  info.shared_memory = facts.shared_memory;
  info.argument_bytes = facts.argument_bytes;
  for (const kc::artifact::Argument& argument : facts.arguments) {
    arguments.push_back({argument.offset, argument.size});
  }
  info.argument_count = arguments.size();
  info.arguments = arguments.data();
  std::ranges::copy(facts.required_block, info.required_block);
  info.max_threads = facts.max_threads;
  info.wave_size = facts.wave_size;

  for (const auto& [name, value] : record.metadata) {
    if (name == kWhen) {
      info.when = value.c_str();
    } else {
      metadata.push_back({name.c_str(), value.c_str(), value.size()});
    }
  }
  info.metadata_count = metadata.size();
  info.metadata = metadata.data();
}

using kc::loader::Entry;
using kc::loader::fail;
using kc::loader::guarded;
using kc::loader::Result;

namespace {

Result<kc::target::Target> target_of(const char* text) {
  if (text == nullptr) return fail(KC_ERROR_ARGUMENT, "`target` is NULL");
  kc::base::Result<kc::target::Target> target = kc::target::parse_target(text);
  if (!target) return fail(KC_ERROR_ARGUMENT, target.error().text());
  return std::move(*target);
}

}  // namespace

extern "C" {

size_t kc_entry_count(const kc_bundle* bundle) {
  return bundle != nullptr ? bundle->set.entry_count() : 0;
}

kc_status kc_entry_at(const kc_bundle* bundle, size_t index, kc_entry** entry, kc_error** error) {
  if (entry != nullptr) *entry = nullptr;
  return guarded(error, [&]() -> Result<void> {
    if (bundle == nullptr) return fail(KC_ERROR_ARGUMENT, "`bundle` is NULL");
    if (entry == nullptr) return fail(KC_ERROR_ARGUMENT, "there is no place for the entry: `entry` is NULL");
    KC_ASSIGN(Entry found, bundle->set.entry(index));
    *entry = std::make_unique<kc_entry>(std::move(found)).release();
    return {};
  });
}

kc_status kc_find(const kc_bundle* bundle, const char* kernel, const char* configuration, const char* target,
                  kc_entry** entry, kc_error** error) {
  if (entry != nullptr) *entry = nullptr;
  return guarded(error, [&]() -> Result<void> {
    if (bundle == nullptr) return fail(KC_ERROR_ARGUMENT, "`bundle` is NULL");
    if (kernel == nullptr) return fail(KC_ERROR_ARGUMENT, "`kernel` is NULL");
    if (entry == nullptr) return fail(KC_ERROR_ARGUMENT, "there is no place for the entry: `entry` is NULL");
    KC_ASSIGN(const kc::target::Target device, target_of(target));
    std::optional<std::string_view> pairs;
    if (configuration != nullptr) pairs = configuration;
    KC_ASSIGN(Entry found, bundle->set.best(kernel, pairs, device));
    *entry = std::make_unique<kc_entry>(std::move(found)).release();
    return {};
  });
}

const kc_entry_info* kc_entry_get_info(const kc_entry* entry) {
  return entry != nullptr ? &entry->info : nullptr;
}

const char* kc_entry_metadata(const kc_entry* entry, const char* name, size_t* size) {
  if (entry == nullptr || name == nullptr) return nullptr;
  const auto found = std::ranges::find_if(
      entry->metadata, [&](const kc_metadata& item) { return std::strcmp(item.name, name) == 0; });
  if (found == entry->metadata.end()) return nullptr;
  if (size != nullptr) *size = found->value_size;
  return found->value;
}

kc_status kc_entry_fit(const kc_entry* entry, const char* target, kc_fit* fit, kc_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (entry == nullptr) return fail(KC_ERROR_ARGUMENT, "`entry` is NULL");
    if (fit == nullptr) return fail(KC_ERROR_ARGUMENT, "there is no place for the answer: `fit` is NULL");
    KC_ASSIGN(const kc::target::Target device, target_of(target));
    // A record of a bundle has a target that can be read.
    KC_ASSIGN(const kc::target::Target code,
              kc::loader::from_base(kc::target::parse_target(entry->entry.record.found_target)));
    switch (kc::target::runs_on(code, device)) {
      case kc::target::Fit::kNo:
        *fit = KC_FIT_NONE;
        break;
      case kc::target::Fit::kByRule:
        *fit = KC_FIT_BY_RULE;
        break;
      case kc::target::Fit::kExact:
        *fit = KC_FIT_EXACT;
        break;
    }
    return {};
  });
}

kc_status kc_entry_read(const kc_entry* entry, void* buffer, size_t size, kc_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (entry == nullptr) return fail(KC_ERROR_ARGUMENT, "`entry` is NULL");
    if (buffer == nullptr) return fail(KC_ERROR_ARGUMENT, "`buffer` is NULL");
    if (size < entry->info.code_size) {
      return fail(KC_ERROR_ARGUMENT, "the buffer has " + std::to_string(size) + " bytes, the code of " +
                                         kc::loader::in_quotes(entry->unit) + " " +
                                         std::to_string(entry->info.code_size));
    }
    KC_ASSIGN(const kc::bundle::Code code, entry->entry.image());
    std::memcpy(buffer, code.bytes.data(), code.bytes.size());
    return {};
  });
}

void kc_entry_free(kc_entry* entry) {
  delete entry;
}

}  // extern "C"
