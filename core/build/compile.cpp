// Pass: the misses run in the engine. The queue, its order and all decisions are here; the engine only
// compiles, and its supervisor sees to it that each job is answered.
#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string_view>
#include <unordered_set>

#include "base/atomic_file.h"
#include "build/job_files.h"
#include "build/keep.h"
#include "build/work.h"
#include "engine/order.h"
#include "engine/supervisor.h"
#include "util/limits.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;
using engine::JobState;
using util::Clock;

// A key that another process compiles is asked for again after a random while, so that two waiting builds do
// not keep step.
constexpr int64_t kPollLeastMs = 10;
constexpr int64_t kPollMostMs = 50;
// The status line is brought up to date at least this often (time left).
constexpr auto kTick = std::chrono::seconds(1);

struct Waiting {
  uint32_t unit = 0;               // index into prepared.units: the first miss of its key
  std::optional<double> expected;  // seconds, from an earlier build
  std::optional<Clock::time_point> busy_since;
  std::optional<base::Digest> content;  // the content key that is busy, if it came so far
  Clock::time_point not_before{};
  bool is_started = false;
};

class Misses {
 public:
  explicit Misses(Work& work) : work_(work) {}
  Result<void> run();

 private:
  void queue_misses();
  Result<void> start_engine();
  uint64_t peak_bytes(const std::unordered_set<std::string_view>& backends) const;
  unsigned choose_slots();
  Result<void> fill_slots();
  std::optional<Waiting> next_ready();
  util::Nanoseconds time_to_wait() const;
  Result<void> ended(engine::Done done);
  Result<void> arrived(const Waiting& waiting, UnitState state, engine::Done& done);
  Result<void> serve_busy(const base::Digest& content, const artifact::Artifact& artifact,
                          const Arrival& arrival);
  void busy(Waiting waiting, const engine::Done& done);
  base::Place place_of(uint32_t index, const engine::Done& done) const;
  void failed(uint32_t index, const engine::Done& done);
  void unsupported(uint32_t index, const engine::Done& done);
  void is_over(const Waiting& waiting);
  void forget_expected(const Waiting& waiting);
  void stop(Error error);
  void stop_after_failures();
  void tell_progress();
  engine::Job job_of(const Waiting& waiting) const;

  Work& work_;
  Keeper keeper_{work_};
  JobFiles files_{work_.prepared};
  std::deque<Waiting> queue_;
  std::vector<Waiting> busy_;
  std::map<uint32_t, Waiting> running_;
  std::unique_ptr<engine::Supervisor> engine_;
  // Over the units that have not ended, those whose time is known.
  double known_seconds_ = 0;
  size_t known_count_ = 0;
  uint64_t keep_going_ = 0;
  unsigned slots_ = 1;
  size_t started_ = 0;  // of running_
  std::minstd_rand random_{static_cast<uint32_t>(base::random_u64())};
};

void Misses::queue_misses() {
  std::vector<uint32_t> units;
  std::vector<std::optional<double>> seconds;
  std::unordered_set<base::Digest> keys;
  for (uint32_t i = 0; i < work_.prepared.units.size(); ++i) {
    if (work_.results[i].state != UnitState::kPending) continue;
    if (!keys.insert(work_.prepared.units[i].key).second) continue;
    units.push_back(i);
    files_.count(i);
    const auto found = work_.memory.find(work_.prepared.unit(i).name);
    seconds.push_back(found != work_.memory.end() && found->second->seconds > 0
                          ? std::optional(found->second->seconds)
                          : std::nullopt);
  }
  for (const uint32_t at : engine::longest_first(seconds)) {
    queue_.push_back({units[at], seconds[at], {}, {}, {}, false});
    if (!seconds[at]) continue;
    known_seconds_ += *seconds[at];
    ++known_count_;
  }
}

// The most that a job of `backends` was seen to need, by what the last build knew of this plan's units.
uint64_t Misses::peak_bytes(const std::unordered_set<std::string_view>& backends) const {
  uint64_t peak = 0;
  for (size_t i = 0; i < work_.prepared.units.size(); ++i) {
    if (!backends.contains(work_.prepared.kernel(i).backend)) continue;
    const auto known = work_.memory.find(work_.prepared.unit(i).name);
    if (known != work_.memory.end()) peak = std::max(peak, known->second->peak_bytes);
  }
  return peak;
}

