// That every NULL and every nonsense is answered with an argument error or with nothing, and with no crash.
#include <doctest/doctest.h>

#include "bundles_support.h"

using namespace kc;
using namespace kc::loader::testing;

namespace {

struct Open {
  Folder folder;
  std::string path = folder / "b.kcb";
  BundleHandle bundle;
  EntryHandle entry;

  Open() {
    REQUIRE(bundle::testing::small_input().write(path));
    bundle = open_path(path).handle;
    entry = entry_at(bundle, 0).handle;
  }
};

}  // namespace

TEST_CASE("a NULL where a handle or a result is needed is an argument error") {
  const Open open;
  kc_bundle* bundle = reinterpret_cast<kc_bundle*>(1);
  kc_entry* entry = reinterpret_cast<kc_entry*>(1);
  kc_error* error = nullptr;
  const auto refused = [&](kc_status status) {
    const ErrorHandle owned(error);
    CHECK(kc_error_status(error) == KC_ERROR_ARGUMENT);
    CHECK(contains(kc_error_message(error), "NULL"));
    error = nullptr;
    return status == KC_ERROR_ARGUMENT;
  };
  CHECK(refused(kc_open(nullptr, nullptr, &bundle, &error)));
  CHECK(bundle == nullptr);
  CHECK(refused(kc_open(open.path.c_str(), nullptr, nullptr, &error)));
  CHECK(refused(kc_open_fd(0, nullptr, nullptr, &error)));
  bundle = reinterpret_cast<kc_bundle*>(1);
  CHECK(refused(kc_open_memory(nullptr, 10, nullptr, &bundle, &error)));
  CHECK(bundle == nullptr);
  CHECK(refused(kc_open_memory("x", 1, nullptr, nullptr, &error)));
  kc_bundle* const none[] = {open.bundle.get(), nullptr};
  CHECK(refused(kc_join(nullptr, 1, &bundle, &error)));
  CHECK(refused(kc_join(none, 2, &bundle, &error)));
  CHECK(refused(kc_join(none, 1, nullptr, &error)));
  CHECK(refused(kc_verify(nullptr, &error)));
  CHECK(refused(kc_entry_at(nullptr, 0, &entry, &error)));
  CHECK(entry == nullptr);
  CHECK(refused(kc_entry_at(open.bundle.get(), 0, nullptr, &error)));
  CHECK(refused(kc_find(nullptr, "matmul", "", "sm_90", &entry, &error)));
  CHECK(refused(kc_find(open.bundle.get(), nullptr, "", "sm_90", &entry, &error)));
  CHECK(refused(kc_find(open.bundle.get(), "matmul", "", nullptr, &entry, &error)));
  CHECK(refused(kc_find(open.bundle.get(), "matmul", "", "sm_90", nullptr, &error)));
  kc_fit fit = KC_FIT_NONE;
  CHECK(refused(kc_entry_fit(nullptr, "sm_90", &fit, &error)));
  CHECK(refused(kc_entry_fit(open.entry.get(), nullptr, &fit, &error)));
  CHECK(refused(kc_entry_fit(open.entry.get(), "sm_90", nullptr, &error)));
  char buffer[1];
  CHECK(refused(kc_entry_read(nullptr, buffer, sizeof buffer, &error)));
  CHECK(refused(kc_entry_read(open.entry.get(), nullptr, 1 << 20, &error)));
}

TEST_CASE("an error need not be asked for") {
  const Open open;
  kc_bundle* bundle = nullptr;
  kc_entry* entry = nullptr;
  CHECK(kc_open(nullptr, nullptr, &bundle, nullptr) == KC_ERROR_ARGUMENT);
  CHECK(kc_open("/nonexistent", nullptr, &bundle, nullptr) == KC_ERROR_IO);
  CHECK(kc_find(open.bundle.get(), "x", nullptr, "sm_90", &entry, nullptr) == KC_ERROR_NOT_FOUND);
  CHECK(kc_verify(open.bundle.get(), nullptr) == KC_OK);
}

TEST_CASE("a success sets the error to NULL") {
  const Open open;
  kc_error* error = reinterpret_cast<kc_error*>(1);
  kc_entry* entry = nullptr;
  CHECK(kc_entry_at(open.bundle.get(), 1, &entry, &error) == KC_OK);
  CHECK(error == nullptr);
  kc_entry_free(entry);
}

TEST_CASE("questions about nothing have empty answers and the release of nothing does nothing") {
  CHECK(kc_file_count(nullptr) == 0);
  CHECK(kc_file_get_info(nullptr, 0) == nullptr);
  CHECK(kc_entry_count(nullptr) == 0);
  CHECK(kc_entry_get_info(nullptr) == nullptr);
  CHECK(kc_entry_metadata(nullptr, "a", nullptr) == nullptr);
  const Open open;
  CHECK(kc_entry_metadata(open.entry.get(), nullptr, nullptr) == nullptr);
  kc_close(nullptr);
  kc_entry_free(nullptr);
  kc_error_free(nullptr);
  CHECK(std::string(kc_error_message(nullptr)) == "out of memory");
  CHECK(kc_error_status(nullptr) == KC_ERROR_MEMORY);
  CHECK(kc_error_driver_code(nullptr) == 0);
}

TEST_CASE("too small a buffer is refused and stays as it was") {
  const Open open;
  const size_t size = kc_entry_get_info(open.entry.get())->code_size;
  base::Bytes buffer(size + 8, 0xEE);
  kc_error* error = nullptr;
  CHECK(kc_entry_read(open.entry.get(), buffer.data(), size - 1, &error) == KC_ERROR_ARGUMENT);
  CHECK(contains(kc_error_message(error), "has 599 bytes"));
  kc_error_free(error);
  CHECK(buffer == base::Bytes(size + 8, 0xEE));
  // A larger one is written as far as the code goes.
  CHECK(kc_entry_read(open.entry.get(), buffer.data(), buffer.size(), nullptr) == KC_OK);
  CHECK(buffer[size] == 0xEE);
}

TEST_CASE("no more bundles are joined than the limits say") {
  const Open open;
  const std::vector<kc_bundle*> many(1024, open.bundle.get());
  const auto most = join(many);
  CHECK(most.status == KC_OK);
  CHECK(kc_file_count(most.handle.get()) == 1024);
  CHECK(join(std::vector<kc_bundle*>(1025, open.bundle.get())).status == KC_ERROR_ARGUMENT);
  CHECK(join({}).status == KC_ERROR_ARGUMENT);
  CHECK(join(std::vector<kc_bundle*>(64, most.handle.get())).status == KC_OK);
  CHECK(join(std::vector<kc_bundle*>(65, most.handle.get())).status == KC_ERROR_ARGUMENT);
}
