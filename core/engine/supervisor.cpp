#include "engine/supervisor.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <unordered_map>
#include <utility>
#include <variant>

#include "backend/backend.h"
#include "base/files.h"
#include "engine/engine_process.h"
#include "engine/held_answers.h"
#include "engine/jobs.h"
#include "engine/order.h"
#include "util/text.h"

namespace kc::engine {
namespace {

using base::Result;
using util::Clock;

// Compiles that wait in the engine for each slot, beyond those that run, take about this long: kc may be busy
// with an answer (a millisecond with a slow store) or wait for a CPU for some of the scheduler's slices. More
// would only delay a build that is to stop.
constexpr double kPrefetchSeconds = 0.015;
constexpr double kMostPrefetchEach = 16;
// Until the first one has ended, a compile is taken to be neither small nor large.
constexpr double kAssumedSeconds = 0.005;

uint32_t prefetch_of(uint32_t slots, double seconds) {
  return static_cast<uint32_t>(slots * std::clamp(kPrefetchSeconds / seconds, 1.0, kMostPrefetchEach));
}

// That a job was started is for people to see. Its end often follows within this time and is told with it, so
// that a small compile wakes its caller once, not twice.
constexpr auto kStartedWaits = std::chrono::milliseconds(20);
// Longer than kc is ever busy with answers, and so short that it counts for no timeout.
constexpr auto kAway = std::chrono::seconds(1);
// While an engine has enough to do, what it says of small compiles is heard this much later, several answers
// at once: each that wakes kc, and each job that wakes the engine, costs it as much as a part of a small
// compile.
constexpr double kQuietSeconds = 0.005;
constexpr double kEnoughSeconds = 2 * kQuietSeconds;  // a slot
// Of a socket's buffer, 200 KiB where nobody changed it, these fill less than a half: no engine waits for kc.
constexpr size_t kSmallAnswer = 12U << 10;
constexpr double kMostAnswers = 8;
constexpr auto kTrimLogsEvery = std::chrono::milliseconds(250);

int poll_milliseconds(util::Nanoseconds time) {
  const auto count = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  return static_cast<int>(std::clamp<int64_t>(count, 0, 24 * 3600 * 1000));
}

backend::RunKind run_kind(const std::string& backend) {
  const backend::Description* description = backend::find_description(backend);
  return description != nullptr ? description->run : backend::RunKind::kThreads;
}

// Carries out what Jobs decides, over the engines that there are.
class EngineSupervisor final : public Supervisor {
 public:
  explicit EngineSupervisor(const EngineSpec& spec)
      : spec_(spec),
        jobs_(spec.setup.slots, spec.prefetch ? prefetch_of(spec.setup.slots, kAssumedSeconds) : 0,
              HeldAnswers(spec.setup.work_folder)) {}
  ~EngineSupervisor() override;
  EngineSupervisor(const EngineSupervisor&) = delete;
  EngineSupervisor& operator=(const EngineSupervisor&) = delete;

  Result<void> start(int wake);
  size_t room() const override { return failure_ ? 0 : jobs_.room(); }
  Result<void> submit(Job job, SharedFiles files) override;
  void release(uint32_t id) override;
  Result<Heard> wait(util::Nanoseconds timeout, int wake) override;

 private:
  struct Running {
    explicit Running(std::unique_ptr<EngineProcess> started, SourceSets& sets)
        : process(std::move(started)), sources(sets) {}
    std::unique_ptr<EngineProcess> process;
    EngineSets sources;
  };
  struct Sent {
    base::Bytes frame;  // of the job, for as often as it is sent
    uint32_t set = 0;
    EngineNumber engine = 0;  // that has it now, 0 = none
  };

  void act();
  bool has_enough() const;
  void carry_out(const StartEngine& action);
  void carry_out(const SendJob& action);
  void carry_out(const EndEngine& action) { end(action.engine); }
  void carry_out(const FreeKeys& action) { let_go(action.engine, action.job); }
  void carry_out(const TellStarted& action);
  void carry_out(Answer& action);
  void carry_out(Note& action) { heard_.notes.push_back(std::move(action.text)); }
  void end(EngineNumber number);
  void let_go(EngineNumber number, uint32_t id);
  void learn(double seconds);
  void hear(EngineNumber number);
  void leave(EngineNumber number, uint32_t id);
  bool has_news(Clock::time_point now) const;
  Clock::time_point wake_up_time(Clock::time_point latest) const;
  void look_at_clock();
  void listened(Clock::time_point from, Clock::time_point until);
  void poll_engines(Clock::time_point until, int wake);

