// Which artifact lies in which frame, and where (docs/bundle-format.md, "How kc lays them out").
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/digest.h"

namespace kc::bundle {

/// One record's artifact, as far as packing must know it.
struct PackItem {
  std::string_view family;
  std::string_view kernel;
  base::Digest digest;
  uint64_t size = 0;
};

struct PackedFrame {
  std::vector<uint32_t> items;  // those whose artifacts are stored here, in order; identical ones once
  uint64_t raw_size = 0;
};
struct PackPlace {
  uint32_t frame = 0;
  uint32_t offset = 0;
};
struct Packing {
  std::vector<PackedFrame> frames;
  std::vector<PackPlace> places;  // of each item
};

/// `items` stand in the order in which their artifacts are to lie. Preconditions: sizes and `frame_size` are
/// at most kMaxFrameBytes.
Packing pack(std::span<const PackItem> items, uint64_t frame_size);

}  // namespace kc::bundle
