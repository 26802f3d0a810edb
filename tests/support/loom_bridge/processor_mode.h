// Processor modes as a vendor's build has them. The core knows none: the bridge remembers which profiles ask
// for CU mode and clears the kernel descriptor's WGP bit in the finished code object, which is the whole
// effect of the vendor's patch.
#pragma once

#include <vector>

#include "support/loom_bridge/core.h"

namespace kc::test::bridge {

/// Byte sequences of one result whose copies are to be in CU mode.
class CuSequences {
 public:
  void add(Handle sequence);
  void clear();
  static bool has(Handle sequence);

 private:
  std::vector<Handle> mine_;
};

/// Remembers whether a profile asks for CU mode; to be told before it is released.
void set_cu_profile(Handle profile, bool is_cu);
bool is_cu_profile(Handle profile);

/// Clears the WGP bit of each kernel descriptor.
void clear_wgp_mode(ByteSpan code_object);

}  // namespace kc::test::bridge
