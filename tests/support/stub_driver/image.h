// What a stand-in for a driver reads of a code object: enough to say no to what is none.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace kc::stub {

struct Image {
  bool valid = false;
  uint16_t machine = 0;  // 190 NVIDIA, 224 AMD
  uint32_t flags = 0;
  std::set<std::string> symbols;
};

/// `image` is a whole ELF file, as drivers take it: without a size.
Image read_image(const void* image);

}  // namespace kc::stub
