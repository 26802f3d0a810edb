// kc's side of the engines: hands out jobs, and sees to it that a compiler that crashes, hangs or spoils its
// process costs nothing but the unit that made it do so (docs/architecture.md: processes).
//
// Order of calls: start(), then submit() and wait() in any mix, release() for each Done that holds its key.
// Each submitted job is answered by exactly one Done, whatever happens to the engines, unless wait() ends
// with an error. The destructor stops all engines whatever they are doing. One thread only.
//
// What happens inside, for jobs that compile in process (RunKind::kThreads, kProcess); a child's crash or
// timeout is an ordinary answer of its engine:
//
//   crash    The engine dies. Jobs that were Started run again, each alone in a fresh engine; whoever kills
//   that one
//            too is guilty: kCrashed, with signal and stderr. Jobs not yet Started go to the next engine.
//   timeout  A job is not Done within its timeout after Started: it is guilty at once (kTimeout). The engine
//   is
//            killed; the others that were Started run again together.
//   taint    A Done says kTainted. The engine is killed; the job and all others that were Started run again,
//   each
//            alone; whoever is kTainted alone is guilty, with what it changed.
//   beside   A Done is held back until every job that ran beside it has ended well. If one of them ends in
//   one of the
//            three ways, the held answer is not believed: the job runs again, and the two are compared. When
//            they differ the second counts, and a note says so.
//
// An engine that dies before any of its jobs was Started is at fault itself: wait() ends with
// ErrorKind::kEnvironment and its stderr, and nothing is restarted. Held answers beyond a bound of memory lie
// in an unlinked file in the work folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/source_sets.h"
#include "engine/wire.h"
#include "util/time.h"

namespace kc::engine {

struct EngineSpec {
  std::string program;  // path of kc-engine
  Setup setup;
  bool prefetch = true;  // jobs may wait in an engine; false where each must be kept back as long as possible
};

class Supervisor {
 public:
  /// Starts the first engine and exchanges greetings. ErrorKind::kEnvironment, with what the engine said on
  /// stderr, when it does not come up or is from another build. When `wake` (-1 = none) becomes readable it
  /// does not wait for the greeting any more; the first wait() says so then. `setup.work_folder` is an empty
  /// folder that the caller made for this. It is removed, with all that is in it, when the supervisor ends or
  /// does not start; one that has something in it is ErrorKind::kInternal and left alone.
  static base::Result<std::unique_ptr<Supervisor>> start(const EngineSpec& spec, int wake = -1);
  virtual ~Supervisor() = default;

  /// How many jobs more may be submitted before one must be waited for: enough that no slot waits for kc.
  virtual size_t room() const = 0;
  /// `job.sources` is filled in here. ErrorKind::kFailed: this job cannot be sent (too large), nothing else
  /// is wrong; it will not be answered.
  virtual base::Result<void> submit(Job job, SharedFiles files) = 0;
  /// Lets the locks of a job's keys go. Best effort: a dead engine holds none.
  virtual void release(uint32_t id) = 0;

  struct Heard {
    std::vector<Started> started;  // of each job the first time only
    std::vector<Done> done;
    std::vector<std::string> notes;  // for people: engines that crashed, answers that differed
    bool woken = false;              // `wake` became readable
  };
  /// Waits until there is something to say, `wake` (-1 = none) is readable or `timeout` is over. An error
  /// means that compiling cannot go on; answers that were there before it are told first.
  virtual base::Result<Heard> wait(util::Nanoseconds timeout, int wake) = 0;
};

/// `libexec/kc/kc-engine` beside the folder of the running program.
std::string engine_path(const std::string& program);

}  // namespace kc::engine