unsigned Misses::choose_slots() {
  std::unordered_set<std::string_view> backends;  // those with misses
  for (const Waiting& waiting : queue_) backends.insert(work_.prepared.kernel(waiting.unit).backend);
  engine::SlotLimits limits;
  limits.jobs = work_.options.jobs;
  limits.cpus = util::allowed_cpus();
  limits.free_bytes = util::available_memory();
  limits.peak_bytes = peak_bytes(backends);
  limits.children = std::ranges::any_of(backends, [](std::string_view name) {
    return backend::find_description(name)->run == backend::RunKind::kChild;
  });
  limits.address_space = util::address_space_limit();
  limits.processes_left = util::processes_left();
  limits.open_files = util::open_files_limit();
  const engine::Slots slots = engine::choose_slots(limits);
  if (!slots.why.empty()) work_.listener.note(slots.why);
  return std::min<unsigned>(slots.count, static_cast<unsigned>(queue_.size()));
}

Result<void> Misses::start_engine() {
  slots_ = choose_slots();
  engine::EngineSpec spec;
  spec.program = engine::engine_path(work_.options.program);
  spec.setup.compilers = work_.prepared.compilers;
  spec.setup.slots = slots_;
  spec.prefetch = keep_going_ == 0;  // with a limit of failures no job may be out of reach
  spec.setup.store_mode = store::Mode::kOff;
  if (work_.store != nullptr) {
    spec.setup.store_directory = work_.store->options().directory;
    spec.setup.read_only_directories = work_.store->options().read_only_directories;
    spec.setup.store_mode = work_.store->options().mode;
  }
  auto folder = work_.store != nullptr ? work_.store->make_work_folder()
                                       : base::fail(ErrorKind::kEnvironment, "there is no store");
  if (!folder) {
    const std::string path =
        base::join_path(work_.options.store.temporary_folder, base::unique_name("kc-jobs-"));
    KC_TRY(base::make_directories(path, 0700));
    folder = path;
  }
  spec.setup.work_folder = std::move(*folder);
  KC_ASSIGN(engine_, engine::Supervisor::start(spec, work_.signals.descriptor()));
  return {};
}

engine::Job Misses::job_of(const Waiting& waiting) const {
  const ChosenUnit& chosen = work_.prepared.units[waiting.unit];
  const manifest::Unit& unit = work_.prepared.unit(waiting.unit);
  engine::Job job;
  job.id = waiting.unit;
  job.backend = work_.prepared.kernel(waiting.unit).backend;
  job.unit = unit.name;
  job.key = chosen.key;
  job.entry = unit.entry;
  job.target = unit.target.text;
  job.options = unit.options;
  job.config = unit.config;
  job.timeout = chosen.timeout;
  job.waited = waiting.busy_since.has_value();
  const util::Nanoseconds patience = work_.options.lock_timeout.value_or(chosen.timeout);
  job.ignore_lock = waiting.busy_since && Clock::now() - *waiting.busy_since >= patience;
  return job;
}

std::optional<Waiting> Misses::next_ready() {
  if (!queue_.empty()) {
    const Waiting waiting = queue_.front();
    queue_.pop_front();
    return waiting;
  }
  const auto now = Clock::now();
  const auto ready =
      std::find_if(busy_.begin(), busy_.end(), [&](const Waiting& w) { return w.not_before <= now; });
  if (ready == busy_.end()) return std::nullopt;
  const Waiting waiting = *ready;
  busy_.erase(ready);
  return waiting;
}

Result<void> Misses::fill_slots() {
  while (engine_->room() != 0 && !work_.stopped) {
    const std::optional<Waiting> waiting = next_ready();
    if (!waiting) return {};
    const auto sent = engine_->submit(job_of(*waiting), files_.of(waiting->unit));
    if (!sent &&
        sent.error().kind == ErrorKind::kFailed) {  // too large for the engine: this unit's own fault
      is_over(*waiting);
      reject(work_, work_.prepared.units[waiting->unit].key, sent.error(), {});
      stop_after_failures();
      continue;
    }
    KC_TRY(sent);
    running_[waiting->unit] = *waiting;
  }
  return {};
}

util::Nanoseconds Misses::time_to_wait() const {
  util::Nanoseconds time = kTick;
  if (engine_->room() == 0 || !queue_.empty() || work_.stopped) return time;
  const auto now = Clock::now();
  for (const Waiting& waiting : busy_) {
    time = std::clamp<util::Nanoseconds>(waiting.not_before - now, util::Nanoseconds(0), time);
  }
  return time;
}

