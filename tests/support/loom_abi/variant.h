// Which generation of Loom's C ABI a test library has: the same objects are linked once a variant, with
// another variant.cpp and another list of exports (exports/).
#pragma once

#include <cstdint>

namespace kc::test::loom {

struct Variant {
  int generation;  // 1 to 4
  uint32_t
      processor_mode;  // structure type of the processor mode extension that vendors' builds have; 0: none
};

extern const Variant kVariant;

/// The row that a caller of this generation reads of a diagnostic.
inline uint32_t diagnostic_size() {
  return kVariant.generation >= 4 ? 136 : kVariant.generation == 3 ? 104 : 80;
}

}  // namespace kc::test::loom
