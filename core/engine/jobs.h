// Which job is where, which answer is believed, and who is to blame when an engine ends: the rules of
// engine/supervisor.h without processes and without a clock. Every event gives actions, which the owner of
// the processes carries out in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "engine/death.h"
#include "engine/held_answers.h"
#include "engine/wire.h"
#include "util/time.h"

namespace kc::engine {

/// Engines are numbered from 1 in the order of their start.
using EngineNumber = uint32_t;

/// What of a job counts here.
struct JobFacts {
  uint32_t id = 0;
  std::string unit;  // its name, for notes
  backend::RunKind run = backend::RunKind::kThreads;
  util::Nanoseconds timeout{};  // 0 = none; a child's is kept by its runner
};

struct StartEngine {
  EngineNumber engine = 0;
  uint32_t slots = 1;
};
struct SendJob {
  EngineNumber engine = 0;
  uint32_t job = 0;
};
/// It has nothing to do any more, or nothing that it does counts. Nothing is heard of it afterwards.
struct EndEngine {
  EngineNumber engine = 0;
};
/// The engine is to let the keys of a job go whose answer was lost: the job is asked for again.
struct FreeKeys {
  EngineNumber engine = 0;
  uint32_t job = 0;
};
/// A job runs for the first time.
struct TellStarted {
  uint32_t job = 0;
};
/// How a job ended for good.
struct Answer {
  Done done;
};
struct Note {
  std::string text;
};
using Action = std::variant<StartEngine, SendJob, EndEngine, FreeKeys, TellStarted, Answer, Note>;

/// One thread only.
class Jobs {
 public:
  using TimePoint = util::Clock::time_point;

  /// The first action is the start of engine 1. At most `slots` jobs run at once in all engines together;
  /// `prefetch` more wait in an engine, so that no slot idles while kc works, but none while a child is under
  /// way: its slot idles for a thousandth of its time, and a build that stops would wait for all of them.
  Jobs(uint32_t slots, uint32_t prefetch, HeldAnswers held);

  void set_prefetch(uint32_t prefetch) { prefetch_ = prefetch; }
  /// How many jobs wait for a slot in the engine that takes most of them.
  size_t prefetched() const;
  /// How many jobs more may be submitted now.
  size_t room() const;
  /// Precondition: no job of this id is under way.
  void submit(const JobFacts& job);
  /// The engine that holds the keys of an answered job, which is told to let them go: once a job.
  std::optional<EngineNumber> release(uint32_t id);

  // What an engine said, in its order. False: it cannot have said so; it is to be killed and told as died().
  bool started(EngineNumber engine, uint32_t id, TimePoint now);
  bool done(EngineNumber engine, Done done);
  /// Only for engines that were not ended by an action. Actions that were not taken yet may still be for it.
  void died(EngineNumber engine, const Death& death);

  /// For `time` nobody heard what engines said: no job is late because of that.
  void postpone(util::Nanoseconds time);
  /// The earliest time at which a job will have taken too long.
  std::optional<TimePoint> next_deadline() const;
  /// Precondition: all that engines had said by `now` was told.
  void expire(TimePoint now);

  /// Why compiling cannot go on; then the only actions are answers that were there before.
  const std::optional<base::Error>& failure() const { return failure_; }
  std::vector<Action> take_actions();

 private:
  enum class Place : uint8_t { kQueue, kEngine, kHeld };
  struct Job {
    JobFacts facts;
    Place place = Place::kQueue;
    EngineNumber engine = 0;
    bool alone = false;  // it was in flight when an engine crashed or was tainted
    bool told_started = false;
    bool started = false;             // where it is now
    TimePoint since{};                // of its start
    uint32_t kills = 0;               // engines of its own that SIGKILL ended
    uint64_t held = 0;                // its answer, while kHeld
    bool holds_key = false;           // the engine holds its keys, while kHeld
    size_t waits_for = 0;             // jobs that ran beside it and have not ended, while kHeld
    std::optional<uint64_t> earlier;  // an answer that was not believed
  };
  struct Engine {
    bool alone = false;
    bool any_started = false;
    std::vector<uint32_t> jobs;  // sent and not Done, in order
    size_t keyholders = 0;       // answered jobs whose keys it holds
    // By a job that runs: those that ended beside it and wait for its end.
    std::unordered_map<uint32_t, std::vector<uint32_t>> waiting;
  };

  size_t most_in_main() const { return size_t{slots_} + (children_ == 0 ? prefetch_ : 0); }
  static bool in_process(const JobFacts& facts) { return facts.run != backend::RunKind::kChild; }
  void dispatch();
  void send(EngineNumber number, Engine& engine, uint32_t id);
  void hold(Engine& engine, uint32_t id, Job& job, Done done, const std::vector<uint32_t>& beside);
  void settle(EngineNumber number, uint32_t ended);
  void believe(EngineNumber number, uint32_t id, Done done);
  void answer(uint32_t id, Done done);
  void again(uint32_t id, bool alone);
  // Forgets the engine and puts its jobs back: those that wait in it, those that ended in it and are not
  // believed; gives those that run.
  std::vector<uint32_t> take_back(EngineNumber number);
  std::string again_text(size_t count, bool alone) const;
  void tainted(EngineNumber number, Done done);
  void note(std::string text) { actions_.emplace_back(Note{std::move(text)}); }

  const uint32_t slots_;
  uint32_t prefetch_;
  HeldAnswers held_;
  std::unordered_map<uint32_t, Job> jobs_;
  std::map<EngineNumber, Engine> engines_;
  std::optional<EngineNumber> main_;  // the engine that takes all jobs but those that run alone
  EngineNumber last_engine_ = 0;
  std::deque<uint32_t> queue_;
  std::deque<uint32_t> alone_queue_;
  size_t held_count_ = 0;
  size_t children_ = 0;  // under way
  std::unordered_map<uint32_t, EngineNumber> keyholders_;
  std::vector<Action> actions_;
  std::optional<base::Error> failure_;
};

}  // namespace kc::engine
