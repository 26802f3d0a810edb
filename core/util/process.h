// Child processes: own process group, built environment, captured output, a deadline, killed as a group.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "util/time.h"

namespace kc::util {

struct ProcessSpec {
  std::string program;                   // a path, from the caller's directory; PATH is not searched
  std::vector<std::string> arguments;    // without argv[0], which is `program`
  std::vector<std::string> environment;  // `NAME=value`, complete: nothing is inherited
  std::string directory;                 // working directory, empty = the caller's
  std::optional<Nanoseconds> timeout;    // then the group gets SIGKILL
  size_t output_limit = 4U << 20;        // bytes kept of each of stdout and stderr; more is read and dropped
};

struct ProcessResult {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  bool timed_out = false;
  std::string out;
  std::string err;
  double seconds = 0;
  uint64_t peak_bytes =
      0;  // largest sum of resident peaks (VmHWM) in its group, sampled every 50 ms; 0 = ended sooner
};

/// Lets a program that ends be sure that no child is started behind its back. Thread-safe.
class StartGate {
 public:
  /// Waits for starts that are under way, until their `started` hook has returned; every later one is
  /// refused.
  void close() {
    const std::unique_lock lock(mutex_);
    closed_ = true;
  }
  /// Held around a start; closed() must be asked while it is.
  std::shared_lock<std::shared_mutex> enter() { return std::shared_lock(mutex_); }
  bool closed() const { return closed_; }

 private:
  std::shared_mutex mutex_;
  bool closed_ = false;  // guarded by mutex_
};

struct ProcessHooks {
  // Both are called in the calling thread and must not throw.
  std::function<void(pid_t group)> started;  // right after the start
  // After the group was killed and before its leader is reaped: until this returns, the number is no other's.
  std::function<void(pid_t group)> ended;
  StartGate* gate = nullptr;  // null: always open
};

/// Runs one program to its end; stdin is /dev/null, no descriptor but 0, 1 and 2 reaches it, its signals are
/// at their defaults. What is left of its group when it ends is killed too; what left the group is not waited
/// for. May be called from several threads at once. SIGCHLD must not be ignored. An error means it could not
/// be started, and says which program and why (ErrorKind::kEnvironment, with the errno).
base::Result<ProcessResult> run_process(const ProcessSpec& spec, const ProcessHooks& hooks = {});

/// A child that is talked to over a socket pair (the engine). Its stdout and stderr go to `log`.
struct Peer {
  pid_t pid = -1;
  base::FileDescriptor socket;  // our end
  base::FileDescriptor pidfd;
};
/// The child finds its end of the socket as descriptor 3. `timeout` and `output_limit` do not count here; who
/// calls kills the group (pid) and reaps the child.
base::Result<Peer> spawn_peer(const ProcessSpec& spec, int log);

/// What this machine calls itself (uname), empty when it does not say.
std::string host_name();

/// Path of the running program (/proc/self/exe), resolved.
base::Result<std::string> self_path();

}  // namespace kc::util