void Misses::forget_expected(const Waiting& waiting) {
  if (!waiting.expected) return;
  known_seconds_ -= *waiting.expected;
  --known_count_;
}

// A job that will not be asked for again.
void Misses::is_over(const Waiting& waiting) {
  forget_expected(waiting);
  files_.ended(waiting.unit);
}

void Misses::stop(Error error) {
  if (!work_.stopped) work_.stopped = std::move(error);
}

UnitResult details_of(const engine::Done& done) {
  UnitResult details;
  details.key = done.content_key;
  details.seconds = done.seconds;
  details.peak_bytes = done.peak_bytes;
  details.compiler_version = done.artifact.compiler_version;
  details.diagnostics = done.artifact.diagnostics;
  return details;
}

// Where somebody has to look: the kernel in the manifest, unless the compiler itself names a place, or it is
// the compiler that failed.
base::Place Misses::place_of(uint32_t index, const engine::Done& done) const {
  const bool is_own_answer = done.state == JobState::kFailed || done.state == JobState::kUnsupported;
  const auto has_place = [](const artifact::Diagnostic& diagnostic) { return !diagnostic.file.empty(); };
  const bool is_told = std::ranges::any_of(done.artifact.diagnostics, has_place);
  return is_own_answer && !is_told ? work_.prepared.kernel(index).place : base::Place{};
}

void Misses::failed(uint32_t index, const engine::Done& done) {
  UnitResult details = details_of(done);
  details.output = done.output;
  Error error{ErrorKind::kFailed, done.message, place_of(index, done), done.hint};
  keeper_.keep_failure(index, done, error, details);
  reject(work_, work_.prepared.units[index].key, error, details);
}

// The compiler has no code for this target. Kernels that allow it are done with it, and the answer is kept
// for the next time; for the others it is a failure.
void Misses::unsupported(uint32_t index, const engine::Done& done) {
  const base::Digest key = work_.prepared.units[index].key;
  const std::vector<uint32_t>& units = work_.by_key.at(key);
  const auto is_pending = [&](uint32_t i) { return work_.results[i].state == UnitState::kPending; };
  engine::Done answer = done;
  std::vector<artifact::Diagnostic>& diagnostics = answer.artifact.diagnostics;
  if (diagnostics.empty() || diagnostics.front().message != done.message) {
    // First, so that whoever finds the answer in the store can say the same.
    diagnostics.insert(diagnostics.begin(), {artifact::Severity::kError, {}, done.message, {}, 0, 0});
  }
  const Error why{ErrorKind::kFailed, done.message, {}, done.hint};
  UnitResult details = details_of(answer);
  details.key = keeper_.content_of(index, done);
  if (skip(work_, key, why, details)) keeper_.put(index, *details.key, answer, {}, true);
  if (std::ranges::any_of(units, is_pending)) failed(index, done);
}

// Failures of all kinds count: compilers' and limits'.
void Misses::stop_after_failures() {
  if (keep_going_ == 0 || work_.progress.failed < keep_going_) return;
  stop({ErrorKind::kFailed,
        util::format("stopped after {}", util::counted(work_.progress.failed, "failure"))});
}

// Somebody else has one of the job's keys: it is asked for again later.
void Misses::busy(Waiting waiting, const engine::Done& done) {
  const auto now = Clock::now();
  if (!waiting.busy_since) waiting.busy_since = now;
  std::uniform_int_distribution<int64_t> pause(kPollLeastMs, kPollMostMs);
  waiting.not_before = now + std::chrono::milliseconds(pause(random_));
  waiting.content = done.content_key;
  waiting.is_started = false;
  busy_.push_back(waiting);
}

Result<void> Misses::arrived(const Waiting& waiting, UnitState state, engine::Done& done) {
  const uint32_t index = waiting.unit;
  const base::Digest content = keeper_.content_of(index, done);
  const base::Digest code_digest = base::sha256(done.artifact.code);
  if (state == UnitState::kCompiled) {
    keeper_.put(index, content, done, code_digest, false);
  } else {
    keeper_.put_record(index, content);
  }
  const Arrival arrival{state, done.seconds, done.peak_bytes, code_digest, done.content_key, done.signers};
  KC_TRY(accept(work_, work_.prepared.units[index].key, done.artifact, arrival));
  return done.content_key ? serve_busy(content, done.artifact, arrival) : Result<void>();
}

