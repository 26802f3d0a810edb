#include "engine/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "util/text.h"

namespace kc::engine {
namespace {

using base::ErrorKind;
using base::Result;

// Starting takes 20 ms; a machine under extreme load may need a thousand times that.
constexpr auto kGreetingTimeout = std::chrono::seconds(30);
// The engine has only to kill its children and remove its folder; then it is killed itself. Ctrl-C promises a
// second.
constexpr auto kStopTimeout = std::chrono::milliseconds(700);
constexpr size_t kLogKept = 4096;  // of the engine's stderr, its end, for the message of its death

int milliseconds(util::Nanoseconds time) {
  const auto count = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  return static_cast<int>(std::clamp<int64_t>(count, 0, 24 * 3600 * 1000));
}

std::string how_it_ended(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return util::format("ended with exit code {}", info.si_status);
  const char* name = sigabbrev_np(info.si_status);
  return name != nullptr ? util::format("was ended by SIG{}", name)
                         : util::format("was ended by signal {}", info.si_status);
}

}  // namespace

std::string engine_path(const std::string& program) {
  return base::join_path(base::parent_path(base::parent_path(program)), "libexec/kc/kc-engine");
}

Result<std::unique_ptr<Supervisor>> Supervisor::start(const EngineSpec& spec) {
  base::FileDescriptor log(memfd_create("kc-engine-log", MFD_CLOEXEC));
  if (!log) return base::fail_errno(ErrorKind::kEnvironment, "make", "the engine's log", errno);
  util::ProcessSpec process;
  process.program = spec.program;
  process.environment = {"LC_ALL=C"};
  process.directory = "/";
  KC_ASSIGN(util::Peer peer, util::spawn_peer(process, log.get()));
  std::unique_ptr<Supervisor> supervisor(
      new Supervisor(std::move(peer), std::move(log), spec.setup.work_folder));
  KC_TRY(supervisor->greet(spec.setup));
  return supervisor;
}

Supervisor::Supervisor(util::Peer peer, base::FileDescriptor log, std::string work_folder)
    : peer_(std::move(peer)), log_(std::move(log)), work_folder_(std::move(work_folder)) {}

Supervisor::~Supervisor() {
  stop();
}

Result<void> Supervisor::greet(const Setup& setup) {
  const auto deadline = util::Clock::now() + kGreetingTimeout;
  for (;;) {
    const Result<std::optional<Message>> message = frames_.next();
    if (!message || *message) {
      // A greeting that cannot be read is another build's too.
      const Greeting* greeting = message ? std::get_if<Greeting>(&**message) : nullptr;
      if (greeting == nullptr || greeting->protocol != kProtocolVersion || greeting->build_id != build_id()) {
        return base::fail(
            ErrorKind::kEnvironment,
            util::format("kc-engine is from another build ({}) than kc ({})",
                         greeting != nullptr ? util::escape(greeting->build_id) : "unknown", build_id()),
            "install both programs again");
      }
      return tell(setup);
    }
    pollfd waiting{peer_.socket.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, milliseconds(deadline - util::Clock::now()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return base::fail(ErrorKind::kEnvironment, "kc-engine does not answer");
    KC_TRY(read_available());
  }
}

// Of an engine that is gone, how it ended says more than that nothing can be written to it.
Result<void> Supervisor::tell(const Message& message) {
  auto sent = send(peer_.socket.get(), message);
  if (!sent && sent.error().sys_errno != 0) return std::unexpected(death("closed its connection"));
  return sent;
}

Result<void> Supervisor::submit(const Job& job) {
  return tell(job);
}

void Supervisor::release(const base::Digest& key) {
  // A failure means that the engine is gone, which wait() reports; the kernel has freed its locks.
  static_cast<void>(send(peer_.socket.get(), Release{key}));
}

Result<void> Supervisor::read_available() {
  std::array<uint8_t, 64 << 10> buffer;
  const ssize_t got = ::recv(peer_.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) {
    frames_.feed(base::ByteView(buffer.data(), static_cast<size_t>(got)));
    return {};
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  return std::unexpected(death("closed its connection"));
}

Result<Supervisor::Heard> Supervisor::wait(util::Nanoseconds timeout, int wake) {
  Heard heard;
  std::array<pollfd, 2> waiting{pollfd{peer_.socket.get(), POLLIN, 0}, pollfd{wake, POLLIN, 0}};
  const int ready = ::poll(waiting.data(), wake >= 0 ? 2 : 1, milliseconds(timeout));
  if (ready <= 0) return heard;  // time is over, or a signal: the caller looks again
  heard.woken = wake >= 0 && waiting[1].revents != 0;
  if (waiting[0].revents == 0) return heard;
  KC_TRY(read_available());
  for (;;) {
    KC_ASSIGN(std::optional<Message> message, frames_.next());
    if (!message) return heard;
    if (const auto* started = std::get_if<Started>(&*message)) {
      any_started_ = true;
      heard.started.push_back(*started);
    } else if (auto* done = std::get_if<Done>(&*message)) {
      any_started_ = true;
      heard.done.push_back(std::move(*done));
    } else if (const auto* group = std::get_if<Group>(&*message)) {
      hear(*group);
    } else {
      return base::fail(ErrorKind::kInternal, "the engine sent a message that only kc may send");
    }
  }
}

void Supervisor::hear(const Group& group) {
  if (group.begins) {
    groups_.insert(group.group);
  } else {
    groups_.erase(group.group);
  }
}

// What the engine told and nobody has read: without it, groups that it began would be left running.
void Supervisor::hear_the_rest() {
  std::array<uint8_t, 64 << 10> buffer;
  for (;;) {
    const ssize_t got = ::recv(peer_.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    frames_.feed(base::ByteView(buffer.data(), static_cast<size_t>(got)));
  }
  for (;;) {
    const auto message = frames_.next();
    if (!message || !*message) return;
    if (const auto* group = std::get_if<Group>(&**message)) hear(*group);
  }
}

std::string Supervisor::log_text() const {
  struct stat status;
  if (fstat(log_.get(), &status) != 0) return {};
  const auto size = static_cast<size_t>(status.st_size);
  const size_t kept = std::min(size, kLogKept);
  const auto bytes = base::pread_exact(log_.get(), size - kept, kept, "the engine's log");
  return bytes ? util::escape(util::trim(base::as_text(*bytes)), true) : std::string();
}

base::Error Supervisor::death(std::string_view what) {
  siginfo_t info{};
  std::string how(what);
  pollfd ended{peer_.pidfd.get(), POLLIN, 0};
  // The socket closes a moment before the process can be waited for.
  if (::poll(&ended, 1, milliseconds(kStopTimeout)) > 0 &&
      ::waitid(P_PIDFD, static_cast<id_t>(peer_.pidfd.get()), &info, WEXITED | WNOWAIT) == 0) {
    how = how_it_ended(info);
  }
  const std::string log = log_text();
  base::Error error;
  error.kind = any_started_ ? ErrorKind::kInternal : ErrorKind::kEnvironment;
  error.message = "kc-engine " + how + (log.empty() ? std::string() : ": " + log);
  return error;
}

void Supervisor::stop() {
  if (peer_.pid <= 0) return;
  ::shutdown(peer_.socket.get(), SHUT_WR);
  pollfd ended{peer_.pidfd.get(), POLLIN, 0};
  const auto deadline = util::Clock::now() + kStopTimeout;
  int ready;
  do ready = ::poll(&ended, 1, milliseconds(deadline - util::Clock::now()));
  while (ready < 0 && errno == EINTR);
  if (ready <= 0) ::kill(-peer_.pid, SIGKILL);
  while (::waitpid(peer_.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  // What an engine that ended by itself was running is gone already; this is for one that was killed or
  // crashed.
  hear_the_rest();
  peer_.socket.reset();
  for (const pid_t group : groups_) ::kill(-group, SIGKILL);
  groups_.clear();
  peer_.pid = -1;
  if (!work_folder_.empty()) static_cast<void>(base::remove_tree(work_folder_));
}

}  // namespace kc::engine
