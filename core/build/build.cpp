#include "build/build.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "build/keys.h"
#include "build/store_holder.h"
#include "build/work.h"
#include "bundle/bundle.h"
#include "engine/wire.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;

int code_of(ErrorKind kind) {
  return static_cast<int>(kind);
}

// An unchanged build marks its entries as used once a day, so that a collection by age or size sees them.
constexpr int64_t kTouchSeconds = 24 * 3600;

void note_key_format(const State& earlier, Listener& listener) {
  if (earlier.key_domain != kContentDomain) {
    listener.note("key format changed: everything is compiled once more");
  }
}

// One build from state to state. The passes stand in run() in their order.
class Build {
 public:
  Build(const Options& options, Listener& listener, util::SignalWatch& signals)
      : options_(options),
        listener_(listener),
        signals_(signals),
        started_ns_(base::wall_clock_ns()),
        holder_(options.store, listener) {}

  int run();

 private:
  bool is_unchanged();
  Result<std::string> choose_output(const manifest::Plan& plan) const;
  void count_units();
  void tell_units();
  int fail(const Error& error);
  int exit_code() const;
  void list_missing();
  void save_state(const std::string& output, const base::FileTuple& tuple);
  void warn_of_store();
  int finish(int code);

  const Options& options_;
  Listener& listener_;
  util::SignalWatch& signals_;
  const int64_t started_ns_;
  util::Stopwatch clock_;
  StoreHolder holder_;
  std::string manifest_;
  std::string output_option_;  // -o, absolute; empty when not given
  base::Digest state_id_;
  std::optional<State> earlier_;
  std::optional<Work> work_;
  Summary summary_;
};

int Build::fail(const Error& error) {
  listener_.error(error);
  return code_of(error.kind);
}

// Pass 1. Afterwards: earlier_ holds what the last build saw, if it can be had.
bool Build::is_unchanged() {
  store::Store* store = holder_.get();
  if (store == nullptr || store->options().mode == store::Mode::kRefresh) return false;
  const std::optional<base::Bytes> bytes = store->load_state(state_id_);
  if (!bytes) return false;
  std::optional<State> state = decode_state(*bytes, false);
  if (!state) return false;
  // A dry run and --require-cached ask about the units, not about the output.
  if (state->build_id == engine::build_id() && !options_.dry_run && !options_.require_cached) {
    Freshness freshness = check_state(*state, options_.search, started_ns_);
    if (freshness != Freshness::kChanged) {
      const int64_t now_s = started_ns_ / 1'000'000'000;
      const bool touch = now_s - state->touched_s > kTouchSeconds;
      if (touch || freshness == Freshness::kUnchangedRecord) {
        if (auto whole = decode_state(*bytes, true)) {
          state->units = std::move(whole->units);
          if (touch) {
            std::vector<base::Digest> keys;
            for (const UnitMemory& unit : state->units) keys.push_back(unit.key);
            store->touch(keys);
            state->touched_s = now_s;
          }
          store->save_state(state_id_, encode_state(*state));
        }
      }
      summary_.units = summary_.hits = state->unit_count;
      summary_.output = state->output;
      summary_.output_state = OutputState::kUnchanged;
      summary_.nothing_to_do = true;
      return true;
    }
  }
  earlier_ = decode_state(*bytes, true);
  if (earlier_) note_key_format(*earlier_, listener_);
  return false;
}

// Where the bundle goes; empty when none is made.
Result<std::string> Build::choose_output(const manifest::Plan& plan) const {
  if (options_.narrowed() && !options_.output) return std::string();
  KC_ASSIGN(std::string output,
            options_.output ? base::Result<std::string>(output_option_) : base::absolute_path(plan.output));
  struct stat status;
  if (::stat(output.c_str(), &status) != 0) return output;
  if (S_ISDIR(status.st_mode)) {
    return base::fail_at(ErrorKind::kInput, {output}, "is a directory; the output is a .kcb file",
                         "name another with -o");
  }
  if (!S_ISREG(status.st_mode)) {
    return base::fail_at(ErrorKind::kInput, {output}, "is not a regular file", "name another with -o");
  }
  if (!options_.output && !bundle::looks_like_bundle(output)) {
    return base::fail_at(ErrorKind::kInput, {output}, "exists and is no bundle, so it is not replaced",
                         "remove it, or name it with -o");
  }
  return output;
}

void Build::list_missing() {
  for (size_t i = 0; i < work_->prepared.units.size(); ++i) {
    if (work_->results[i].state != UnitState::kPending) continue;
    listener_.error({ErrorKind::kFailed, work_->prepared.unit(i).name + " is not in the store", {}, {}});
  }
}

