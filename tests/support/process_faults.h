// Ways for a stand-in compiler to end badly, shared by the program and the library.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

namespace kc::test {

/// To be called before an end by that signal: no core file, and no handler of a sanitizer, which would turn
/// it into an exit.
inline void expect_end_by(int number) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(number, SIG_DFL);
}

// Not optimised into a loop: each level's bytes are used after the next returned. Less than a page a level,
// so that none steps over the page that guards the stack, and on the real stack, not on a sanitizer's.
__attribute__((noinline, no_sanitize("address"))) inline int recurse(int level) {
  volatile char frame[1024];
  frame[level % 1024] = static_cast<char>(level);
  const int below = level < 0 ? 0 : recurse(level + 1);
  return below + frame[level % 1024];
}

/// Ends by SIGSEGV at the end of the calling thread's stack.
[[noreturn]] inline void overflow_stack() {
  expect_end_by(SIGSEGV);
  _Exit(recurse(0));
}

}  // namespace kc::test
