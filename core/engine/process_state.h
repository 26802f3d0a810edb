// What of this process belongs to all of its threads and a compile must leave as it was.
#pragma once

#include <locale.h>
#include <signal.h>

#include <cstdint>
#include <string>

namespace kc::engine {

/// The working directory, the locale, and of the calling thread its locale, its signal mask and how it
/// rounds. Threads inherit theirs, so that one taken at the start holds for all.
class ProcessState {
 public:
  static ProcessState of_now();
  /// What differs now, as what somebody did: `changed the working directory of the engine`; empty when
  /// nothing does. Two system calls.
  std::string changes() const;

 private:
  std::string directory_;
  std::string locale_;
  locale_t thread_locale_ = nullptr;
  sigset_t signals_{};
  uint64_t arithmetic_ = 0;
};

}  // namespace kc::engine
