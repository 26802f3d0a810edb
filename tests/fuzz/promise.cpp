#include <cstdio>
#include <cstdlib>

#include "fuzz/fuzz.h"

namespace kc::fuzz {

void promise_broken(const char* promise, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: promise broken: %s\n", file, line, promise);
  std::abort();  // libFuzzer keeps the input of a process that aborts
}

}  // namespace kc::fuzz
