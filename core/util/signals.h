// Signals as a descriptor: INT, TERM, HUP and PIPE are blocked and read where the program can act on them.
#pragma once

#include <optional>

#include "base/files.h"

namespace kc::util {

/// Construct before any thread is started: threads inherit the blocked mask. Children do not
/// (util/process.h). The signals stay blocked after destruction, since the program is about to end then.
class SignalWatch {
 public:
  SignalWatch();
  /// Readable when a signal has come; -1 when the kernel gave no descriptor (pending() still works).
  int descriptor() const { return fd_.get(); }
  /// The first signal that has come, now and for ever after. Never waits.
  std::optional<int> pending();

 private:
  base::FileDescriptor fd_;
  std::optional<int> seen_;
};

}  // namespace kc::util
