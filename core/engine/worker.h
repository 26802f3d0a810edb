// What the engine does with a job: lock its keys, look again in the store, compile, answer.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/run.h"
#include "engine/process_state.h"
#include "engine/wire.h"
#include "store/key_locks.h"
#include "store/store.h"

namespace kc::engine {

/// run() may be called from several threads at once; the others from the thread that reads the socket.
class Worker {
 public:
  using Sources = std::shared_ptr<const backend::SourceSet>;

  /// `socket` is written to under a lock of the worker's own and must outlive it. Made before there are other
  /// threads: what belongs to all of them is as it is now.
  Worker(int socket, Setup setup);

  uint32_t slots() const { return setup_.slots; }
  void learn(engine::Sources sources);
  void forget(uint32_t set) { sources_.erase(set); }
  /// The files of a set; null when they have not come.
  Sources sources(uint32_t set) const;

  /// To be called before the executor is given a job that it will run().
  void expect() { ++expected_; }
  /// Runs one job to its end and sends Started, Group and Done. Never throws; what goes wrong is in Done.
  void run(const Job& job, const Sources& sources);
  /// Lets the keys of a job go that holds them.
  void release(uint32_t id);
  /// Kills every child's group, now and whatever starts later, and removes the work folder; without kc also
  /// the folder around it when that is empty then.
  void abandon(bool kc_is_gone);

 private:
  struct BackendState {
    std::once_flag once;
    const backend::Compiler* compiler = nullptr;
    const backend::Description* description = nullptr;
    base::Result<std::unique_ptr<backend::Runner>> runner = nullptr;
    std::mutex one_at_a_time;  // RunKind::kProcess
  };
  // A job under way, and the keys that it has locked.
  struct Attempt;

  Done look_up_and_compile(Attempt& attempt);
  bool find_stored(Attempt& attempt, Done& done);
  Done compile(Attempt& attempt, BackendState& state);
  bool has_module(Attempt& attempt, const BackendState& state, const base::Digest& module);
  BackendState* backend_of(const Job& job, Done& done);
  store::KeyLocks::Answer lock(Attempt& attempt, const base::Digest& key);
  // Not whether a message is sent with the next one: the order of messages stays.
  enum class Haste { kNow, kWithNext };
  void answer(const Message& message, Haste haste = Haste::kNow);
  void send_held();
  void send_unsent();
  void group_started(uint32_t job, pid_t group);
  void group_ended(uint32_t job, pid_t group);

  const int socket_;
  const Setup setup_;
  const ProcessState untouched_;
  std::unique_ptr<store::Store> store_;
  store::KeyLocks* locks_ = nullptr;              // null: no single flight here
  std::map<std::string, BackendState> backends_;  // filled in the constructor, its keys never change after
  std::unordered_map<uint32_t, Sources> sources_;
  std::atomic<uint32_t> expected_{0};  // jobs that wait for a thread
  std::mutex send_mutex_;
  base::Bytes unsent_;  // frames of finished jobs that go with the next one's Started
  std::mutex held_mutex_;
  std::unordered_map<uint32_t, std::vector<base::Digest>> held_;  // keys of answered jobs, until release()
  std::mutex groups_mutex_;
  std::set<pid_t> groups_;
  util::StartGate gate_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace kc::engine
