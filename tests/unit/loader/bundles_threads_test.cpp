// That one handle serves any number of threads.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "bundles_support.h"

using namespace kc;
using namespace kc::loader::testing;

TEST_CASE("32 threads find and read and verify over one handle") {
  const Folder folder;
  const Input input = small_frames();
  REQUIRE(input.write(folder / "b.kcb"));
  const base::Bytes bytes = read_all(folder / "b.kcb");
  const auto by_path = open_path(folder / "b.kcb");
  const auto from_memory = open_memory(bytes);
  const auto set = join({by_path.handle.get(), from_memory.handle.get()});
  REQUIRE(set.status == KC_OK);
  const char* const targets[] = {"sm_90", "sm_80", "gfx1151"};
  std::atomic<int> wrong = 0;  // doctest's checks are for one thread
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 32; ++t) {
    threads.emplace_back([&, t] {
      const kc_bundle* bundles[] = {by_path.handle.get(), from_memory.handle.get(), set.handle.get()};
      for (unsigned i = 0; i < 40; ++i) {
        const kc_bundle* bundle = bundles[(t + i) % 3];
        kc_entry* entry = nullptr;
        const char* kernel = i % 2 == 0 ? "matmul" : "vec_add";
        const char* target = targets[(t * 7 + i) % 3];
        if (kc_find(bundle, kernel, i % 2 == 0 ? nullptr : "", target, &entry, nullptr) != KC_OK) {
          ++wrong;
          continue;
        }
        const kc_entry_info* info = kc_entry_get_info(entry);
        base::Bytes code(info->code_size);
        if (kc_entry_read(entry, code.data(), code.size(), nullptr) != KC_OK ||
            base::sha256(code) != base::digest_from(info->code_digest) ||
            std::string(info->target) != target) {
          ++wrong;
        }
        kc_entry_free(entry);
        kc_error* error = nullptr;
        if (kc_find(bundle, "nothing", nullptr, target, &entry, &error) != KC_ERROR_NOT_FOUND) ++wrong;
        kc_error_free(error);
        if (i == t && kc_verify(bundle, nullptr) != KC_OK) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
