// Loaded code of a process: once for all who want it, in any order of threads, releases and failures.
#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "unit/loader/kernel_support.h"

namespace kc::loader {
namespace {

using testing::add_unit;
using testing::Bundle;
using testing::bytes_of;
using testing::check_nothing_left;
using testing::contains;
using testing::Input;
using testing::load_kernel;
using testing::Machine;
using testing::machine;
using testing::open_bytes;
using testing::Outcome;

Input three_kernels() {
  Input input;
  add_unit(input, "a", "sm_90", "sm_90a");
  add_unit(input, "b", "sm_90", "sm_90a");
  add_unit(input, "c", "sm_90", "sm_90a");
  return input;
}

// A code object that no compressor makes smaller: noise for code, and where the linker leaves gaps.
base::Bytes incompressible_hsaco(const std::string& symbol) {
  test::Hsaco hsaco;
  hsaco.target = "gfx942";
  hsaco.kernels[0].symbol = symbol;
  hsaco.kernels[0].text = bundle::testing::noise(1, 120'000);
  base::Bytes out = test::write_hsaco(hsaco);
  std::vector<bool> used(out.size());
  const auto use = [&](uint64_t offset, uint64_t size) {
    for (uint64_t i = offset; i < offset + size; ++i) used.at(i) = true;
  };
  Elf64_Ehdr header;
  std::memcpy(&header, out.data(), sizeof header);
  use(0, sizeof header);
  use(header.e_phoff, uint64_t{header.e_phnum} * header.e_phentsize);
  use(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, out.data() + header.e_shoff + uint64_t{i} * header.e_shentsize, sizeof section);
    if (section.sh_type != SHT_NOBITS) use(section.sh_offset, section.sh_size);
  }
  const base::Bytes filling = bundle::testing::noise(2, out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!used[i]) out[i] = filling[i];
  }
  return out;
}

void in_threads(int count, const std::function<void(int)>& body) {
  std::barrier start(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("one slow load serves thirty-two threads that want the same code") {
  const Machine& all = machine();
  all.tell_cuda("slow cuLibraryLoadData 100");
  const base::Bytes bytes = bytes_of(three_kernels());
  const Bundle bundle = open_bytes(bytes);
  std::vector<Outcome> outcomes(32);
  in_threads(32, [&](int i) { outcomes[static_cast<size_t>(i)] = load_kernel(bundle, "a", all.nvidia[0]); });
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome);
    CHECK(outcome.function() != nullptr);
    CHECK(outcome.function() == outcomes[0].function());
  }
  CHECK(all.cuda.count("cuLibraryLoadData") == 1);
  CHECK(all.cuda.count("cuLibraryGetKernel") == 1);
  CHECK(all.cuda.count("cuDevicePrimaryCtxRetain") == 1);
  outcomes.clear();
  CHECK(all.cuda.count("cuLibraryUnload") == 1);
  check_nothing_left(all);
}

TEST_CASE("different codes and devices are loaded at the same time") {
  const Machine& all = machine();
  all.tell_cuda("hold cuLibraryLoadData");
  const base::Bytes bytes = bytes_of(three_kernels());
  const Bundle bundle = open_bytes(bytes);
  std::vector<Outcome> outcomes(6);
  std::thread releasing([&] {
    all.cuda.await_waiting(6);
    all.cuda.release();
  });
  in_threads(6, [&](int i) {
    const char* const names[] = {"a", "b", "c"};
    outcomes[static_cast<size_t>(i)] =
        load_kernel(bundle, names[i % 3], all.nvidia[static_cast<size_t>(i / 3)]);
  });
  releasing.join();
  std::set<void*> functions;
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome);
    functions.insert(outcome.function());
  }
  CHECK(functions.size() == 6);
  outcomes.clear();
  check_nothing_left(all);
}

TEST_CASE("the same artifact is loaded once whatever names and bundles it is asked by") {
  const Machine& all = machine();
  Input input = three_kernels();
  // Another kernel of the same code, and another bundle that has it too.
  input.records[1].symbol = "a";
  input.artifacts[1] = input.artifacts[0];
  const base::Bytes bytes = bytes_of(input), other_bytes = bytes_of(three_kernels());
  const Bundle bundle = open_bytes(bytes), other = open_bytes(other_bytes);
  const Outcome a = load_kernel(bundle, "a", all.nvidia[0]);
  const Outcome b = load_kernel(bundle, "b", all.nvidia[0]);
  const Outcome again = load_kernel(other, "a", all.nvidia[0]);
  REQUIRE(a);
  REQUIRE(b);
  REQUIRE(again);
  CHECK(all.cuda.count("cuLibraryLoadData") == 1);
  CHECK(a.function() == b.function());
  CHECK(a.function() == again.function());
  // Each still knows what it was asked for as.
  CHECK(std::string(kc_entry_get_info(kc_kernel_entry(b.kernel.get()))->kernel) == "b");
  const Outcome elsewhere = load_kernel(bundle, "a", all.nvidia[1]);
  REQUIRE(elsewhere);
  CHECK(all.cuda.count("cuLibraryLoadData") == 2);
  CHECK(elsewhere.function() != a.function());
}

