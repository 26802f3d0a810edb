// Which artifact lies in which frame.
#include "bundle/packing.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/digest.h"

using namespace kc;
using namespace kc::bundle;

namespace {

PackItem item(std::string_view family, std::string_view kernel, const std::string& content, uint64_t size) {
  return {family, kernel, base::sha256(content), size};
}

// Frames as the numbers of their items, `0 1 | 2`.
std::string text(const Packing& packing) {
  std::string out;
  for (const PackedFrame& frame : packing.frames) {
    if (!out.empty()) out += "| ";
    for (const uint32_t i : frame.items) out += std::to_string(i) + " ";
  }
  return out;
}

}  // namespace

TEST_CASE("small kernels of one family share a frame") {
  const std::vector<PackItem> items = {item("sm_9", "a", "0", 100), item("sm_9", "b", "1", 100),
                                       item("sm_9", "c", "2", 100)};
  const Packing packing = pack(items, 4096);
  CHECK(text(packing) == "0 1 2 ");
  CHECK(packing.frames[0].raw_size == 128 + 128 + 100);
  CHECK(packing.places[2].offset == 256);
}

TEST_CASE("families do not share a frame") {
  const std::vector<PackItem> items = {item("sm_8", "a", "0", 100), item("sm_9", "a", "1", 100)};
  CHECK(text(pack(items, 4096)) == "0 | 1 ");
}

TEST_CASE("a kernel that does not fit whole begins a frame of its own") {
  const std::vector<PackItem> items = {item("sm_9", "a", "0", 3000), item("sm_9", "b", "1", 1000),
                                       item("sm_9", "b", "2", 1000), item("sm_9", "c", "3", 1000)};
  CHECK(text(pack(items, 4096)) == "0 | 1 2 3 ");
}

TEST_CASE("a kernel larger than a frame is cut between artifacts and its last frame is shared") {
  const std::vector<PackItem> items = {item("sm_9", "a", "0", 3000), item("sm_9", "a", "1", 3000),
                                       item("sm_9", "a", "2", 100), item("sm_9", "b", "3", 100)};
  CHECK(text(pack(items, 4096)) == "0 | 1 2 3 ");
}

TEST_CASE("an artifact larger than a frame lies alone") {
  const std::vector<PackItem> items = {item("sm_9", "a", "0", 100), item("sm_9", "a", "1", 10'000),
                                       item("sm_9", "a", "2", 100)};
  CHECK(text(pack(items, 4096)) == "0 | 1 | 2 ");
}

TEST_CASE("a frame may be filled to its last byte") {
  const std::vector<PackItem> items = {item("sm_9", "a", "0", 4032), item("sm_9", "b", "1", 64),
                                       item("sm_9", "c", "2", 1)};
  const Packing packing = pack(items, 4096);
  CHECK(text(packing) == "0 1 | 2 ");
  CHECK(packing.frames[0].raw_size == 4096);
}

TEST_CASE("identical artifacts take one place and no room") {
  const std::vector<PackItem> items = {item("sm_9", "a", "same", 2000), item("sm_9", "b", "same", 2000),
                                       item("sm_9", "b", "other", 2000), item("sm_9", "b", "same", 2000)};
  const Packing packing = pack(items, 4096);
  CHECK(text(packing) == "0 2 ");
  CHECK(packing.places[3].frame == packing.places[0].frame);
  CHECK(packing.places[3].offset == packing.places[0].offset);
}

TEST_CASE("a family of nothing but known artifacts makes no frame") {
  const std::vector<PackItem> items = {item("sm_8", "a", "same", 2000), item("sm_9", "a", "same", 2000)};
  CHECK(text(pack(items, 4096)) == "0 ");
}
