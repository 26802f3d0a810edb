// What libFuzzer calls (https://llvm.org/docs/LibFuzzer.html); its own main() is linked with it.
#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kc::fuzz::check({data, size});
  return 0;
}