TEST_CASE("two functions of one code are got from one load and a missing one is its own failure") {
  const Machine& all = machine();
  test::Cubin cubin;
  cubin.kernels.resize(2);
  cubin.kernels[0].symbol = "first";
  cubin.kernels[1].symbol = "second";
  Input input = three_kernels();
  const char* const symbols[] = {"first", "second", "third"};
  for (size_t i = 0; i < 3; ++i) {
    input.records[i].symbol = symbols[i];
    input.artifacts[i] = test::write_cubin(cubin);
  }
  const base::Bytes bytes = bytes_of(input);
  const Bundle bundle = open_bytes(bytes);
  {
    // Alone, the missing one takes the load with it.
    const Outcome none = load_kernel(bundle, "c", all.nvidia[0]);
    CHECK(none.status == KC_ERROR_DRIVER);
    CHECK(none.driver_code == 500);
    CHECK(contains(none.message, "no function \"third\""));
    check_nothing_left(all);
  }
  Outcome a = load_kernel(bundle, "a", all.nvidia[0]);
  Outcome b = load_kernel(bundle, "b", all.nvidia[0]);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(a.function() != b.function());
  CHECK(all.cuda.count("modules") == 1);
  CHECK(load_kernel(bundle, "c", all.nvidia[0]).driver_code == 500);
  CHECK(all.cuda.count("modules") == 1);
  a.kernel.reset();
  CHECK(all.cuda.count("modules") == 1);
  CHECK(b.function() != nullptr);
  b.kernel.reset();
  check_nothing_left(all);
}

TEST_CASE("those who wait for a load that fails get its failure and the next call tries again") {
  const Machine& all = machine();
  const testing::CudaCalls calls(all.cuda);
  all.tell_cuda("hold cuLibraryLoadData; fail cuLibraryLoadData 2");
  const base::Bytes bytes = bytes_of(three_kernels());
  const Bundle bundle = open_bytes(bytes);
  kc_load_options options = KC_LOAD_OPTIONS_INIT;
  options.context = KC_CONTEXT_CURRENT;
  void* const context = calls.create(0);
  constexpr int kThreads = 16;
  std::vector<Outcome> outcomes(kThreads);
  std::thread releasing([&] {
    // All have asked for their context, which they do right before they look for the code.
    while (all.cuda.count("cuCtxGetDevice") != kThreads) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    all.cuda.release();
  });
  in_threads(kThreads, [&](int i) {
    void* popped = nullptr;
    CHECK(calls.push(context) == 0);
    outcomes[static_cast<size_t>(i)] = load_kernel(bundle, "a", all.nvidia[0], &options);
    CHECK(calls.pop(&popped) == 0);
  });
  releasing.join();
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.status == KC_ERROR_DRIVER);
    CHECK(outcome.driver_code == 2);
    CHECK(outcome.message == outcomes[0].message);
  }
  // A thread that came late enough has tried again by itself; they cannot all have.
  CHECK(all.cuda.count("cuLibraryLoadData") < kThreads);
  all.tell_cuda("");
  {
    const Outcome outcome = load_kernel(bundle, "a", all.nvidia[0]);
    CHECK(outcome);
  }
  calls.destroy(context);
  check_nothing_left(all);
}

TEST_CASE("kernels can be released in any order and after their bundle") {
  const Machine& all = machine();
  for (int order = 0; order < 6; ++order) {
    CAPTURE(order);
    const base::Bytes bytes = bytes_of(three_kernels());
    Bundle bundle = open_bytes(bytes);
    std::vector<Outcome> outcomes;
    for (const char* name : {"a", "b", "a"}) outcomes.push_back(load_kernel(bundle, name, all.nvidia[0]));
    if (order % 2 == 0) bundle.reset();
    for (const Outcome& outcome : outcomes) CHECK(outcome.function() != nullptr);
    CHECK(all.cuda.count("modules") == 2);
    const size_t first = static_cast<size_t>(order % 3);
    outcomes[first].kernel.reset();
    CHECK(all.cuda.count("modules") == (first == 1 ? 1 : 2));
    CHECK(all.cuda.count("primaries") == 1);
    outcomes[(first + 1) % 3].kernel.reset();
    outcomes[(first + 2) % 3].kernel.reset();
    check_nothing_left(all);
  }
}

