// kc plan: what a build would find, without doing any of it.
#include <algorithm>
#include <unordered_map>

#include "base/parallel.h"
#include "build/build.h"
#include "build/prepare.h"
#include "build/store_holder.h"
#include "build/stored_state.h"
#include "util/limits.h"

namespace kc::build {
namespace {

// Looking at an entry's header is bound by the file system: more threads than this gained nothing.
constexpr unsigned kLookThreads = 8;

class Planner {
 public:
  Planner(const Options& options, Listener& listener)
      : options_(options), listener_(listener), holder_(options.store, listener) {}
  int run();

 private:
  void load_earlier();
  void decide_units();
  void expect_times();
  std::optional<double> known_seconds(size_t index) const;
  std::optional<double> median_seconds() const;
  int tell();

  const Options& options_;
  Listener& listener_;
  StoreHolder holder_;
  std::optional<StoredState> stored_;
  std::optional<State> earlier_;  // with its units; only when there are misses
  Memory memory_;
  std::optional<Prepared> prepared_;
  std::vector<UnitState> states_;  // parallel to prepared_->units
  std::vector<std::optional<base::Digest>>
      contents_;  // content keys, as far as records tell them; parallel too
  // Seconds that each unit adds to the whole; unset when nothing is known. Parallel to prepared_->units.
  std::vector<std::optional<double>> shares_;
};

void Planner::load_earlier() {
  const auto manifest = base::absolute_path(options_.manifest);
  if (!manifest || holder_.get() == nullptr) return;
  stored_ = load_state(*holder_.get(), options_, *manifest, {}, listener_);
}

void Planner::decide_units() {
  std::vector<store::Held> held(prepared_->units.size(), store::Held::kNothing);
  contents_.resize(held.size());
  const auto look = [&](store::Store& store, size_t i) {
    const ChosenUnit& chosen = prepared_->units[i];
    contents_[i] = chosen.has_request ? store.recorded(chosen.key) : std::optional(chosen.key);
    if (contents_[i]) held[i] = store.holds(*contents_[i]);
  };
  if (store::Store* store = holder_.get()) {
    base::parallel_for(held.size(), std::min(util::allowed_cpus(), kLookThreads),
                       [&](size_t i) { look(*store, i); });
  }
  for (size_t i = 0; i < held.size(); ++i) {
    UnitState state = UnitState::kPending;
    if (prepared_->units[i].refused) {
      state = UnitState::kFailed;
    } else if (held[i] == store::Held::kCode) {
      state = UnitState::kHit;
    } else if (held[i] == store::Held::kUnsupported && prepared_->kernel(i).skip_unsupported) {
      state = UnitState::kSkipped;
    }
    states_.push_back(state);
  }
}

// What an earlier build took for a unit of this name.
std::optional<double> Planner::known_seconds(size_t index) const {
  const auto found = memory_.find(prepared_->unit(index).name);
  return found != memory_.end() && found->second->seconds > 0 ? std::optional(found->second->seconds)
                                                              : std::nullopt;
}

// Over the units of this plan, hits included: new ones are most like their neighbours.
std::optional<double> Planner::median_seconds() const {
  std::vector<double> known;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (const auto seconds = known_seconds(i)) known.push_back(*seconds);
  }
  if (known.empty()) return std::nullopt;
  const auto middle = known.begin() + static_cast<ptrdiff_t>(known.size() / 2);
  std::ranges::nth_element(known, middle);
  return *middle;
}

void Planner::expect_times() {
  shares_.resize(states_.size());
  if (!stored_ || std::ranges::find(states_, UnitState::kPending) == states_.end()) return;
  earlier_ = decode_state(stored_->bytes, true);
  if (!earlier_) return;
  memory_ = memory_of(*earlier_);
  const std::optional<double> median = median_seconds();
  if (!median) return;  // nothing is known
  struct Job {
    size_t first = 0;  // of its units
    std::optional<double> seconds;
  };
  std::unordered_map<base::Digest, Job> jobs;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] != UnitState::kPending) continue;
    Job& job = jobs.try_emplace(prepared_->units[i].key, Job{i, {}}).first->second;
    if (!job.seconds) job.seconds = known_seconds(i);
    shares_[i] = 0;
  }
  for (const auto& [key, job] : jobs) shares_[job.first] = job.seconds ? job.seconds : median;
}

int Planner::tell() {
  Summary summary;
  summary.units = states_.size();
  std::vector<std::optional<size_t>> of_kernel(prepared_->plan.kernels.size());
  std::optional<double> total;
  for (size_t i = 0; i < states_.size(); ++i) {
    const manifest::Unit& unit = prepared_->unit(i);
    std::optional<size_t>& at = of_kernel[unit.kernel];
    if (!at) {
      at = summary.kernels.size();
      summary.kernels.emplace_back().name = prepared_->kernel(i).name;
    }
    KernelSummary& kernel = summary.kernels[*at];
    ++kernel.units;
    if (std::ranges::find(kernel.targets, unit.target.text) == kernel.targets.end()) {
      kernel.targets.push_back(unit.target.text);
    }
    UnitResult result;
    result.state = states_[i];
    const ChosenUnit& chosen = prepared_->units[i];
    if (chosen.has_request) result.request_key = chosen.key;
    result.key = chosen.has_request ? contents_[i] : chosen.key;
    switch (result.state) {
      case UnitState::kHit:
        ++kernel.hits;
        ++summary.hits;
        break;
      case UnitState::kSkipped:
        ++kernel.skipped;
        ++summary.skipped;
        break;
      case UnitState::kFailed:
        ++kernel.failed;
        ++summary.failed;
        result.error = *prepared_->units[i].refused;
        break;
      default: {
        result.expected_seconds = known_seconds(i);
        if (!shares_[i]) break;
        kernel.expected_seconds = kernel.expected_seconds.value_or(0) + *shares_[i];
        total = total.value_or(0) + *shares_[i];
      }
    }
    listener_.unit(prepared_->plan, unit, result);
  }
  summary.expected_seconds = total;
  listener_.summary(summary);
  return summary.failed == 0 ? 0 : static_cast<int>(base::ErrorKind::kFailed);
}

int Planner::run() {
  if (auto opened = holder_.open(); !opened) {
    listener_.error(opened.error());
    return static_cast<int>(opened.error().kind);
  }
  load_earlier();
  // What the last build learned of the compilers saves hashing them.
  auto prepared = prepare(options_, stored_ ? &stored_->head : nullptr, listener_);
  if (!prepared) return static_cast<int>(prepared.error());
  prepared_ = std::move(*prepared);
  decide_units();
  expect_times();
  return tell();
}

}  // namespace

int plan(const Options& options, Listener& listener) {
  return Planner(options, listener).run();
}

}  // namespace kc::build
