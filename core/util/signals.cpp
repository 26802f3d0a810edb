#include "util/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <ctime>

namespace kc::util {
namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&set, signal);
  return set;
}

}  // namespace

SignalWatch::SignalWatch() {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_ = base::FileDescriptor(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

std::optional<int> SignalWatch::pending() {
  if (seen_) return seen_;
  const sigset_t set = watched();
  const timespec now{};
  const int signal = sigtimedwait(&set, nullptr, &now);
  if (signal > 0) seen_ = signal;
  return seen_;
}

}  // namespace kc::util
