// What a fuzzer and the test of its corpus share. Each `<name>_fuzz.cpp` defines check() for one reader of
// bytes that may be hostile; libfuzzer_main.cpp drives it with libFuzzer, corpus_main.cpp with the files of
// corpus/<name>/.
#pragma once

#include "base/bytes.h"

namespace kc::fuzz {

/// Gives `input` to the reader and checks what the reader promises of any input; ends the process, with the
/// promise that was broken, when one does not hold. True when the input is whole: what kc's own writer could
/// have made, or a person meant.
bool check(base::ByteView input);

/// What KC_PROMISE does when its condition does not hold.
[[noreturn]] void promise_broken(const char* promise, const char* file, int line);

}  // namespace kc::fuzz

/// Also in builds without assertions.
#define KC_PROMISE(condition)                                     \
  do {                                                            \
    if (!(condition)) {                                           \
      ::kc::fuzz::promise_broken(#condition, __FILE__, __LINE__); \
    }                                                             \
  } while (false)
