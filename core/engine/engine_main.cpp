// kc-engine: the child program in which compilers run. Talks to kc over descriptor 3 (engine/wire.h) and is
// of no use by itself.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "engine/executor.h"
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
      const ssize_t got = ::read(kSocket, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
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
        auto executor = engine::Executor::make(setup->slots);
        if (!executor) {
          std::fprintf(stderr, "kc-engine: %s\n", executor.error().text().c_str());
          return static_cast<int>(executor.error().kind);
        }
        worker_ = std::make_unique<engine::Worker>(kSocket, std::move(*setup));
        executor_ = std::move(*executor);
      } else if (auto* job = std::get_if<engine::Job>(&**message); job != nullptr && worker_ != nullptr) {
        executor_->submit(
            [this, shared = std::make_shared<engine::Job>(std::move(*job))] { worker_->run(*shared); });
      } else if (const auto* release = std::get_if<engine::Release>(&**message);
                 release != nullptr && worker_ != nullptr) {
        worker_->release(release->key);
      } else {
        std::fputs("kc-engine: a message that does not belong here\n", stderr);
        return kExitInternal;
      }
    }
  }

  // Jobs still run on other threads and must not be waited for: the process ends under them.
  int leave(int code) {
    if (worker_ != nullptr) worker_->abandon();
    std::fflush(nullptr);
    _exit(code);
  }

  engine::FrameReader frames_;
  std::unique_ptr<engine::Worker> worker_;
  std::unique_ptr<engine::Executor> executor_;
};

}  // namespace

int main() {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(kSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fputs("kc-engine is started by kc and is of no use by itself; see `kc --help`\n", stderr);
    return kExitUsage;
  }
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(SIGPIPE, SIG_IGN);
  if (!engine::send(kSocket, engine::Greeting{engine::kProtocolVersion, engine::build_id()}))
    return kExitInternal;
  return Engine().serve();
}
