// What the loader's tests of bundles share: handles that end themselves, and a bundle of a few kernels.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "bundle/signature.h"
#include "kc/loader.h"
#include "loader/bundles.h"
#include "unit/bundle/bundle_support.h"

namespace kc::loader::testing {

using bundle::testing::contains;
using bundle::testing::Folder;
using bundle::testing::Image;
using bundle::testing::Input;
using bundle::testing::make_record;
using bundle::testing::read_all;
using bundle::testing::write_file;

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
using BundleHandle = std::unique_ptr<kc_bundle, Freer<kc_close>>;
using EntryHandle = std::unique_ptr<kc_entry, Freer<kc_entry_free>>;
using ErrorHandle = std::unique_ptr<kc_error, Freer<kc_error_free>>;

/// What a call answered: a handle, or a status with a text that fits it.
template <typename Handle>
struct Answer {
  Handle handle;
  kc_status status = KC_OK;
  std::string message;
};

template <typename Handle, typename Call>
Answer<Handle> ask(const Call& call) {
  typename Handle::pointer handle = nullptr;
  kc_error* error = nullptr;
  Answer<Handle> out;
  out.status = call(&handle, &error);
  out.handle.reset(handle);
  const ErrorHandle owned(error);
  CHECK((out.status == KC_OK) == (handle != nullptr));
  CHECK((out.status == KC_OK) == (error == nullptr));
  if (error != nullptr) {
    CHECK(kc_error_status(error) == out.status);
    CHECK(kc_error_driver_code(error) == 0);
    out.message = kc_error_message(error);
    CHECK(!out.message.empty());
    CHECK(out.message.back() != '\n');
  }
  return out;
}

inline Answer<BundleHandle> open_path(const std::string& path, const kc_policy* policy = nullptr) {
  return ask<BundleHandle>(
      [&](auto* bundle, auto* error) { return kc_open(path.c_str(), policy, bundle, error); });
}
inline Answer<BundleHandle> open_fd(int fd, const kc_policy* policy = nullptr) {
  return ask<BundleHandle>([&](auto* bundle, auto* error) { return kc_open_fd(fd, policy, bundle, error); });
}
inline Answer<BundleHandle> open_memory(base::ByteView bytes, const kc_policy* policy = nullptr) {
  return ask<BundleHandle>([&](auto* bundle, auto* error) {
    return kc_open_memory(bytes.data(), bytes.size(), policy, bundle, error);
  });
}
inline Answer<BundleHandle> join(const std::vector<kc_bundle*>& bundles) {
  return ask<BundleHandle>(
      [&](auto* set, auto* error) { return kc_join(bundles.data(), bundles.size(), set, error); });
}
inline Answer<EntryHandle> entry_at(const BundleHandle& bundle, size_t index) {
  return ask<EntryHandle>(
      [&](auto* entry, auto* error) { return kc_entry_at(bundle.get(), index, entry, error); });
}
inline Answer<EntryHandle> find(const BundleHandle& bundle, const char* kernel, const char* configuration,
                                const char* target) {
  return ask<EntryHandle>([&](auto* entry, auto* error) {
    return kc_find(bundle.get(), kernel, configuration, target, entry, error);
  });
}

/// The unit that is found, or the status and the message of the refusal.
inline std::string found(const BundleHandle& bundle, const char* kernel, const char* configuration,
                         const char* target) {
  const Answer<EntryHandle> answer = find(bundle, kernel, configuration, target);
  if (answer.status != KC_OK) return std::string(kc_status_name(answer.status)) + ": " + answer.message;
  return kc_entry_get_info(answer.handle.get())->unit;
}

struct Read {
  kc_status status = KC_OK;
  std::string message;
  base::Bytes bytes;
};
inline Read read(const kc_entry* entry) {
  Read out;
  out.bytes.assign(kc_entry_get_info(entry)->code_size, 0xEE);
  kc_error* error = nullptr;
  out.status = kc_entry_read(entry, out.bytes.data(), out.bytes.size(), &error);
  const ErrorHandle owned(error);
  if (error != nullptr) out.message = kc_error_message(error);
  if (out.status != KC_OK) {
    // Nothing of what was refused is handed out.
    CHECK(std::ranges::all_of(out.bytes, [](uint8_t byte) { return byte == 0xEE; }));
    out.bytes.clear();
  }
  return out;
}

/// As bundle::testing::small_input(), each kernel in a frame of its own.
inline Input small_frames() {
  Input input = bundle::testing::small_input();
  input.options.frame_size = bundle::kLeastFrameSize;
  for (base::Bytes& code : input.artifacts) {
    const base::Bytes more = bundle::testing::noise(code[0] * 256U + code[100], 3000);
    code.insert(code.end(), more.begin(), more.end());
  }
  return input;
}

/// The code that was put in for a unit.
inline const base::Bytes& code_of(const Input& input, const std::string& unit) {
  for (size_t i = 0; i < input.records.size(); ++i) {
    if (input.records[i].unit() == unit) return input.artifacts[i];
  }
  FAIL("no unit " << unit);
  return input.artifacts.front();
}

inline bundle::PrivateKey new_key() {
  auto key = bundle::PrivateKey::generate();
  REQUIRE(key);
  return std::move(*key);
}
inline void sign(const std::string& path, const bundle::PrivateKey& key) {
  auto reader = bundle::Reader::open(path);
  REQUIRE(reader);
  bundle::Signature signature{key.public_key(), {}};
  const auto bytes = key.sign(bundle::bundle_message(reader->header_digest()));
  REQUIRE(bytes);
  signature.bytes = *bytes;
  REQUIRE(reader->add_signature(signature));
}

}  // namespace kc::loader::testing
