// How the C functions are made of C++ ones: no exception leaves, results are written on success alone.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kc/loader.h"
#include "loader/bundles.h"
#include "loader/failure.h"

struct kc_error {
  kc::loader::Failure failure;
};

namespace kc::loader {

/// Puts `failure` where the caller wants it and gives its status.
kc_status give_error(kc_error** error, Failure failure) noexcept;

/// Runs `body`, which returns Result<void>, and turns what it returns or throws into a status.
template <typename Body>
kc_status guarded(kc_error** error, Body&& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    Result<void> result = body();
    if (!result) return give_error(error, std::move(result).error());
    return KC_OK;
  } catch (const std::bad_alloc&) {
    return KC_ERROR_MEMORY;
  } catch (const std::exception& exception) {
    try {
      return give_error(error, {KC_ERROR_INTERNAL, std::string("a fault of kcload: ") + exception.what()});
    } catch (...) {
      return KC_ERROR_MEMORY;
    }
  } catch (...) {
    return KC_ERROR_INTERNAL;
  }
}

}  // namespace kc::loader

struct kc_bundle {
  explicit kc_bundle(kc::loader::Set all);

  kc::loader::Set set;
  std::vector<kc_file_info> infos;
  std::vector<std::vector<uint8_t>> signers;  // what infos point to
};

/// An entry with the texts that its kc_entry_info points to.
struct kc_entry {
  explicit kc_entry(kc::loader::Entry from);
  kc_entry(const kc_entry&) = delete;
  kc_entry& operator=(const kc_entry&) = delete;

  kc::loader::Entry entry;
  std::string unit;
  std::vector<kc_argument> arguments;
  std::vector<kc_metadata> metadata;
  kc_entry_info info{};
};
