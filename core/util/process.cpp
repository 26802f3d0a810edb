#include "util/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "util/process_memory.h"
#include "util/spawn.h"

namespace kc::util {
namespace {

using base::ErrorKind;

constexpr std::chrono::milliseconds kSampleEvery{50};
// How often a child is looked at where the kernel gives no pidfd (before Linux 5.3, some sandboxes).
constexpr std::chrono::milliseconds kLookEvery{5};
// How long a pipe may stay open after the group was killed. What was killed closes its end in a few
// milliseconds; what left the group (setsid) may hold it for ever and is not waited for.
constexpr std::chrono::milliseconds kPipeGrace{200};

// Our end of a pipe on which a child writes, and what of it is kept.
class Capture {
 public:
  static base::Result<std::pair<Capture, base::FileDescriptor>> create(size_t limit,
                                                                       std::string_view program) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return base::fail_errno(ErrorKind::kEnvironment, "make a pipe for", program, errno);
    }
    Capture capture;
    capture.fd_ = base::FileDescriptor(ends[0]);
    capture.limit_ = limit;
    base::FileDescriptor child(ends[1]);
    // Of our end alone: the child's is another file description and stays blocking.
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
      return base::fail_errno(ErrorKind::kEnvironment, "make a pipe for", program, errno);
    }
    return std::pair(std::move(capture), std::move(child));
  }

  int descriptor() const { return fd_.get(); }
  bool open() const { return static_cast<bool>(fd_); }
  std::string take() { return std::move(text_); }

  /// Reads what is there, but no more than a round's share, so that a child that never stops writing cannot
  /// keep the caller from its deadline.
  void drain() {
    char buffer[64U << 10];  // what a pipe holds
    for (int round = 0; round < 16 && open(); ++round) {
      const ssize_t got = ::read(fd_.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) {
        fd_.reset();
        return;
      }
      text_.append(buffer, std::min(static_cast<size_t>(got), limit_ - text_.size()));
    }
  }

 private:
  base::FileDescriptor fd_;
  size_t limit_ = 0;
  std::string text_;
};

// Waits until something can be read from one of them, `until` at most, and reads it.
void poll_and_drain(Capture& out, Capture& err, int pidfd, Clock::time_point until) {
  // poll() passes over entries of -1.
  std::array<pollfd, 3> entries = {
      {{out.descriptor(), POLLIN, 0}, {err.descriptor(), POLLIN, 0}, {pidfd, POLLIN, 0}}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  poll(entries.data(), entries.size(), static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
  out.drain();
  err.drain();
}

enum class Wait { kRunning, kEnded, kLost };

// Looks at, or reaps, a child by its own number: other children of this process are other threads' business.
Wait wait_for(pid_t pid, int flags, siginfo_t& info) {
  for (;;) {
    info.si_pid = 0;
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | flags) == 0) {
      return info.si_pid == pid ? Wait::kEnded : Wait::kRunning;
    }
    if (errno != EINTR) return Wait::kLost;
  }
}

}  // namespace

namespace {

// Starts the child and tells the hook, with the gate held over both.
base::Result<pid_t> start(const ProcessSpec& spec, const ProcessHooks& hooks, int out, int err) {
  std::shared_lock<std::shared_mutex> entered;
  if (hooks.gate != nullptr) {
    entered = hooks.gate->enter();
    if (hooks.gate->closed()) {
      return base::fail(ErrorKind::kEnvironment, spec.program + " is not started: the caller is ending");
    }
  }
  KC_ASSIGN(const pid_t pid, spawn(spec, {.out = out, .err = err}));
  if (hooks.started) hooks.started(pid);
  return pid;
}

}  // namespace

base::Result<ProcessResult> run_process(const ProcessSpec& spec, const ProcessHooks& hooks) {
  KC_ASSIGN(auto out, Capture::create(spec.output_limit, spec.program));
  KC_ASSIGN(auto err, Capture::create(spec.output_limit, spec.program));
  ProcessResult result;
  const Stopwatch watch;
  const Clock::time_point started = Clock::now();
  KC_ASSIGN(const pid_t pid, start(spec, hooks, out.second.get(), err.second.get()));
  out.second.reset();
  err.second.reset();

  const base::FileDescriptor pidfd = open_pidfd(pid);
  const Clock::duration look_every = pidfd ? kSampleEvery : kLookEvery;
  Clock::time_point next_sample = started + kSampleEvery;
  siginfo_t info{};
  Wait state = Wait::kRunning;
  for (;;) {
    Clock::time_point until = std::min(next_sample, Clock::now() + look_every);
    if (spec.timeout && !result.timed_out) until = std::min(until, started + *spec.timeout);
    poll_and_drain(out.first, err.first, pidfd.get(), until);
    state = wait_for(pid, WNOHANG | WNOWAIT, info);
    if (state != Wait::kRunning) break;
    const Clock::time_point now = Clock::now();
    if (now >= next_sample) {
      result.peak_bytes = std::max(result.peak_bytes, tree_peak_bytes(pid));
      next_sample = Clock::now() + kSampleEvery;
    }
    if (spec.timeout && !result.timed_out && now >= started + *spec.timeout) {
      result.timed_out = true;
      kill_group(pid);
    }
  }
  result.seconds = watch.seconds();
  // The leader is not reaped yet, so its number, which is the group's, cannot have become another's.
  if (state == Wait::kEnded) kill_group(pid);
  const Clock::time_point grace = Clock::now() + kPipeGrace;
  while ((out.first.open() || err.first.open()) && Clock::now() < grace) {
    poll_and_drain(out.first, err.first, -1, grace);
  }
  if (hooks.ended) hooks.ended(pid);
  if (state == Wait::kEnded) state = wait_for(pid, 0, info);
  if (state != Wait::kEnded) {
    return base::fail(ErrorKind::kEnvironment, "the exit status of " + spec.program + " was lost",
                      "SIGCHLD must not be ignored where kc is started");
  }
  if (info.si_code == CLD_EXITED) {
    result.exit_code = info.si_status;
  } else {
    result.signal = info.si_status;
  }
  result.out = out.first.take();
  result.err = err.first.take();
  return result;
}

base::Result<Peer> spawn_peer(const ProcessSpec& spec, int log) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::fail_errno(ErrorKind::kEnvironment, "make a socket for", spec.program, errno);
  }
  Peer peer;
  peer.socket = base::FileDescriptor(ends[0]);
  const base::FileDescriptor child(ends[1]);
  KC_ASSIGN(peer.pid, spawn(spec, {.out = log, .err = log, .socket = child.get()}));
  peer.pidfd = open_pidfd(peer.pid);
  if (!peer.pidfd) {
    const int error = errno;
    kill_group(peer.pid);
    siginfo_t info{};
    wait_for(peer.pid, 0, info);
    return base::fail_errno(ErrorKind::kEnvironment, "watch", spec.program, error);
  }
  return peer;
}

std::string host_name() {
  utsname name{};
  return uname(&name) == 0 ? std::string(name.nodename) : std::string();
}

base::Result<std::string> self_path() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return base::fail(ErrorKind::kEnvironment, "cannot read /proc/self/exe: " + error.message(),
                      "kc needs a mounted /proc");
  }
  return path.string();
}

}  // namespace kc::util