// Jobs of this build that waited for just this content key: they have other requests and the same code.
Result<void> Misses::serve_busy(const base::Digest& content, const artifact::Artifact& artifact,
                                const Arrival& arrival) {
  for (size_t i = 0; i < busy_.size();) {
    if (busy_[i].content != content) {
      ++i;
      continue;
    }
    const Waiting waiting = busy_[i];
    busy_.erase(busy_.begin() + static_cast<ptrdiff_t>(i));
    is_over(waiting);
    keeper_.put_record(waiting.unit, content);
    if (work_.store != nullptr) work_.store->found_later(arrival.seconds);
    KC_TRY(accept(work_, work_.prepared.units[waiting.unit].key, artifact,
                  {UnitState::kHit, arrival.seconds, arrival.peak_bytes, arrival.code_digest, content,
                   arrival.signers}));
  }
  return {};
}

Result<void> Misses::ended(engine::Done done) {
  const auto found = running_.find(done.id);
  if (found == running_.end()) {
    return base::fail(ErrorKind::kInternal, "the engine answered a job that it was not given");
  }
  const Waiting waiting = found->second;
  running_.erase(found);
  if (waiting.is_started) --started_;
  Result<void> result;
  switch (done.state) {
    case JobState::kCompiled:
      result = arrived(waiting, UnitState::kCompiled, done);
      break;
    case JobState::kHit:
      if (work_.store != nullptr) work_.store->found_later(done.seconds);
      result = arrived(waiting, UnitState::kHit, done);
      break;
    case JobState::kBusy:
      busy(waiting, done);
      break;
    case JobState::kFailed:
    case JobState::kTimeout:
    case JobState::kCrashed:
    case JobState::kTainted:
      failed(waiting.unit, done);
      break;
    case JobState::kUnsupported:
      unsupported(waiting.unit, done);
      break;
    case JobState::kChanged:
    case JobState::kEnvironment:
      stop({ErrorKind::kEnvironment,
            util::format("{}: {}", work_.prepared.unit(waiting.unit).name, done.message),
            {},
            done.hint});
      break;
  }
  if (done.holds_key) engine_->release(done.id);
  KC_TRY(result);
  if (done.state != JobState::kBusy) is_over(waiting);
  stop_after_failures();
  return {};
}

void Misses::tell_progress() {
  Progress& progress = work_.progress;
  // Those whose answers the supervisor holds back, for what runs beside them, count as started.
  progress.running = std::min<size_t>(started_, slots_);
  progress.seconds_left.reset();
  const size_t left = queue_.size() + busy_.size() + running_.size();
  // An estimate from half of the units is shown; from fewer it would mislead.
  if (known_count_ * 2 >= left && known_count_ > 0) {
    progress.seconds_left =
        known_seconds_ / static_cast<double>(known_count_) * static_cast<double>(left) / slots_;
  }
  work_.listener.progress(progress);
}

Result<void> Misses::run() {
  queue_misses();
  if (queue_.empty()) return {};
  keep_going_ = work_.options.keep_going.value_or(work_.prepared.plan.settings.keep_going.value_or(0));
  stop_after_failures();
  if (work_.stopped || work_.interrupted()) return {};
  KC_TRY(start_engine());
  while (!running_.empty() || ((!queue_.empty() || !busy_.empty()) && !work_.stopped)) {
    KC_TRY(fill_slots());
    tell_progress();
    auto heard = engine_->wait(time_to_wait(), work_.signals.descriptor());
    if (!heard) {
      if (work_.interrupted()) return {};  // whoever ended this build may have ended its engine too
      return std::unexpected(std::move(heard).error());
    }
    if (heard->woken && work_.interrupted()) return {};
    for (const std::string& note : heard->notes) work_.listener.note(note);
    for (const engine::Started& started : heard->started) {
      const auto job = running_.find(started.id);
      if (job == running_.end() || job->second.is_started) continue;
      job->second.is_started = true;
      ++started_;
    }
    for (engine::Done& done : heard->done) KC_TRY(ended(std::move(done)));
  }
  return {};
}

}  // namespace

Result<void> compile_misses(Work& work) {
  return Misses(work).run();
}

}  // namespace kc::build