TEST_CASE("after unloading all kernels have no function and are still there to be released") {
  const Machine& all = machine();
  const base::Bytes bytes = bytes_of(three_kernels());
  const Bundle bundle = open_bytes(bytes);
  Outcome a = load_kernel(bundle, "a", all.nvidia[0]);
  Outcome b = load_kernel(bundle, "b", all.nvidia[1]);
  REQUIRE(a);
  REQUIRE(b);
  kc_unload_all();
  CHECK(a.function() == nullptr);
  CHECK(b.function() == nullptr);
  check_nothing_left(all);
  CHECK(std::string(kc_entry_get_info(kc_kernel_entry(a.kernel.get()))->kernel) == "a");
  kc_unload_all();
  // What is loaded afterwards has nothing to do with what was.
  Outcome again = load_kernel(bundle, "a", all.nvidia[0]);
  REQUIRE(again);
  CHECK(again.function() != nullptr);
  a.kernel.reset();
  CHECK(again.function() != nullptr);
  CHECK(all.cuda.count("modules") == 1);
  CHECK(all.cuda.count("primaries") == 1);
  again.kernel.reset();
  b.kernel.reset();
  CHECK(all.cuda.count("cuLibraryUnload") == 3);
  check_nothing_left(all);
}

TEST_CASE("a load under way while all is unloaded ends as unloaded and leaves nothing") {
  for (const std::string function : {"cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction"}) {
    CAPTURE(function);
    const Machine& all = machine();
    const base::Bytes bytes = bytes_of(three_kernels());
    const Bundle bundle = open_bytes(bytes);
    Outcome held = load_kernel(bundle, "b", all.nvidia[0]);
    REQUIRE(held);
    all.tell_cuda("hold " + function);
    Outcome loader, waiter;
    std::thread loading([&] { loader = load_kernel(bundle, "a", all.nvidia[0]); });
    all.cuda.await_waiting(1);
    std::thread waiting([&] { waiter = load_kernel(bundle, "a", all.nvidia[0]); });
    std::atomic<bool> unloaded = false;
    std::thread unloading([&] {
      kc_unload_all();
      unloaded = true;
    });
    // What was loaded is gone at once; what is being loaded is waited for.
    while (held.function() != nullptr) std::this_thread::yield();
    CHECK_FALSE(unloaded);
    all.cuda.release();
    loading.join();
    waiting.join();
    unloading.join();
    CHECK(loader.status == KC_ERROR_UNLOADED);
    CHECK(contains(loader.message, "kc_unload_all"));
    // The other came before it or after it.
    CHECK((waiter.status == KC_ERROR_UNLOADED || waiter.function() != nullptr));
    waiter.kernel.reset();
    held.kernel.reset();
    check_nothing_left(all);
  }
}

TEST_CASE("loads and releases and unloading at the same time leave nothing behind") {
  const Machine& all = machine();
  const base::Bytes bytes = bytes_of(three_kernels());
  const Bundle bundle = open_bytes(bytes);
  const int rounds = std::getenv("KC_TEST_LONG") != nullptr ? 2000 : 150;
  std::atomic<int> loaded = 0, wrong = 0;
  in_threads(8, [&](int thread) {
    uint32_t state = static_cast<uint32_t>(thread) * 2654435761U + 1;
    std::vector<Outcome> held;
    for (int round = 0; round < rounds; ++round) {
      state = state * 1664525U + 1013904223U;
      const char* const names[] = {"a", "b", "c"};
      Outcome outcome = load_kernel(bundle, names[state >> 8 & 1], all.nvidia[state >> 16 & 1]);
      if (outcome) {
        ++loaded;
        held.push_back(std::move(outcome));
      } else if (outcome.status != KC_ERROR_UNLOADED) {
        ++wrong;
      }
      if (held.size() > 3) held.erase(held.begin());
      if (thread == 0 && round % 16 == 0) kc_unload_all();
    }
  });
  CHECK(wrong == 0);
  CHECK(loaded > rounds);
  check_nothing_left(all);
}

TEST_CASE("a primary context is shared with one that the caller has made current") {
  const Machine& all = machine();
  const testing::CudaCalls calls(all.cuda);
  const auto retain = all.cuda.get<int (*)(void**, int)>("cuDevicePrimaryCtxRetain");
  const auto let_go = all.cuda.get<int (*)(int)>("cuDevicePrimaryCtxRelease_v2");
  const base::Bytes bytes = bytes_of(three_kernels());
  const Bundle bundle = open_bytes(bytes);
  void* primary = nullptr;
  REQUIRE(retain(&primary, 0) == 0);
  REQUIRE(calls.push(primary) == 0);
  kc_load_options options = KC_LOAD_OPTIONS_INIT;
  options.context = KC_CONTEXT_CURRENT;
  Outcome current = load_kernel(bundle, "a", all.nvidia[0], &options);
  Outcome kept = load_kernel(bundle, "a", all.nvidia[0]);
  REQUIRE(current);
  REQUIRE(kept);
  CHECK(current.function() == kept.function());
  CHECK(all.cuda.count("cuLibraryLoadData") == 1);
  CHECK(calls.current_context() == primary);
  void* popped = nullptr;
  CHECK(calls.pop(&popped) == 0);
  current.kernel.reset();
  CHECK(let_go(0) == 0);
  // The kernel that was loaded into the primary context keeps it.
  CHECK(all.cuda.count("primaries") == 1);
  CHECK(all.cuda.count("modules") == 1);
  kept.kernel.reset();
  check_nothing_left(all);
}

