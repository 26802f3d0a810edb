#include "engine/exit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

namespace kc::engine {

void end_at_once_on_exit() {
  // glibc's: unlike atexit() it passes the code. Handlers run in reverse order, this one first.
  on_exit([](int code, void*) { _exit(code); }, nullptr);
}

void end_soon() {
  // The default action of SIGALRM ends the process; a compiler may have changed that.
  signal(SIGALRM, SIG_DFL);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  const itimerval half_a_second{{0, 0}, {0, 500'000}};
  setitimer(ITIMER_REAL, &half_a_second, nullptr);
}

}  // namespace kc::engine
