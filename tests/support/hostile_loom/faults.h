// What a source tells the library to do wrong. Lines `//! @name ...` of the file that defines the root,
// anywhere in it; a directive happens at the stage that its name ends in, `@segfault:link`, or when it
// compiles (`@segfault`). Stages: index (when the file is read; there the file need not define the root),
// link, compile, emit. In this order:
//
//   @once=FILE            only if FILE does not exist; it is made. Holds for all of a file's directives but
//   those
//                         about the output's facts
//   @only=TARGET          only for that target, may be given several times (compile and emit)
//   @when=KEY=VALUE       only when that configuration has that value (link, compile and emit)
//
//   @count=FILE           make FILE a byte longer
//   @stdout=T @stderr=T   print T
//   @sleep=MS             wait
//   @allocate=SIZE        take that much from the allocator that the caller gave, and give it back
//   @eat=SIZE             take that much from the system, write to it and keep it; where there is no more the
//   call
//                         ends with RESOURCE_EXHAUSTED
//   @dlopen=FILE          load it, as a compiler may load parts of its own late
//   @chdir @locale @sigmask @rounding   change what belongs to the process or the thread, and go on
//   @warn=CODE:TEXT       a warning at the directive's line
//   @fail=CODE:TEXT       the result is a failure with that error, at the directive's line
//   @status=N:TEXT        the call itself ends with that status
//   @throw                an exception leaves the C function
//   @corrupt=MS           from now on what other compiles make is wrong (well-formed, of other code),
//   finished or
//                         not; MS milliseconds later (default 100) as @segfault
//   @segfault @abort @overflow   end by that signal: SIGSEGV, SIGABRT, SIGSEGV at the end of the stack
//   @exit=N               exit(N)
//   @kill=N               end by that signal
//   @hang                 never come back
//
// About the output, without a stage (compile.h):
//   @registers=N @sgprs=N @spills=N @local=N @shared=N @wave=N @size=BYTES @symbol=NAME @processor=TARGET
//   @output=whole|none|empty|garbage|truncated
#pragma once

#include <map>
#include <string>

#include "support/hostile_loom/objects.h"

namespace kc::test::hostile {

enum class Stage : uint8_t { kIndex, kLink, kCompile, kEmit };

struct Occasion {
  const IndexFile& file;
  Stage stage = Stage::kCompile;
  Allocator allocator{};
  std::string target = {};
  const std::map<std::string, std::string>* values = nullptr;
};

/// Carries out what the file says; what it fails with goes into `result`.
Status act(const Occasion& occasion, Result& result);

/// True when the directives about the output hold on this occasion.
bool is_meant(const Directives& directives, const Occasion& occasion);

/// What @corrupt did: mixed into the code of every compile from then on.
uint64_t poison();

}  // namespace kc::test::hostile
