// The C functions of "Bundles" in loader.h.
#include <algorithm>
#include <utility>

#include "loader/c_api.h"
#include "loader/text.h"

kc_bundle::kc_bundle(kc::loader::Set all) : set(std::move(all)) {
  for (const std::shared_ptr<kc::loader::File>& file : set.files()) {
    std::vector<uint8_t>& keys = signers.emplace_back();
    for (const kc::bundle::PublicKey& key : file->signers()) {
      keys.insert(keys.end(), key.bytes.begin(), key.bytes.end());
    }
  }
  for (size_t i = 0; i < set.files().size(); ++i) {
    kc::loader::File& file = *set.files()[i];
    kc_file_info& info = infos.emplace_back();
    info.path = file.path().c_str();
    info.name = file.info().name.c_str();
    info.release = file.info().release;
    info.partial = file.info().partial ? 1 : 0;
    info.subset = file.info().subset ? 1 : 0;
    info.entry_count = file.reader().record_count();
    info.signer_count = file.signers().size();
    info.signers = signers[i].empty() ? nullptr : signers[i].data();
  }
}

namespace kc::loader {
namespace {

constexpr size_t kMaxJoined = 1024;   // loader.h
constexpr size_t kMaxFiles = 65'536;  // loader.h: of sets of sets
constexpr size_t kShownFaults = 10;   // what a person reads; `kc verify` lists all

template <typename Open>
kc_status open_bundle(const kc_policy* policy, kc_bundle** bundle, kc_error** error,
                      const Open& open) noexcept {
  if (bundle != nullptr) *bundle = nullptr;
  return guarded(error, [&]() -> Result<void> {
    if (bundle == nullptr)
      return fail(KC_ERROR_ARGUMENT, "there is no place for the bundle: `bundle` is NULL");
    KC_ASSIGN(const Policy checked, policy_of(policy));
    KC_ASSIGN(std::shared_ptr<File> file, open(checked));
    *bundle = std::make_unique<kc_bundle>(Set({std::move(file)})).release();
    return {};
  });
}

Result<void> verify(const Set& set) {
  Failure failure;
  size_t count = 0;
  for (const std::shared_ptr<File>& file : set.files()) {
    for (const base::Error& fault : file->reader().verify_all()) {
      Failure one = failure_of(fault);
      if (count++ == 0) failure.status = one.status;
      if (count > kShownFaults) continue;
      if (count > 1) failure.message += '\n';
      failure.message += one.message;
    }
  }
  if (count == 0) return {};
  if (count > kShownFaults) failure.message += "\nand " + std::to_string(count - kShownFaults) + " more";
  return std::unexpected(std::move(failure));
}

}  // namespace
}  // namespace kc::loader

using kc::loader::fail;
using kc::loader::File;
using kc::loader::guarded;
using kc::loader::Policy;
using kc::loader::Result;
using kc::loader::Set;

extern "C" {

kc_status kc_open(const char* path, const kc_policy* policy, kc_bundle** bundle, kc_error** error) {
  return kc::loader::open_bundle(policy, bundle, error,
                                 [&](const Policy& checked) -> Result<std::shared_ptr<File>> {
                                   if (path == nullptr) return fail(KC_ERROR_ARGUMENT, "`path` is NULL");
                                   return File::open(std::string(path), checked);
                                 });
}

kc_status kc_open_fd(int fd, const kc_policy* policy, kc_bundle** bundle, kc_error** error) {
  return kc::loader::open_bundle(policy, bundle, error,
                                 [&](const Policy& checked) { return File::open(fd, checked); });
}

kc_status kc_open_memory(const void* data, size_t size, const kc_policy* policy, kc_bundle** bundle,
                         kc_error** error) {
  return kc::loader::open_bundle(
      policy, bundle, error, [&](const Policy& checked) -> Result<std::shared_ptr<File>> {
        if (data == nullptr) return fail(KC_ERROR_ARGUMENT, "`data` is NULL");
        return File::open(kc::base::ByteView(static_cast<const uint8_t*>(data), size), checked);
      });
}

kc_status kc_join(kc_bundle* const* bundles, size_t count, kc_bundle** set, kc_error** error) {
  if (set != nullptr) *set = nullptr;
  return guarded(error, [&]() -> Result<void> {
    if (set == nullptr) return fail(KC_ERROR_ARGUMENT, "there is no place for the set: `set` is NULL");
    if (bundles == nullptr) return fail(KC_ERROR_ARGUMENT, "`bundles` is NULL");
    if (count == 0 || count > kc::loader::kMaxJoined) {
      return fail(KC_ERROR_ARGUMENT, "`count` is " + std::to_string(count) + "; 1 to " +
                                         std::to_string(kc::loader::kMaxJoined) + " bundles can be joined");
    }
    std::vector<std::shared_ptr<File>> files;
    for (size_t i = 0; i < count; ++i) {
      if (bundles[i] == nullptr) return fail(KC_ERROR_ARGUMENT, "bundles[" + std::to_string(i) + "] is NULL");
      const std::vector<std::shared_ptr<File>>& more = bundles[i]->set.files();
      if (files.size() + more.size() > kc::loader::kMaxFiles) {
        return fail(KC_ERROR_ARGUMENT,
                    "the set would have more than " + std::to_string(kc::loader::kMaxFiles) + " files");
      }
      files.insert(files.end(), more.begin(), more.end());
    }
    *set = std::make_unique<kc_bundle>(Set(std::move(files))).release();
    return {};
  });
}

void kc_close(kc_bundle* bundle) {
  delete bundle;
}

kc_status kc_verify(const kc_bundle* bundle, kc_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (bundle == nullptr) return fail(KC_ERROR_ARGUMENT, "`bundle` is NULL");
    return kc::loader::verify(bundle->set);
  });
}

size_t kc_file_count(const kc_bundle* bundle) {
  return bundle != nullptr ? bundle->infos.size() : 0;
}

const kc_file_info* kc_file_get_info(const kc_bundle* bundle, size_t index) {
  return bundle != nullptr && index < bundle->infos.size() ? &bundle->infos[index] : nullptr;
}

}  // extern "C"