TEST_CASE("each of the caller's contexts has code of its own") {
  const Machine& all = machine();
  const testing::CudaCalls calls(all.cuda);
  const base::Bytes bytes = bytes_of(three_kernels());
  const Bundle bundle = open_bytes(bytes);
  kc_load_options options = KC_LOAD_OPTIONS_INIT;
  options.context = KC_CONTEXT_CURRENT;
  void* const contexts[] = {calls.create(0), calls.create(0)};
  std::vector<Outcome> outcomes;
  void* popped = nullptr;
  for (void* const context : contexts) {
    REQUIRE(calls.push(context) == 0);
    outcomes.push_back(load_kernel(bundle, "a", all.nvidia[0], &options));
    CHECK(calls.pop(&popped) == 0);
  }
  CHECK(outcomes[0].function() != outcomes[1].function());
  CHECK(all.cuda.count("primaries") == 0);
  outcomes.clear();
  for (void* const context : contexts) calls.destroy(context);
  check_nothing_left(all);
}

TEST_CASE("a HIP runtime may read the image for as long as the code is loaded") {
  const Machine& all = machine();
  Input input;
  add_unit(input, "a", "gfx942", "gfx942");
  add_unit(input, "b", "gfx942", "gfx942");
  input.records[1].symbol = "a";
  input.artifacts[1] = input.artifacts[0];
  input.artifacts[0] = input.artifacts[1] = incompressible_hsaco("a");
  auto first_bytes = std::make_unique<base::Bytes>(bytes_of(input));
  // Stored as it is, so what kc_open_memory() hands out lies in the caller's memory.
  REQUIRE(!std::ranges::search(*first_bytes, input.artifacts[0]).empty());
  const base::Bytes second_bytes = *first_bytes;
  Bundle first = open_bytes(*first_bytes);
  const Bundle second = open_bytes(second_bytes);
  Outcome a = load_kernel(first, "a", all.amd[0]);
  REQUIRE(a);
  Outcome b = load_kernel(second, "a", all.amd[0]);
  REQUIRE(b);
  CHECK(all.hip.count("hipModuleLoadData") == 1);
  // The memory belongs to the first bundle and its kernels, and they are gone.
  a.kernel.reset();
  first.reset();
  std::fill(first_bytes->begin(), first_bytes->end(), uint8_t{0xEE});
  first_bytes.reset();
  CHECK(load_kernel(second, "b", all.amd[0]));
  CHECK(b.function() != nullptr);
  b.kernel.reset();
  // The stand-in has looked at the image once more.
  check_nothing_left(all);
}

TEST_CASE("damaged code does not load and does not stop the others") {
  const Machine& all = machine();
  Input input = three_kernels();
  input.options.frame_size = bundle::kLeastFrameSize;
  for (size_t i = 0; i < 3; ++i) {
    test::Cubin cubin;
    cubin.kernels[0].symbol = input.records[i].symbol;
    cubin.kernels[0].text = bundle::testing::noise(static_cast<uint32_t>(i), 5000);
    input.artifacts[i] = test::write_cubin(cubin);
  }
  base::Bytes bytes = bytes_of(input);
  const base::Bytes needle(input.artifacts[1].begin() + 2000, input.artifacts[1].begin() + 2032);
  const auto at = std::search(bytes.begin(), bytes.end(), needle.begin(), needle.end());
  REQUIRE(at != bytes.end());
  *at ^= 1;
  const Bundle bundle = open_bytes(bytes);
  CHECK(load_kernel(bundle, "a", all.nvidia[0]));
  const Outcome damaged = load_kernel(bundle, "b", all.nvidia[0]);
  CHECK(damaged.status == KC_ERROR_DAMAGED);
  CHECK(damaged.driver_code == 0);
  CHECK(load_kernel(bundle, "c", all.nvidia[0]));
  CHECK(all.cuda.count("cuLibraryLoadData") == 2);
  *at ^= 1;
  CHECK(load_kernel(bundle, "b", all.nvidia[0]));
  check_nothing_left(all);
}

}  // namespace kc::loader
