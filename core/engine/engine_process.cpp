#include "engine/engine_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>
#include <variant>

#include "util/spawn.h"
#include "util/text.h"

namespace kc::engine {
namespace {

using base::ErrorKind;
using base::Result;
using util::Clock;

// Starting takes 20 ms; a machine under extreme load may need a thousand times that.
constexpr auto kGreetingTimeout = std::chrono::seconds(30);
// The engine has only to kill its children and remove its folder; then it is killed itself. Ctrl-C promises a
// second.
constexpr auto kStopTimeout = std::chrono::milliseconds(700);
// Of what an engine printed, its end: the report of a sanitizer or an assertion with its stack is some KiB.
constexpr uint64_t kLogKept = 64U << 10;
// A chatty compiler prints a KiB a unit; the log lies in memory.
constexpr uint64_t kLogMost = 8U << 20;
// Read of one engine before others are heard: some tens of code objects.
constexpr int kReadRounds = 16;

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

// Whether the process ended by `deadline`; it is not reaped.
bool ends_by(const util::Peer& peer, Clock::time_point deadline) {
  pollfd ended{peer.pidfd.get(), POLLIN, 0};
  int ready;
  do ready = ::poll(&ended, 1, milliseconds_until(deadline));
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

Result<std::unique_ptr<EngineProcess>> EngineProcess::spawn(const std::string& program, const Setup& setup) {
  base::FileDescriptor log(memfd_create("kc-engine-log", MFD_CLOEXEC));
  if (!log) return base::fail_errno(ErrorKind::kEnvironment, "make", "the engine's log", errno);
  if (::mkdir(setup.work_folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::fail_errno(ErrorKind::kEnvironment, "make directory", setup.work_folder, errno);
  }
  util::ProcessSpec process;
  process.program = program;
  process.environment = {"LC_ALL=C"};
  process.directory = "/";
  auto peer = util::spawn_peer(process, log.get());
  if (!peer) {
    static_cast<void>(base::remove_tree(setup.work_folder));
    return std::unexpected(std::move(peer).error());
  }
  std::unique_ptr<EngineProcess> engine(
      new EngineProcess(std::move(*peer), std::move(log), setup.work_folder));
  KC_ASSIGN(const base::Bytes frame, encode_bounded(setup));
  engine->send(frame);
  return engine;
}

EngineProcess::EngineProcess(util::Peer peer, base::FileDescriptor log, std::string work_folder)
    : peer_(std::move(peer)),
      log_(std::move(log)),
      work_folder_(std::move(work_folder)),
      greeting_deadline_(Clock::now() + kGreetingTimeout) {}

void EngineProcess::send(base::ByteView frame) {
  unsent_.insert(unsent_.end(), frame.begin(), frame.end());
}

void EngineProcess::flush() {
  size_t at = 0;
  while (at < unsent_.size()) {
    const ssize_t put =
        ::send(peer_.socket.get(), unsent_.data() + at, unsent_.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && (errno == EAGAIN || errno == ENOBUFS)) break;
    // It is gone, which receive() tells when all that it said has been read.
    at = put < 0 ? unsent_.size() : at + static_cast<size_t>(put);
  }
  unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<ptrdiff_t>(at));
}

// False: nothing more can be read now.
bool EngineProcess::read_some() {
  std::array<uint8_t, 64 << 10> buffer;
  const ssize_t got = ::recv(peer_.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) {
    frames_.feed(base::ByteView(buffer.data(), static_cast<size_t>(got)));
    return true;
  }
  if (got < 0 && errno == EINTR) return true;
  closed_ = got == 0 || errno != EAGAIN;
  return false;
}

EngineProcess::Heard EngineProcess::receive() {
  Heard heard;
  bool is_more = true;
  for (int round = 0; round < kReadRounds && is_more; ++round) is_more = read_some();
  if (!is_more && !closed_ && ends_by(peer_, Clock::now())) {
    while (read_some()) {  // what it said last
    }
    closed_ = true;
  }
  heard.death = take_messages(heard);
  if (!heard.death && closed_) heard.death = death();
  return heard;
}

std::optional<Death> EngineProcess::take_messages(Heard& heard) {
  for (;;) {
    Result<std::optional<Message>> message = frames_.next();
    // A greeting that cannot be read is another build's too.
    if (!message) return killed(greeted_ ? Death::Cause::kDamage : Death::Cause::kForeign, "unknown");
    if (!*message) return std::nullopt;
    if (auto death = hear(std::move(**message), heard)) return death;
  }
}

std::optional<Death> EngineProcess::hear(Message message, Heard& heard) {
  if (!greeted_) {
    const auto* greeting = std::get_if<Greeting>(&message);
    if (greeting == nullptr) return killed(Death::Cause::kForeign, "unknown");
    if (greeting->protocol != kProtocolVersion || greeting->build_id != build_id()) {
      return killed(Death::Cause::kForeign, util::escape(greeting->build_id));
    }
    greeted_ = true;
  } else if (const auto* group = std::get_if<Group>(&message)) {
    if (group->begins) {
      groups_.insert(group->group);
    } else {
      groups_.erase(group->group);
    }
  } else if (std::holds_alternative<Started>(message) || std::holds_alternative<Done>(message)) {
    heard.messages.push_back(std::move(message));
  } else {
    return killed(Death::Cause::kDamage);  // only kc may say that
  }
  return std::nullopt;
}

// What the engine told and nobody has read: without it, groups that it began would be left running.
void EngineProcess::hear_the_rest() {
  while (read_some()) {
  }
  Heard dropped;
  for (;;) {
    Result<std::optional<Message>> message = frames_.next();
    if (!message || !*message) return;
    if (std::holds_alternative<Group>(**message)) static_cast<void>(hear(std::move(**message), dropped));
  }
}

std::string EngineProcess::log_end() const {
  struct stat status;
  if (fstat(log_.get(), &status) != 0) return {};
  const auto size = static_cast<uint64_t>(status.st_size);
  const uint64_t kept = std::min(size - std::min(size, log_trimmed_), kLogKept);
  const auto bytes =
      base::pread_exact(log_.get(), size - kept, static_cast<size_t>(kept), "the engine's log");
  return bytes ? util::escape(util::trim(base::as_text(*bytes)), true) : std::string();
}

void EngineProcess::trim_log() {
  struct stat status;
  if (fstat(log_.get(), &status) != 0) return;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size < log_trimmed_ + kLogMost) return;
  const uint64_t end = size - kLogKept;
  // The size stays, so that the engine goes on writing where it is.
  if (::fallocate(log_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(end)) == 0) {
    log_trimmed_ = end;
  }
}

Death EngineProcess::killed(Death::Cause cause, std::string detail) {
  Death out;
  out.cause = cause;
  out.detail = std::move(detail);
  out.log = log_end();
  util::kill_group(peer_.pid);
  stop();
  return out;
}

Death EngineProcess::silent() {
  return killed(Death::Cause::kSilent);
}

Death EngineProcess::death() {
  // The socket closes a moment before the process can be waited for. One that lives on without it is of no
  // use.
  if (!ends_by(peer_, Clock::now() + kStopTimeout)) return killed(Death::Cause::kDamage);
  Death out;
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(peer_.pidfd.get()), &info, WEXITED | WNOWAIT) == 0) {
    out.cause = info.si_code == CLD_EXITED ? Death::Cause::kExit : Death::Cause::kSignal;
    out.number = info.si_status;
  }
  out.log = log_end();
  stop();
  return out;
}

void EngineProcess::begin_stop() {
  if (peer_.pid <= 0 || stop_deadline_) return;
  ::shutdown(peer_.socket.get(), SHUT_WR);
  stop_deadline_ = Clock::now() + kStopTimeout;
}

void EngineProcess::stop() {
  if (peer_.pid <= 0) return;
  begin_stop();
  static_cast<void>(ends_by(peer_, *stop_deadline_));
  // Also what a compiler may have started in the engine's own group. The number is the engine's until it is
  // reaped.
  util::kill_group(peer_.pid);
  while (::waitpid(peer_.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  // What an engine that ended by itself was running is gone already; this is for one that was killed or
  // crashed.
  hear_the_rest();
  peer_.socket.reset();
  for (const pid_t group : groups_) util::kill_group(group);
  groups_.clear();
  peer_.pid = -1;
  static_cast<void>(base::remove_tree(work_folder_));
}

}  // namespace kc::engine
