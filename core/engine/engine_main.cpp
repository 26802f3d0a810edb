// kc-engine: the child program in which compilers run. Talks to kc over descriptor 3 (engine/wire.h) and is
// of no use by itself.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "engine/executor.h"
#include "engine/exit.h"
#include "engine/wire.h"
#include "engine/worker.h"

namespace {

namespace engine = kc::engine;

constexpr int kSocket = 3;
constexpr int kExitUsage = 2;
constexpr int kExitInternal = 4;

// Reads frames until kc closes the socket. Runs in the main thread, which computes nothing and so sees the
// end at once; compilers run on the executor's threads.
class Engine {
 public:
  int serve() {
    std::array<uint8_t, 64 << 10> buffer;
    for (;;) {
      // A thread that waits in read() is also woken by each answer that kc takes out of the connection, since
      // that makes room in it (unix_write_space() of Linux); one in poll() is not.
      pollfd connection{kSocket, POLLIN, 0};
      if (::poll(&connection, 1, -1) < 0 && errno != EINTR) break;
      const ssize_t got = ::recv(kSocket, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) break;
      frames_.feed(kc::base::ByteView(buffer.data(), static_cast<size_t>(got)));
      if (const int code = handle_all(); code != 0) return leave(code);
    }
    return leave(0);
  }

 private:
  int handle_all() {
    for (;;) {
      auto message = frames_.next();
      if (!message) {
        std::fprintf(stderr, "kc-engine: %s\n", message.error().message.c_str());
        return kExitInternal;
      }
      if (!*message) return 0;
      if (auto* setup = std::get_if<engine::Setup>(&**message); setup != nullptr && worker_ == nullptr) {
        // Before there are other threads: it remembers what belongs to all of them.
        worker_ = std::make_unique<engine::Worker>(kSocket, std::move(*setup));
        auto executor = engine::Executor::make(worker_->slots());
        if (!executor) {
          std::fprintf(stderr, "kc-engine: %s\n", executor.error().text().c_str());
          return static_cast<int>(executor.error().kind);
        }
        executor_ = std::move(*executor);
      } else if (worker_ == nullptr || !handle(**message)) {
        std::fputs("kc-engine: a message that does not belong here\n", stderr);
        return kExitInternal;
      }
    }
  }

  // False: only an engine may say so, or it names files that have not come.
  bool handle(engine::Message& message) {
    if (auto* job = std::get_if<engine::Job>(&message)) {
      engine::Worker::Sources sources = worker_->sources(job->sources);
      if (sources == nullptr) return false;
      worker_->expect();
      executor_->submit([this, shared = std::make_shared<engine::Job>(std::move(*job)),
                         files = std::move(sources)] { worker_->run(*shared, files); });
    } else if (auto* sources = std::get_if<engine::Sources>(&message)) {
      worker_->learn(std::move(*sources));
    } else if (const auto* forget = std::get_if<engine::Forget>(&message)) {
      worker_->forget(forget->set);
    } else if (const auto* release = std::get_if<engine::Release>(&message)) {
      worker_->release(release->id);
    } else {
      return false;
    }
    return true;
  }

  // Jobs still run on other threads and must not be waited for: the process ends under them.
  int leave(int code) {
    engine::end_soon();
    // A kc that is alive has only stopped to send.
    pollfd connection{kSocket, 0, 0};
    const bool kc_is_gone = ::poll(&connection, 1, 0) > 0 && (connection.revents & POLLHUP) != 0;
    if (worker_ != nullptr) worker_->abandon(kc_is_gone);
    _exit(code);
  }

  engine::FrameReader frames_;
  std::unique_ptr<engine::Worker> worker_;
  std::unique_ptr<engine::Executor> executor_;
};

// 1, because that also keeps the kernel from handing the process to a program that collects crashes, for
// which 0 is no limit (core(5)).
void forbid_core_dumps() {
  const rlimit least{1, 1};
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_CORE, &least) != 0) setrlimit(RLIMIT_CORE, &none);
}

}  // namespace

int main() {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(kSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fputs("kc-engine is started by kc and is of no use by itself; see `kc --help`\n", stderr);
    return kExitUsage;
  }
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  forbid_core_dumps();
  signal(SIGPIPE, SIG_IGN);
  // What a compiler printed before it crashed is in the log: by line, since nothing is flushed when a process
  // is killed.
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  engine::end_at_once_on_exit();
  if (!engine::send(kSocket, engine::Greeting{engine::kProtocolVersion, engine::build_id()}))
    return kExitInternal;
  return Engine().serve();
}