// After the last compile: what became of the units is counted, what was not tried is marked.
void Build::count_units() {
  summary_.units = work_->prepared.units.size();
  for (size_t i = 0; i < work_->prepared.units.size(); ++i) {
    UnitResult& result = work_->results[i];
    if (result.state == UnitState::kPending && !options_.dry_run) result.state = UnitState::kNotTried;
    result.key = work_->prepared.units[i].key;
    switch (result.state) {
      case UnitState::kHit:
        ++summary_.hits;
        break;
      case UnitState::kCompiled:
        ++summary_.compiled;
        break;
      case UnitState::kFailed:
        ++summary_.failed;
        break;
      case UnitState::kNotTried:
      case UnitState::kPending:
        ++summary_.not_tried;
        break;
    }
    for (const artifact::Diagnostic& diagnostic : result.diagnostics) {
      if (diagnostic.severity == artifact::Severity::kWarning) ++summary_.warnings;
    }
  }
}

// Last, so that a reader that goes away (`| head`) costs nobody the bundle.
void Build::tell_units() {
  for (size_t i = 0; i < work_->prepared.units.size(); ++i) {
    listener_.unit(work_->prepared.plan, work_->prepared.unit(i), work_->results[i]);
  }
}

int Build::exit_code() const {
  if (work_->stopped && work_->stopped->kind != ErrorKind::kFailed) return code_of(work_->stopped->kind);
  if (summary_.failed != 0 || summary_.not_tried != 0) return code_of(ErrorKind::kFailed);
  return 0;
}

void Build::save_state(const std::string& output, const base::FileTuple& tuple) {
  if (holder_.get() == nullptr || holder_.is_temporary()) return;
  State state;
  state.build_id = engine::build_id();
  state.key_domain = kContentDomain;
  state.recorded_ns = started_ns_;
  state.touched_s = started_ns_ / 1'000'000'000;
  for (const manifest::Input& input : work_->prepared.plan.inputs) {
    state.inputs.push_back({base::absolute_path(input.path).value_or(input.path), input.tuple, input.digest});
  }
  for (size_t i = 0; i < work_->prepared.sources.size(); ++i) {
    const SourceContent& content = work_->prepared.sources[i];
    if (content.digest.is_zero()) continue;  // no chosen unit needs it
    const std::string& path = work_->prepared.plan.sources[i].path;
    state.inputs.push_back({base::absolute_path(path).value_or(path), content.tuple, content.digest});
  }
  state.compilers = work_->prepared.compilers;
  state.output = output;
  state.output_tuple = tuple;
  state.unit_count = work_->prepared.units.size();
  std::unordered_map<std::string_view, const UnitMemory*> before;
  if (earlier_) {
    for (const UnitMemory& unit : earlier_->units) before[unit.name] = &unit;
  }
  for (size_t i = 0; i < work_->prepared.units.size(); ++i) {
    const UnitResult& result = work_->results[i];
    UnitMemory memory{work_->prepared.unit(i).name, result.key, result.seconds, result.peak_bytes};
    // A unit that was not tried keeps what an earlier build learned of it.
    const auto known = before.find(memory.name);
    if (memory.seconds == 0 && known != before.end()) {
      memory.seconds = known->second->seconds;
      memory.peak_bytes = known->second->peak_bytes;
    }
    state.units.push_back(std::move(memory));
  }
  holder_.get()->save_state(state_id_, encode_state(state));
}

void Build::warn_of_store() {
  const store::Store* store = holder_.get();
  if (store == nullptr) return;
  const store::Counters& counters = store->counters();
  const uint64_t faults = counters.corrupt + counters.soft_errors;
  if (faults == 0) return;
  const Error trouble{ErrorKind::kEnvironment,
                      util::format("the store {} had {} ({})", store->options().directory,
                                   util::counted(faults, "fault"), store->first_trouble()),
                      {},
                      "`kc store verify` looks at every entry"};
  if (options_.store.strict) {
    listener_.error(trouble);
  } else {
    listener_.warning(trouble);
    ++summary_.warnings;
  }
}

int Build::finish(int code) {
  if (work_ && holder_.get() != nullptr) holder_.get()->collect_if_due();
  warn_of_store();
  if (code == 0 && options_.store.strict && holder_.get() != nullptr) {
    const store::Counters& counters = holder_.get()->counters();
    if (counters.corrupt + counters.soft_errors != 0) code = code_of(ErrorKind::kEnvironment);
  }
  summary_.seconds = clock_.seconds();
  listener_.summary(summary_);
  return code;
}

