// kc's side of the engine: starts it, hands out jobs, hears how they end, and leaves nothing behind when it
// dies.
//
// Order of calls: start(), then submit() and wait() in any mix, release() for each Done that holds its key.
// The destructor stops the engine whatever it is doing. One thread only.
#pragma once

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "engine/wire.h"
#include "util/process.h"

namespace kc::engine {

struct EngineSpec {
  std::string program;  // path of kc-engine
  Setup setup;
};

class Supervisor {
 public:
  /// Starts the engine and exchanges greetings. ErrorKind::kEnvironment, with what the engine said on stderr,
  /// when it does not come up or is from another build.
  static base::Result<std::unique_ptr<Supervisor>> start(const EngineSpec& spec);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  base::Result<void> submit(const Job& job);
  /// Best effort: a dead engine holds no lock.
  void release(const base::Digest& key);

  struct Heard {
    std::vector<Started> started;
    std::vector<Done> done;
    bool woken = false;  // `wake` became readable
  };
  /// Waits until the engine says something, `wake` (-1 = none) is readable or `timeout` is over. An error
  /// means that the engine is gone (ErrorKind::kEnvironment before any job started, else kInternal); its jobs
  /// end unanswered.
  base::Result<Heard> wait(util::Nanoseconds timeout, int wake);

 private:
  Supervisor(util::Peer peer, base::FileDescriptor log, std::string work_folder);
  base::Result<void> greet(const Setup& setup);
  base::Result<void> tell(const Message& message);
  base::Result<void> read_available();
  void hear(const Group& group);
  void hear_the_rest();
  base::Error death(std::string_view what);
  std::string log_text() const;
  void stop();

  util::Peer peer_;
  base::FileDescriptor log_;  // the engine's stdout and stderr
  std::string work_folder_;
  FrameReader frames_;
  std::set<pid_t> groups_;
  bool any_started_ = false;
};

/// `libexec/kc/kc-engine` beside the folder of the running program.
std::string engine_path(const std::string& program);

}  // namespace kc::engine
