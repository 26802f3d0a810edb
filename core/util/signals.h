// Signals as a descriptor: INT, TERM, HUP and PIPE are blocked and read where the program can act on them.
#pragma once

#include <signal.h>

#include <atomic>
#include <optional>

#include "base/files.h"

namespace kc::util {

/// Construct before any thread is started: threads inherit the blocked mask. Children do not
/// (util/process.h). A signal that is ignored when this is constructed stays ignored: that is the wish of
/// nohup and of shells that start a program in the background. The signals stay blocked after destruction,
/// since the program is about to end then.
class SignalWatch {
 public:
  SignalWatch();
  /// Readable when a signal has come; -1 when the kernel gave no descriptor (pending() still works).
  int descriptor() const { return fd_.get(); }
  /// The first signal that has come, now and for ever after. Never waits. From any thread.
  std::optional<int> pending();

 private:
  sigset_t watched_;
  base::FileDescriptor fd_;
  std::atomic<int> seen_{0};
};

}  // namespace kc::util
