#include "backend/loom/run/memory.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace {

using kc::backend::loom::counting_allocator;
using kc::backend::loom::CountScope;
using kc::backend::loom::MemoryCount;
using kc::backend::loom::shared_allocator;
namespace abi = kc::backend::loom::abi;

abi::Status run(const abi::Allocator& allocator, int command, size_t size, void** block) {
  return allocator.control(allocator.self, command, &size, block);
}

}  // namespace

TEST_CASE("the counting allocator counts what a thread holds and its peak") {
  MemoryCount count;
  void* kept = nullptr;
  {
    const CountScope scope(count);
    const abi::Allocator allocator = counting_allocator();
    REQUIRE(run(allocator, abi::kMalloc, 1000, &kept) == abi::kOk);
    CHECK(count.live >= 1000);
    void* block = nullptr;
    REQUIRE(run(allocator, abi::kCalloc, 5000, &block) == abi::kOk);
    for (size_t i = 0; i < 5000; ++i) REQUIRE(static_cast<char*>(block)[i] == 0);
    REQUIRE(run(allocator, abi::kRealloc, 20000, &block) == abi::kOk);
    CHECK(count.live >= 21000);
    REQUIRE(run(allocator, abi::kFree, 0, &block) == abi::kOk);
    CHECK(block == nullptr);
    CHECK(count.live >= 1000);
    CHECK(count.live < 5000);
    CHECK(count.peak >= 21000);
  }
  {
    const CountScope scope(count);  // the peak begins anew, from what is still held
    CHECK(count.peak == count.live);
    REQUIRE(run(counting_allocator(), abi::kFree, 0, &kept) == abi::kOk);
  }
  CHECK(count.live == 0);
}

TEST_CASE("what workers share is not counted") {
  MemoryCount count;
  const CountScope scope(count);
  void* block = nullptr;
  REQUIRE(run(shared_allocator(), abi::kMalloc, 4096, &block) == abi::kOk);
  CHECK(count.live == 0);
  REQUIRE(run(shared_allocator(), abi::kFree, 0, &block) == abi::kOk);
}

TEST_CASE("out of memory is a status and changes nothing") {
  MemoryCount count;
  const CountScope scope(count);
  void* block = nullptr;
  // More than any machine has; sanitizers would end the program at it unless told to answer as malloc does.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(abi::code_of(run(counting_allocator(), abi::kMalloc, SIZE_MAX / 2, &block)) ==
        abi::kResourceExhausted);
#endif
  CHECK(run(counting_allocator(), 99, 1, &block) != abi::kOk);
  CHECK(block == nullptr);
  CHECK(count.live == 0);
}