  const EngineSpec spec_;
  Jobs jobs_;
  SourceSets sets_;  // before engines_, which give theirs back
  std::map<EngineNumber, Running> engines_;
  std::unordered_map<uint32_t, Sent> sent_;
  Heard heard_;
  Clock::time_point started_since_{};  // of the first in heard_.started
  std::optional<base::Error> failure_;
  Clock::time_point next_trim_{};
  Clock::time_point last_listened_ = Clock::now();
  Clock::time_point quiet_until_{};
  double seconds_ = kAssumedSeconds;  // of a compile, those of late counting most
};

EngineSupervisor::~EngineSupervisor() {
  for (auto& [number, running] : engines_) running.process->begin_stop();
  engines_.clear();
  if (!spec_.setup.work_folder.empty()) static_cast<void>(base::remove_tree(spec_.setup.work_folder));
}

Result<void> EngineSupervisor::start(int wake) {
  act();
  while (!failure_ && !heard_.woken && !engines_.empty() && !engines_.begin()->second.process->greeted()) {
    poll_engines(wake_up_time(Clock::time_point::max()), wake);
    look_at_clock();
    act();
  }
  if (!failure_) return {};
  base::Error error = *failure_;
  if (error.hint.empty()) error.hint = "kc and kc-engine belong together: install both again";
  return std::unexpected(std::move(error));
}

Result<void> EngineSupervisor::submit(Job job, SharedFiles files) {
  if (sent_.contains(job.id)) {
    return base::fail(base::ErrorKind::kInternal, "a job was submitted twice: " + util::escape(job.unit));
  }
  Sent sent;
  sent.set = sets_.take(files);
  job.sources = sent.set;
  auto frame = encode_bounded(job);
  // The files are encoded when they are sent; a little more than they take then.
  uint64_t files_size = 64;
  for (const backend::Source& file : *files) files_size += file.bytes.size() + file.identifier.size() + 16;
  if (!frame || files_size > kMaxFrame) {
    sets_.give_back(sent.set);
    if (!frame) return std::unexpected(std::move(frame).error());
    return base::fail(base::ErrorKind::kFailed,
                      util::format("its sources are too large to hand to the engine: {}, more than {}",
                                   util::size_text(files_size), util::size_text(kMaxFrame)));
  }
  sent.frame = std::move(*frame);
  sent_[job.id] = std::move(sent);
  jobs_.submit({job.id, std::move(job.unit), run_kind(job.backend), job.timeout});
  act();
  return {};
}

void EngineSupervisor::release(uint32_t id) {
  if (const std::optional<EngineNumber> number = jobs_.release(id)) let_go(*number, id);
  act();
}

void EngineSupervisor::let_go(EngineNumber number, uint32_t id) {
  const auto found = engines_.find(number);
  if (found != engines_.end()) found->second.process->send(encode(Release{id}));
}

// An engine that cannot be started ends all. What was answered by then counts all the same.
void EngineSupervisor::act() {
  if (failure_) return;
  failure_ = jobs_.failure();
  for (Action& action : jobs_.take_actions()) {
    if (failure_ && !std::holds_alternative<Answer>(action)) continue;
    std::visit([&](auto& what) { carry_out(what); }, action);
  }
  // Otherwise the next wait() sends it, with more.
  if (has_enough()) return;
  for (const auto& [number, running] : engines_) running.process->flush();
}

// There is one engine, and its slots will be busy for a while.
bool EngineSupervisor::has_enough() const {
  return engines_.size() == 1 &&
         static_cast<double>(jobs_.prefetched()) * seconds_ >= kEnoughSeconds * spec_.setup.slots;
}

void EngineSupervisor::carry_out(const StartEngine& action) {
  Setup setup = spec_.setup;
  setup.slots = action.slots;
  setup.work_folder = base::join_path(setup.work_folder, util::format("engine-{}", action.engine));
  auto process = EngineProcess::spawn(spec_.program, setup);
  if (!process) {
    failure_ = std::move(process).error();
    return;
  }
  engines_.try_emplace(action.engine, std::move(*process), sets_);
}

void EngineSupervisor::carry_out(const SendJob& action) {
  const auto found = engines_.find(action.engine);
  if (found == engines_.end()) return;  // it died after that was decided, and the job is sent again
  Running& running = found->second;
  Sent& sent = sent_.at(action.job);
  if (running.sources.use(sent.set)) {
    running.process->send(encode(Sources{sent.set, *sets_.files(sent.set)}));
  }
  running.process->send(sent.frame);
  sent.engine = action.engine;
}

void EngineSupervisor::carry_out(const TellStarted& action) {
  if (heard_.started.empty()) started_since_ = Clock::now();
  heard_.started.push_back({action.job});
}

bool EngineSupervisor::has_news(Clock::time_point now) const {
  return !heard_.done.empty() || !heard_.notes.empty() ||
         (!heard_.started.empty() && now >= started_since_ + kStartedWaits);
}

// The engine has it no more: it has ended there.
void EngineSupervisor::leave(EngineNumber number, uint32_t id) {
  const auto sent = sent_.find(id);
  if (sent == sent_.end() || sent->second.engine != number) return;
  const auto running = engines_.find(std::exchange(sent->second.engine, 0));
  if (running == engines_.end()) return;
  if (const std::optional<uint32_t> forgotten = running->second.sources.leave(sent->second.set)) {
    running->second.process->send(encode(Forget{*forgotten}));
  }
}

void EngineSupervisor::carry_out(Answer& action) {
  const auto sent = sent_.find(action.done.id);
  sets_.give_back(sent->second.set);
  sent_.erase(sent);
  heard_.done.push_back(std::move(action.done));
}

void EngineSupervisor::end(EngineNumber number) {
  engines_.erase(number);
  for (auto& [id, sent] : sent_) {
    if (sent.engine == number) sent.engine = 0;
  }
}

void EngineSupervisor::learn(double seconds) {
  if (!spec_.prefetch) return;
  seconds_ += (std::max(seconds, 1e-6) - seconds_) / 8;
  jobs_.set_prefetch(prefetch_of(spec_.setup.slots, seconds_));
}

void EngineSupervisor::hear(EngineNumber number) {
  const auto found = engines_.find(number);
  if (found == engines_.end()) return;
  EngineProcess::Heard heard = found->second.process->receive();
  const auto now = Clock::now();
  for (Message& message : heard.messages) {
    bool is_possible = true;
    if (const auto* started = std::get_if<Started>(&message)) {
      is_possible = jobs_.started(number, started->id, now);
    } else if (auto* done = std::get_if<Done>(&message)) {
      const uint32_t id = done->id;
      if (done->state == JobState::kCompiled) {
        learn(done->seconds);
        const bool is_small = done->artifact.code.size() + done->artifact.report.size() <= kSmallAnswer;
        if (is_small)
          quiet_until_ = now + quiet_time(spec_.setup.slots, seconds_, kQuietSeconds, kMostAnswers);
      }
      is_possible = jobs_.done(number, std::move(*done));
      if (is_possible) leave(number, id);
    }
    if (!is_possible) {
      heard.death = Death{Death::Cause::kDamage, 0, {}, {}};
      break;
    }
  }
  if (!heard.death) return;
  end(number);
  jobs_.died(number, *heard.death);
}

Clock::time_point EngineSupervisor::wake_up_time(Clock::time_point latest) const {
  if (!heard_.started.empty()) latest = std::min(latest, started_since_ + kStartedWaits);
  if (const auto deadline = jobs_.next_deadline()) latest = std::min(latest, *deadline);
  for (const auto& [number, running] : engines_) {
    if (!running.process->greeted()) latest = std::min(latest, running.process->greeting_deadline());
  }
  return latest;
}

// After all that engines have said was heard.
void EngineSupervisor::look_at_clock() {
  const auto now = Clock::now();
  std::vector<EngineNumber> silent;
  for (const auto& [number, running] : engines_) {
    if (!running.process->greeted() && now >= running.process->greeting_deadline()) silent.push_back(number);
  }
  for (const EngineNumber number : silent) {
    const Death death = engines_.at(number).process->silent();
    end(number);
    jobs_.died(number, death);
  }
  jobs_.expire(now);
  if (now < next_trim_) return;
  next_trim_ = now + kTrimLogsEvery;
  for (const auto& [number, running] : engines_) running.process->trim_log();
}

// Was waiting for engines from `from` on, until `until` at the latest. All other time kc was busy or stopped:
// what they said meanwhile lies in their connections, in part, and jobs that wait to say that they have ended
// are not late.
void EngineSupervisor::listened(Clock::time_point from, Clock::time_point until) {
  const auto now = Clock::now();
  const auto away = from - last_listened_ + (now - std::clamp(until, from, std::max(from, now)));
  last_listened_ = now;
  if (away >= kAway) jobs_.postpone(away);
}

void EngineSupervisor::poll_engines(Clock::time_point until, int wake) {
  std::vector<pollfd> waiting;
  std::vector<EngineNumber> numbers;
  const auto from = Clock::now();
  const bool is_quiet = from < quiet_until_ && has_enough();
  if (is_quiet) until = std::min(until, quiet_until_);
  for (const auto& [number, running] : engines_) {
    running.process->flush();
    short events = running.process->wants_to_write() ? POLLIN | POLLOUT : POLLIN;
    if (is_quiet) events &= static_cast<short>(~POLLIN);
    waiting.push_back({running.process->socket(), events, 0});
    waiting.push_back({running.process->pidfd(), POLLIN, 0});
    numbers.push_back(number);
  }
  if (wake >= 0) waiting.push_back({wake, POLLIN, 0});
  const util::Nanoseconds left =
      until == Clock::time_point::max() ? std::chrono::hours(1) : util::Nanoseconds(until - from);
  const int ready = ::poll(waiting.data(), waiting.size(), poll_milliseconds(left));
  listened(from, until);
  if (ready <= 0) return;  // time is over, or a signal
  if (wake >= 0 && waiting.back().revents != 0) heard_.woken = true;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const short socket = waiting[2 * i].revents;
    if ((socket & POLLOUT) != 0) engines_.at(numbers[i]).process->flush();
    if ((socket & ~POLLOUT) != 0 || waiting[2 * i + 1].revents != 0) hear(numbers[i]);
  }
}

Result<Supervisor::Heard> EngineSupervisor::wait(util::Nanoseconds timeout, int wake) {
  const auto start = Clock::now();
  const auto latest = timeout > std::chrono::hours(24) ? start + std::chrono::hours(24) : start + timeout;
  do {
    act();
    if (failure_) break;
    const bool is_known = has_news(Clock::now()) || heard_.woken;
    poll_engines(is_known ? start : wake_up_time(latest), wake);
    look_at_clock();
    act();
  } while (!failure_ && !has_news(Clock::now()) && !heard_.woken && Clock::now() < latest);
  if (failure_ && heard_.done.empty()) return std::unexpected(*failure_);
  return std::exchange(heard_, {});
}

// What is not empty belongs to somebody, and would be lost with the supervisor.
Result<void> require_empty(const std::string& folder) {
  KC_ASSIGN(const base::FileDescriptor directory,
            base::open_at(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0, base::ErrorKind::kEnvironment));
  KC_ASSIGN(const std::vector<std::string> names, base::list_directory(directory.get(), folder));
  if (names.empty()) return {};
  return base::fail(base::ErrorKind::kInternal,
                    util::format("{} was to be the work folder of engines, but is not empty: it has {}",
                                 util::escape(folder), util::escape(names.front())),
                    "this is a fault of kc; nothing was removed");
}

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::start(const EngineSpec& spec, int wake) {
  KC_TRY(require_empty(spec.setup.work_folder));
  auto supervisor = std::make_unique<EngineSupervisor>(spec);
  KC_TRY(supervisor->start(wake));
  return supervisor;
}

std::string engine_path(const std::string& program) {
  return base::join_path(base::parent_path(base::parent_path(program)), "libexec/kc/kc-engine");
}

}  // namespace kc::engine
