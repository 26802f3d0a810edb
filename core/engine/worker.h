// What the engine does with a job: lock its key, look again in the store, compile, answer.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "backend/run.h"
#include "engine/wire.h"
#include "store/key_locks.h"
#include "store/store.h"

namespace kc::engine {

/// run() may be called from several threads at once; the others from the thread that reads the socket.
class Worker {
 public:
  /// `socket` is written to under a lock of the worker's own and must outlive it.
  Worker(int socket, Setup setup);

  /// Runs one job to its end and sends Started, Group and Done. Never throws; what goes wrong is in Done.
  void run(const Job& job);
  void release(const base::Digest& key);
  /// Kills every child's group, now and whatever starts later, and removes the work folder.
  void abandon();

 private:
  struct BackendState {
    std::once_flag once;
    const backend::Compiler* compiler = nullptr;
    base::Result<std::unique_ptr<backend::Runner>> runner = nullptr;
  };

  // `own_answer`: see backend::CompileOutcome.
  Done compile(const Job& job, bool& own_answer);
  backend::Runner* runner_of(const Job& job, Done& done);
  void answer(const Message& message);
  void group_started(uint32_t job, pid_t group);
  void group_ended(uint32_t job, pid_t group);

  const int socket_;
  const Setup setup_;
  std::unique_ptr<store::Store> store_;
  store::KeyLocks* locks_ = nullptr;              // null: no single flight here
  std::map<std::string, BackendState> backends_;  // filled in the constructor, its keys never change after
  std::mutex send_mutex_;
  std::mutex groups_mutex_;
  std::set<pid_t> groups_;
  util::StartGate gate_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace kc::engine
