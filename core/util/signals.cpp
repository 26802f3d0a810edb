#include "util/signals.h"

#include <sys/signalfd.h>

#include <ctime>

namespace kc::util {

SignalWatch::SignalWatch() {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    // Linux queues a blocked signal even when it is ignored, so those must be left out.
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    sigaddset(&watched_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &watched_, nullptr);
  fd_ = base::FileDescriptor(signalfd(-1, &watched_, SFD_NONBLOCK | SFD_CLOEXEC));
}

std::optional<int> SignalWatch::pending() {
  if (const int seen = seen_; seen != 0) return seen;
  const timespec now{};
  const int signal = sigtimedwait(&watched_, nullptr, &now);
  if (signal > 0) {
    int none = 0;
    seen_.compare_exchange_strong(none, signal);
  }
  const int seen = seen_;
  return seen != 0 ? std::optional(seen) : std::nullopt;
}

}  // namespace kc::util
