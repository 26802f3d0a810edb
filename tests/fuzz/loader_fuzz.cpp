// libkcload's C functions over a bundle in memory: what opens can be looked through, found, read and
// verified, and these agree.
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "fuzz/repair.h"
#include "kc/loader.h"
#include "loader/configuration.h"

namespace kc::fuzz {
namespace {

// More entries than that say nothing new, and an input may have a hundred thousand.
constexpr size_t kMostEntries = 200;

// A call that failed, with its error.
kc_status failure(kc_status status, kc_error** place) {
  kc_error* error = *place;
  KC_PROMISE((status == KC_OK) == (error == nullptr));
  if (error != nullptr) {
    KC_PROMISE(kc_error_status(error) == status);
    KC_PROMISE(*kc_error_message(error) != '\0');
  }
  kc_error_free(error);
  return status;
}

void check_texts(const kc_entry_info& info) {
  for (const char* text :
       {info.unit, info.kernel, info.configuration, info.target, info.found_target, info.backend, info.entry,
        info.symbol, info.compiler, info.compiler_version, info.toolkit}) {
    KC_PROMISE(text != nullptr);
  }
  for (size_t i = 0; i < info.metadata_count; ++i) {
    KC_PROMISE(info.metadata[i].value[info.metadata[i].value_size] == '\0');
  }
  uint32_t end = 0;
  for (size_t i = 0; i < info.argument_count; ++i) end += info.arguments[i].size;
  static_cast<void>(end);  // each was read
}

// Whether the entry can be read, and with the bytes that it claims.
bool check_code(const kc_entry* entry) {
  const kc_entry_info& info = *kc_entry_get_info(entry);
  if (info.code_size > (64U << 20)) return false;
  base::Bytes code(info.code_size);
  kc_error* error = nullptr;
  const kc_status status = failure(kc_entry_read(entry, code.data(), code.size(), &error), &error);
  KC_PROMISE(status == KC_OK || status == KC_ERROR_DAMAGED);
  if (status != KC_OK) return false;
  KC_PROMISE(base::sha256(code) == base::digest_from(info.code_digest));
  return true;
}

// An entry is found by what it says of itself.
void check_found(const kc_bundle* bundle, const kc_entry* entry, bool whole) {
  const kc_entry_info& info = *kc_entry_get_info(entry);
  kc_entry* found = nullptr;
  kc_error* error = nullptr;
  const kc_status status =
      failure(kc_find(bundle, info.kernel, info.configuration, info.found_target, &found, &error), &error);
  if (whole) KC_PROMISE(status == KC_OK);
  if (status == KC_OK) {
    const kc_entry_info& other = *kc_entry_get_info(found);
    KC_PROMISE(std::string_view(other.kernel) == info.kernel);
    KC_PROMISE(std::string_view(other.configuration) == info.configuration);
    kc_fit fit = KC_FIT_NONE;
    KC_PROMISE(kc_entry_fit(found, info.found_target, &fit, nullptr) == KC_OK);
    KC_PROMISE(fit != KC_FIT_NONE);
  }
  kc_entry_free(found);
  failure(kc_find(bundle, info.kernel, nullptr, info.target, &found, &error), &error);
  kc_entry_free(found);
  failure(kc_find(bundle, info.symbol, info.entry, info.target, &found, &error), &error);
  kc_entry_free(found);
}

bool check_bundle(base::ByteView bytes) {
  if (bytes.empty()) return false;  // NULL is no memory
  kc_policy policy = KC_POLICY_INIT;
  policy.allow_partial = 1;
  kc_bundle* bundle = nullptr;
  kc_error* error = nullptr;
  const kc_status status =
      failure(kc_open_memory(bytes.data(), bytes.size(), &policy, &bundle, &error), &error);
  static MemoryFile file;
  file.fill(bytes);
  kc_bundle* by_descriptor = nullptr;
  KC_PROMISE(kc_open_fd(file.fd(), &policy, &by_descriptor, nullptr) == status);
  kc_close(by_descriptor);
  if (status != KC_OK) {
    KC_PROMISE(status == KC_ERROR_DAMAGED || status == KC_ERROR_VERSION);
    KC_PROMISE(bundle == nullptr);
    return false;
  }
  const kc_status verified = failure(kc_verify(bundle, &error), &error);
  KC_PROMISE(verified == KC_OK || verified == KC_ERROR_DAMAGED);
  const bool whole = verified == KC_OK;
  for (size_t i = 0; i < kc_entry_count(bundle) && i < kMostEntries; ++i) {
    kc_entry* entry = nullptr;
    const kc_status had = failure(kc_entry_at(bundle, i, &entry, &error), &error);
    KC_PROMISE(had == KC_OK || (had == KC_ERROR_DAMAGED && !whole));
    if (had != KC_OK) continue;
    check_texts(*kc_entry_get_info(entry));
    KC_PROMISE(check_code(entry) || !whole);
    check_found(bundle, entry, whole);
    kc_entry_free(entry);
  }
  kc_close(bundle);
  return whole;
}

// Canonical text stays as it is.
void check_configuration(std::string_view text) {
  const auto once = loader::canonical_configuration(text);
  if (!once) {
    KC_PROMISE(once.error().status == KC_ERROR_ARGUMENT);
    return;
  }
  const auto twice = loader::canonical_configuration(*once);
  KC_PROMISE(twice && *twice == *once);
}

}  // namespace

bool check(base::ByteView input) {
  check_configuration(base::as_text(input));
  const bool whole = check_bundle(input);
  if (!whole) check_bundle(repair_bundle(input));
  return whole;
}

}  // namespace kc::fuzz
