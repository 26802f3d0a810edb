#include "engine/process_state.h"

#include <unistd.h>

#include <cfenv>
#include <climits>
#include <cstring>
#include <vector>

#include "util/text.h"

namespace kc::engine {
namespace {

std::string working_directory() {
  char buffer[PATH_MAX];
  return getcwd(buffer, sizeof buffer) != nullptr ? std::string(buffer) : std::string();
}

sigset_t blocked_signals() {
  sigset_t out{};
  sigemptyset(&out);
  pthread_sigmask(SIG_BLOCK, nullptr, &out);
  return out;
}

// Of a signal set the kernel fills in the bits of signals that there are; what lies behind them is as
// sigemptyset() left it.
bool is_same(const sigset_t& a, const sigset_t& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Rounding direction, flushing to zero and traps; not the flags that every division may raise.
uint64_t arithmetic_mode() {
  std::fenv_t now;
  if (std::fegetenv(&now) != 0) return 0;
#if defined(__x86_64__)
  constexpr uint32_t kFlags = 0x3F;  // of MXCSR: what has happened so far
  return uint64_t{now.__control_word} << 32 | (now.__mxcsr & ~kFlags);
#elif defined(__aarch64__)
  return now.__fpcr;
#else
#error "kc runs on x86-64 and aarch64 hosts"
#endif
}

}  // namespace

ProcessState ProcessState::of_now() {
  ProcessState out;
  out.directory_ = working_directory();
  out.locale_ = setlocale(LC_ALL, nullptr);
  out.thread_locale_ = uselocale(nullptr);
  out.signals_ = blocked_signals();
  out.arithmetic_ = arithmetic_mode();
  return out;
}

std::string ProcessState::changes() const {
  std::vector<std::string> changed;
  if (working_directory() != directory_) changed.emplace_back("the working directory");
  if (setlocale(LC_ALL, nullptr) != locale_ || uselocale(nullptr) != thread_locale_)
    changed.emplace_back("the locale");
  if (!is_same(blocked_signals(), signals_)) changed.emplace_back("the signal mask");
  if (arithmetic_mode() != arithmetic_) changed.emplace_back("the rounding mode");
  return changed.empty() ? std::string() : util::format("changed {} of the engine", util::listed(changed));
}

}  // namespace kc::engine