int Build::run() {
  auto manifest = base::absolute_path(options_.manifest);
  if (!manifest) return fail(manifest.error());
  manifest_ = std::move(*manifest);
  if (options_.output) {
    auto output = base::absolute_path(*options_.output);
    if (!output) return fail(output.error());
    output_option_ = std::move(*output);
  }
  state_id_ = state_id(options_, manifest_, output_option_);
  if (auto opened = holder_.open(); !opened) return fail(opened.error());

  // 1. Nothing changed since the recorded state: nothing is read.
  if (is_unchanged()) return finish(0);

  // 2. Manifest, sources, compilers, keys.
  auto prepared = prepare(options_, earlier_ ? &*earlier_ : nullptr, listener_);
  if (!prepared) return code_of(prepared.error());
  summary_.warnings += prepared->warnings;
  work_.emplace(Work{options_,
                     listener_,
                     signals_,
                     holder_.get(),
                     earlier_ ? &*earlier_ : nullptr,
                     std::move(*prepared),
                     {},
                     {},
                     {},
                     {},
                     {},
                     {}});
  work_->results.resize(work_->prepared.units.size());
  work_->places.resize(work_->prepared.units.size());
  work_->progress.units = work_->prepared.units.size();

  // 3. The output can be written, before anything is compiled for it.
  auto output = choose_output(work_->prepared.plan);
  if (!output) return fail(output.error());
  const bool packs = !output->empty() && !options_.dry_run;
  if (packs) {
    const std::string folder = base::parent_path(*output);
    if (auto made = base::make_directories(folder); !made) return fail(made.error());
    auto spool = Spool::create(folder);
    if (!spool) return fail(spool.error());
    work_->spool = std::move(*spool);
  }

  // 4. What the store holds.
  if (auto looked = look_up(*work_); !looked) return fail(looked.error());
  const bool missing = std::any_of(work_->results.begin(), work_->results.end(),
                                   [](const UnitResult& r) { return r.state == UnitState::kPending; });
  int code = 0;
  if (options_.require_cached && missing) {
    list_missing();
    code = code_of(ErrorKind::kFailed);
  } else if (!options_.dry_run) {
    // 5. The rest.
    if (auto compiled = compile_misses(*work_); !compiled) {
      listener_.error(compiled.error());
      code = code_of(compiled.error().kind);
    }
  }
  if (work_->stopped) listener_.error(*work_->stopped);
  count_units();
  if (code == 0) code = options_.dry_run && summary_.failed == 0 ? 0 : exit_code();

  // 6. One bundle of all of it, or the old one stays.
  base::FileTuple tuple;
  std::string recorded;
  const bool partial = code == code_of(ErrorKind::kFailed) && options_.allow_partial &&
                       !options_.require_cached && summary_.hits + summary_.compiled != 0;
  summary_.packs = packs;
  if (packs && (code == 0 || partial) && !work_->interrupted()) {
    auto packed = pack(*work_, *output, partial);
    if (packed) {
      summary_.output_state = packed->state;
      if (packed->state != OutputState::kNone) summary_.output = *output;
      summary_.partial = partial;
      summary_.subset = options_.narrowed();
      if (code == 0) {
        recorded = summary_.output;
        tuple = packed->tuple;
      }
    } else if (!work_->interrupted()) {
      code = fail(packed.error());
    }
  }
  const std::optional<int> signal = signals_.pending();
  if (signal && summary_.output_state == OutputState::kNone) {
    summary_.interrupted = true;
    code = 128 + *signal;
  }

  // 7. What the next build wants to know, then what this one did.
  if (!options_.dry_run) save_state(recorded, tuple);
  tell_units();
  return finish(code);
}

}  // namespace

int build(const Options& options, Listener& listener, util::SignalWatch& signals) {
  return Build(options, listener, signals).run();
}

int plan(const Options& options, Listener& listener) {
  StoreHolder holder(options.store, listener);
  if (auto opened = holder.open(); !opened) {
    listener.error(opened.error());
    return code_of(opened.error().kind);
  }
  // Of the last build only the key format matters here; what it learned of the compilers saves hashing them.
  std::optional<State> earlier;
  const auto manifest = base::absolute_path(options.manifest);
  if (manifest && holder.get() != nullptr) {
    if (const auto bytes = holder.get()->load_state(state_id(options, *manifest, {}))) {
      earlier = decode_state(*bytes, false);
    }
  }
  if (earlier) note_key_format(*earlier, listener);
  auto prepared = prepare(options, earlier ? &*earlier : nullptr, listener);
  if (!prepared) return code_of(prepared.error());
  Summary summary;
  summary.units = prepared->units.size();
  for (size_t i = 0; i < prepared->units.size(); ++i) {
    UnitResult result;
    result.key = prepared->units[i].key;
    if (prepared->units[i].refused) {
      result.error = *prepared->units[i].refused;
    } else if (holder.get() != nullptr && holder.get()->contains(result.key)) {
      result.state = UnitState::kHit;
      ++summary.hits;
    }
    listener.unit(prepared->plan, prepared->unit(i), result);
  }
  listener.summary(summary);
  return 0;
}

}  // namespace kc::build
