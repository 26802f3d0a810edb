#include "engine/jobs.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <tuple>
#include <utility>

#include "util/text.h"

namespace kc::engine {
namespace {

// SIGKILL comes from outside: from the kernel that needs memory, or from somebody who ended one engine. Only
// who meets it twice alone is taken for its cause.
constexpr uint32_t kMostKills = 2;

// Whether two compiles of one unit said the same. Times and peaks always differ; code that somebody has put
// meanwhile counts as compiled.
bool same_result(const Done& a, const Done& b) {
  const auto kind = [](JobState state) { return state == JobState::kHit ? JobState::kCompiled : state; };
  if (kind(a.state) != kind(b.state)) return false;
  return std::tie(a.artifact, a.message) == std::tie(b.artifact, b.message);
}

}  // namespace

Jobs::Jobs(uint32_t slots, uint32_t prefetch, HeldAnswers held)
    : slots_(std::max(slots, 1U)), prefetch_(prefetch), held_(std::move(held)) {
  main_ = ++last_engine_;
  engines_[*main_];
  actions_.emplace_back(StartEngine{*main_, slots_});
}

size_t Jobs::prefetched() const {
  if (!main_) return 0;
  const std::vector<uint32_t>& sent = engines_.at(*main_).jobs;
  return static_cast<size_t>(std::ranges::count_if(sent, [&](uint32_t id) { return !jobs_.at(id).started; }));
}

size_t Jobs::room() const {
  const size_t most = most_in_main();
  const size_t under_way = jobs_.size() - held_count_;
  return failure_ || under_way >= most ? 0 : most - under_way;
}

void Jobs::submit(const JobFacts& job) {
  jobs_[job.id].facts = job;
  if (!in_process(job)) ++children_;
  queue_.push_back(job.id);
  dispatch();
}

std::optional<EngineNumber> Jobs::release(uint32_t id) {
  const auto found = keyholders_.find(id);
  if (found == keyholders_.end()) return std::nullopt;
  const EngineNumber number = found->second;
  keyholders_.erase(found);
  Engine& engine = engines_.at(number);
  --engine.keyholders;
  if (!engine.alone) return number;
  // Its one job is done with; ending it lets the keys go too.
  engines_.erase(number);
  actions_.emplace_back(EndEngine{number});
  return std::nullopt;
}

// A job that runs alone comes before all others, so that who is to blame is known early. While one is there,
// the main engine gets no more than the slots that are left, since nobody can call a job back.
void Jobs::dispatch() {
  if (failure_) return;
  size_t alone_active = 0;
  for (const auto& [number, engine] : engines_) alone_active += engine.alone && !engine.jobs.empty() ? 1 : 0;
  const auto in_main = [&] { return main_ ? engines_.at(*main_).jobs.size() : size_t{0}; };
  while (!alone_queue_.empty() && in_main() + alone_active < slots_) {
    const EngineNumber number = ++last_engine_;
    Engine& engine = engines_[number];
    engine.alone = true;
    actions_.emplace_back(StartEngine{number, 1});
    send(number, engine, alone_queue_.front());
    alone_queue_.pop_front();
    ++alone_active;
  }
  if (!alone_queue_.empty()) return;
  const size_t most = alone_active == 0 ? most_in_main() : slots_ - alone_active;
  while (!queue_.empty() && in_main() < most) {
    if (!main_) {
      main_ = ++last_engine_;
      engines_[*main_];
      actions_.emplace_back(StartEngine{*main_, slots_});
    }
    send(*main_, engines_.at(*main_), queue_.front());
    queue_.pop_front();
  }
}

void Jobs::send(EngineNumber number, Engine& engine, uint32_t id) {
  Job& job = jobs_.at(id);
  job.place = Place::kEngine;
  job.engine = number;
  job.started = false;
  engine.jobs.push_back(id);
  actions_.emplace_back(SendJob{number, id});
}

bool Jobs::started(EngineNumber number, uint32_t id, TimePoint now) {
  const auto found = engines_.find(number);
  if (found == engines_.end()) return true;
  Engine& engine = found->second;
  if (std::ranges::find(engine.jobs, id) == engine.jobs.end() || jobs_.at(id).started) return false;
  Job& job = jobs_.at(id);
  job.started = true;
  job.since = now;
  engine.any_started = true;
  if (!job.told_started) actions_.emplace_back(TellStarted{id});
  job.told_started = true;
  return true;
}

bool Jobs::done(EngineNumber number, Done done) {
  const auto found = engines_.find(number);
  if (found == engines_.end()) return true;
  Engine& engine = found->second;
  const auto at = std::ranges::find(engine.jobs, done.id);
  if (at == engine.jobs.end() || done.state == JobState::kCrashed) return false;
  const uint32_t id = done.id;
  if (done.state == JobState::kTainted) {
    tainted(number, std::move(done));
    dispatch();
    return true;
  }
  engine.jobs.erase(at);
  std::vector<uint32_t> beside;
  for (const uint32_t other : engine.jobs) {
    const Job& job = jobs_.at(other);
    if (job.started && in_process(job.facts)) beside.push_back(other);
  }
  settle(number, id);
  // That somebody else has the key that was asked for is no answer that a neighbour could have spoilt; a
  // content key is, and others' code is taken by it.
  if (beside.empty() || (done.state == JobState::kBusy && !done.content_key)) {
    believe(number, id, std::move(done));
  } else {
    hold(engine, id, jobs_.at(id), std::move(done), beside);
  }
  if (engine.alone && engine.keyholders == 0) {
    engines_.erase(found);
    actions_.emplace_back(EndEngine{number});
  }
  dispatch();
  return true;
}

void Jobs::hold(Engine& engine, uint32_t id, Job& job, Done done, const std::vector<uint32_t>& beside) {
  job.place = Place::kHeld;
  job.waits_for = beside.size();
  job.holds_key = done.holds_key;
  job.held = held_.put(std::move(done));
  ++held_count_;
  for (const uint32_t other : beside) engine.waiting[other].push_back(id);
}

// `ended` has ended well: it no longer keeps back those that ended beside it.
void Jobs::settle(EngineNumber number, uint32_t ended) {
  const auto node = engines_.at(number).waiting.extract(ended);
  if (node.empty()) return;
  for (const uint32_t id : node.mapped()) {
    Job& job = jobs_.at(id);
    if (--job.waits_for != 0) continue;
    --held_count_;
    if (std::optional<Done> done = held_.take(job.held)) {
      believe(number, id, std::move(*done));
    } else {
      // What was held is lost. Its keys would be busy for itself.
      if (job.holds_key) actions_.emplace_back(FreeKeys{number, id});
      again(id, false);
    }
  }
}

void Jobs::believe(EngineNumber number, uint32_t id, Done done) {
  Job& job = jobs_.at(id);
  if (job.earlier && done.state != JobState::kBusy) {
    const std::optional<Done> earlier = held_.take(*job.earlier);
    job.earlier.reset();
    // Of a job that came no further than to a busy key there is nothing to compare.
    if (earlier && earlier->state != JobState::kBusy && !same_result(*earlier, done)) {
      note(
          util::format("{}: a second compile gave another result than the one beside which an engine ended; "
                       "the second counts",
                       job.facts.unit));
    }
  }
  if (done.holds_key) {
    keyholders_[id] = number;
    ++engines_.at(number).keyholders;
  }
  answer(id, std::move(done));
}

void Jobs::answer(uint32_t id, Done done) {
  const auto found = jobs_.find(id);
  if (found->second.earlier) static_cast<void>(held_.take(*found->second.earlier));
  if (!in_process(found->second.facts)) --children_;
  jobs_.erase(found);
  actions_.emplace_back(Answer{std::move(done)});
}

void Jobs::again(uint32_t id, bool alone) {
  Job& job = jobs_.at(id);
  job.place = Place::kQueue;
  job.started = false;
  job.alone = job.alone || alone;
  (job.alone ? alone_queue_ : queue_).push_front(id);
}

std::vector<uint32_t> Jobs::take_back(EngineNumber number) {
  auto node = engines_.extract(number);
  const Engine& engine = node.mapped();
  if (main_ == number) main_.reset();
  std::erase_if(keyholders_, [&](const auto& held) { return held.second == number; });

  std::vector<uint32_t> running;
  for (auto id = engine.jobs.rbegin(); id != engine.jobs.rend(); ++id) {
    if (jobs_.at(*id).started) {
      running.push_back(*id);
    } else {
      again(*id, false);
    }
  }
  std::ranges::reverse(running);

  std::vector<uint32_t> ended;
  for (const auto& [id, job] : jobs_) {
    if (job.place == Place::kHeld && job.engine == number) ended.push_back(id);
  }
  std::ranges::sort(ended, std::ranges::greater(), [&](uint32_t id) { return jobs_.at(id).held; });
  for (const uint32_t id : ended) {
    Job& job = jobs_.at(id);
    --held_count_;
    if (job.earlier) static_cast<void>(held_.take(*job.earlier));
    job.earlier = job.held;
    again(id, false);
  }
  return running;
}

std::string Jobs::again_text(size_t count, bool alone) const {
  if (count == 0) return {};
  return util::format("; {} {} again{}", util::counted(count, "unit"), count == 1 ? "runs" : "run",
                      !alone       ? ""
                      : count == 1 ? ", alone"
                                   : ", each alone");
}

void Jobs::died(EngineNumber number, const Death& death) {
  const auto found = engines_.find(number);
  if (found == engines_.end() || failure_) return;
  if (!found->second.any_started) {
    failure_ = engine_fault(death);
    std::erase_if(actions_, [](const Action& action) { return !std::holds_alternative<Answer>(action); });
    return;
  }
  const bool was_alone = found->second.alone;
  const bool was_killed = death.cause == Death::Cause::kSignal && death.number == SIGKILL;
  const std::vector<uint32_t> running = take_back(number);
  size_t again_count = 0;
  for (auto id = running.rbegin(); id != running.rend(); ++id) {
    Job& job = jobs_.at(*id);
    if (was_alone && (!was_killed || ++job.kills >= kMostKills)) {
      Done done;
      done.id = *id;
      done.state = JobState::kCrashed;
      done.message = guilt(death);
      done.output = death.log;
      answer(*id, std::move(done));
    } else {
      again(*id, true);
      ++again_count;
    }
  }
  if (!was_alone || again_count != 0) {
    note("an engine " + how_it_ended(death) + again_text(again_count, true));
  }
  dispatch();
}

// The job that said so has not ended: it runs again as the others do.
void Jobs::tainted(EngineNumber number, Done done) {
  const bool was_alone = engines_.at(number).alone;
  const std::string unit = jobs_.at(done.id).facts.unit;
  jobs_.at(done.id).started = true;
  std::vector<uint32_t> running = take_back(number);
  actions_.emplace_back(EndEngine{number});
  if (was_alone) {
    done.artifact.code.clear();
    done.artifact.facts = {};
    done.holds_key = false;
    const uint32_t id = done.id;
    answer(id, std::move(done));
    return;
  }
  for (auto id = running.rbegin(); id != running.rend(); ++id) again(*id, true);
  note(util::format("{}{} {}{}", unit, running.size() > 1 ? " or a unit beside it" : "", done.message,
                    again_text(running.size(), true)));
}

void Jobs::postpone(util::Nanoseconds time) {
  for (auto& [id, job] : jobs_) job.since += time;
}

std::optional<Jobs::TimePoint> Jobs::next_deadline() const {
  std::optional<TimePoint> out;
  for (const auto& [number, engine] : engines_) {
    for (const uint32_t id : engine.jobs) {
      const Job& job = jobs_.at(id);
      if (!job.started || !in_process(job.facts) || job.facts.timeout <= util::Nanoseconds::zero()) continue;
      const TimePoint at = job.since + job.facts.timeout;
      if (!out || at < *out) out = at;
    }
  }
  return out;
}

void Jobs::expire(TimePoint now) {
  if (failure_) return;
  for (;;) {
    const auto is_overdue = [&](uint32_t id) {
      const Job& job = jobs_.at(id);
      return job.started && in_process(job.facts) && job.facts.timeout > util::Nanoseconds::zero() &&
             now >= job.since + job.facts.timeout;
    };
    const auto found = std::ranges::find_if(
        engines_, [&](const auto& engine) { return std::ranges::any_of(engine.second.jobs, is_overdue); });
    if (found == engines_.end()) break;
    const EngineNumber number = found->first;
    std::vector<uint32_t> guilty;
    std::ranges::copy_if(found->second.jobs, std::back_inserter(guilty), is_overdue);
    const std::vector<uint32_t> running = take_back(number);
    actions_.emplace_back(EndEngine{number});
    std::string why;
    for (const uint32_t id : guilty) {
      const Job& job = jobs_.at(id);
      Done done;
      done.id = id;
      done.state = JobState::kTimeout;
      done.message = overdue(job.facts.timeout);
      done.hint = "raise the kernel's timeout";
      done.seconds = std::chrono::duration<double>(now - job.since).count();
      if (why.empty()) why = job.facts.unit + " " + done.message;
      answer(id, std::move(done));
    }
    for (auto id = running.rbegin(); id != running.rend(); ++id) {
      if (std::ranges::find(guilty, *id) == guilty.end()) again(*id, false);
    }
    const size_t others = running.size() - guilty.size();
    if (others != 0) note("an engine was ended because " + why + again_text(others, false));
  }
  dispatch();
}

std::vector<Action> Jobs::take_actions() {
  return std::exchange(actions_, {});
}

}  // namespace kc::engine
