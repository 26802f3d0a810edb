#include "build/build.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/file_system.h"
#include "build/identities.h"
#include "build/keys.h"
#include "build/store_holder.h"
#include "build/stored_state.h"
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

// More lines than this about skipped units tell nobody anything.
constexpr size_t kMostSkipLines = 20;

uint32_t warnings_of(const UnitResult& result) {
  return static_cast<uint32_t>(
      std::ranges::count(result.diagnostics, artifact::Severity::kWarning, &artifact::Diagnostic::severity));
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
  void keep_fresh(State& state, base::ByteView bytes, bool save);
  Result<std::string> choose_output(const manifest::Plan& plan) const;
  void count_units();
  void tell_units();
  void tell_skipped();
  UnitMemory remember(size_t index) const;
  int fail(const Error& error);
  int exit_code() const;
  Result<void> open_signing_key(bool packs);
  bool refuses_to_sign();
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
  base::FileTuple signing_key_tuple_;
  Trust trust_;           // of what is signed: also whoever signs it
  bool refused_ = false;  // some of it may not be signed
  Summary summary_;
};

int Build::fail(const Error& error) {
  listener_.error(error);
  return code_of(error.kind);
}

// An unchanged build leaves marks: its entries are in use, and files that were read again need not be the
// next time.
void Build::keep_fresh(State& state, base::ByteView bytes, bool save) {
  const int64_t now_s = started_ns_ / 1'000'000'000;
  const bool touch = now_s - state.touched_s > kTouchSeconds;
  if (!touch && !save) return;
  auto whole = decode_state(bytes, true);
  if (!whole) return;
  state.units = std::move(whole->units);
  if (touch) {
    std::vector<base::Digest> keys;
    std::vector<base::Digest> requests;
    for (const UnitMemory& unit : state.units) {
      if (!unit.key.is_zero()) keys.push_back(unit.key);
      if (unit.request_key) requests.push_back(*unit.request_key);
    }
    holder_.get()->touch(keys);
    holder_.get()->touch_records(requests);
    state.touched_s = now_s;
  }
  holder_.get()->save_state(state_id_, encode_state(state));
}

// Pass 1. Afterwards: earlier_ holds what the last build saw, if it can be had.
bool Build::is_unchanged() {
  store::Store* store = holder_.get();
  if (store == nullptr || store->options().mode == store::Mode::kRefresh) return false;
  std::optional<StoredState> stored = load_state(*store, options_, manifest_, output_option_, listener_);
  if (!stored) return false;
  // A dry run and --require-cached ask about the units, not about the output; --locked about kc.lock, which
  // that build may have found to differ.
  const bool is_locked = !options_.locked || stored->head.locked;
  if (stored->is_own && !options_.dry_run && !options_.require_cached && is_locked) {
    State& state = stored->head;
    const Freshness freshness = check_state(state, options_.search, started_ns_);
    if (freshness != Freshness::kChanged) {
      keep_fresh(state, stored->bytes, freshness == Freshness::kUnchangedRecord);
      summary_.units = state.unit_count;
      summary_.skipped = state.skipped_count;
      summary_.hits = state.unit_count - state.skipped_count;
      summary_.output = state.output;
      summary_.output_state = OutputState::kUnchanged;
      summary_.nothing_to_do = true;
      return true;
    }
  }
  earlier_ = decode_state(stored->bytes, true);
  if (earlier_) earlier_->inputs = {};  // their memory is worth more than they are from here on
  return false;
}

// Whether the file is one that the plan was made from or names as a source.
bool is_input(const manifest::Plan& plan, const struct stat& status) {
  const auto is_same = [&](const std::string& path) {
    struct stat other;
    return base::file_system().fstatat(AT_FDCWD, path.c_str(), &other, 0) == 0 &&
           other.st_dev == status.st_dev && other.st_ino == status.st_ino;
  };
  return std::any_of(plan.inputs.begin(), plan.inputs.end(),
                     [&](const manifest::Input& input) { return is_same(input.path); }) ||
         std::any_of(plan.sources.begin(), plan.sources.end(),
                     [&](const manifest::Source& source) { return is_same(source.path); }) ||
         is_same(lock_path(plan.folder));
}

// Where the bundle goes; empty when none is made.
Result<std::string> Build::choose_output(const manifest::Plan& plan) const {
  if (options_.warm || (options_.narrowed() && !options_.output)) return std::string();
  KC_ASSIGN(std::string output,
            options_.output ? base::Result<std::string>(output_option_) : base::absolute_path(plan.output));
  struct stat status;
  if (base::file_system().fstatat(AT_FDCWD, output.c_str(), &status, 0) != 0) return output;
  if (S_ISDIR(status.st_mode)) {
    return base::fail_at(ErrorKind::kInput, {output}, "is a directory; the output is a .kcb file",
                         "name another with -o");
  }
  if (!S_ISREG(status.st_mode)) {
    return base::fail_at(ErrorKind::kInput, {output}, "is not a regular file", "name another with -o");
  }
  if (bundle::looks_like_bundle(output)) return output;
  if (!options_.output) {
    return base::fail_at(ErrorKind::kInput, {output}, "exists and is no bundle, so it is not replaced",
                         "remove it, or name it with -o");
  }
  if (is_input(plan, status)) {
    return base::fail_at(ErrorKind::kInput, {output}, "is an input of this build, so it is not replaced",
                         "name another file with -o");
  }
  return output;
}

// Before anything is compiled: a key that cannot be used is told at once.
Result<void> Build::open_signing_key(bool packs) {
  if (!options_.sign || options_.dry_run) return {};
  if (!packs) {
    return base::fail(ErrorKind::kInput, "no bundle is made, so there is nothing to sign",
                      "say with -o which bundle the named units go into");
  }
  KC_ASSIGN(signing_key_tuple_, base::stat_tuple(*options_.sign));
  KC_ASSIGN(work_->signing_key, bundle::PrivateKey::read(*options_.sign, options_.passphrase));
  trust_ = options_.trust;
  trust_.keys.push_back(work_->signing_key->public_key());
  return {};
}

// Asked before the misses are compiled and after it: the engine finds entries, too.
bool Build::refuses_to_sign() {
  if (work_->signing_key && !refused_) refused_ = refuse_imported(*work_, trust_) != 0;
  return refused_;
}

// After the last compile: what became of the units is counted, what was not tried is marked.
void Build::count_units() {
  summary_.units = work_->prepared.units.size();
  for (size_t i = 0; i < work_->prepared.units.size(); ++i) {
    UnitResult& result = work_->results[i];
    const bool is_left = result.state == UnitState::kPending;
    if (is_left && !options_.dry_run && !options_.pack_only) result.state = UnitState::kNotTried;
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
      case UnitState::kSkipped:
        ++summary_.skipped;
        break;
      case UnitState::kNotTried:
      case UnitState::kPending:
        ++summary_.not_tried;
        break;
    }
    summary_.warnings += warnings_of(result);
  }
}

// What was left out is named, in few lines: one for all units of a kernel that were skipped for one reason.
void Build::tell_skipped() {
  struct Group {
    size_t first = 0;  // index into prepared.units
    uint64_t count = 0;
  };
  std::vector<Group> groups;
  std::map<std::pair<uint32_t, std::string_view>, size_t> by_reason;
  for (size_t i = 0; i < work_->results.size(); ++i) {
    const UnitResult& result = work_->results[i];
    if (result.state != UnitState::kSkipped) continue;
    const auto [at, is_new] =
        by_reason.try_emplace({work_->prepared.unit(i).kernel, result.error.message}, groups.size());
    if (is_new) groups.push_back({i, 0});
    ++groups[at->second].count;
  }
  uint64_t told = 0;
  for (size_t i = 0; i < std::min(groups.size(), kMostSkipLines); ++i) {
    const auto [first, count] = groups[i];
    const std::string name = count == 1 ? work_->prepared.unit(first).name
                                        : util::format("{} ({})", work_->prepared.kernel(first).name,
                                                       util::counted(count, "unit"));
    listener_.note(util::format("skipped: {}: {}", name, work_->results[first].error.message));
    told += count;
  }
  if (told < summary_.skipped) {
    listener_.note(
        util::format("skipped: {}", util::counted(summary_.skipped - told, "more unit", "more units")));
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

UnitMemory Build::remember(size_t index) const {
  const UnitResult& result = work_->results[index];
  UnitMemory memory;
  memory.name = work_->prepared.unit(index).name;
  memory.request_key = result.request_key;
  memory.key = result.key.value_or(base::Digest());
  memory.seconds = result.seconds;
  memory.peak_bytes = result.peak_bytes;
  // Without a symbol the code object does not hold the kernel, and tells nothing about it.
  const bool is_known = result.code_bytes != 0 && !result.facts.symbol.empty();
  if (is_known) memory.numbers = artifact::numbers_of(result.facts, result.code_bytes);
  // A unit that was not tried keeps what an earlier build learned of it, and one that failed what its last
  // code object was like.
  const auto found = work_->memory.find(memory.name);
  if (found == work_->memory.end()) return memory;
  const UnitMemory& before = *found->second;
  if (!memory.numbers) memory.numbers = before.numbers;
  if (memory.seconds == 0) {
    memory.seconds = before.seconds;
    memory.peak_bytes = before.peak_bytes;
  }
  return memory;
}

void Build::save_state(const std::string& output, const base::FileTuple& tuple) {
  if (holder_.get() == nullptr || holder_.is_temporary()) return;
  State state;
  state.build_id = engine::build_id();
  state.key_domain = key_domains();
  state.recorded_ns = started_ns_;
  state.touched_s = started_ns_ / 1'000'000'000;
  for (const manifest::Input& input : work_->prepared.plan.inputs) {
    state.inputs.push_back(
        {base::absolute_path(input.path).value_or(input.path), input.pattern, input.tuple, input.digest});
  }
  for (size_t i = 0; i < work_->prepared.sources.size(); ++i) {
    const manifest::SourceContent& content = work_->prepared.sources[i];
    if (content.digest.is_zero()) continue;  // no chosen unit needs it
    const std::string& path = work_->prepared.plan.sources[i].path;
    state.inputs.push_back({base::absolute_path(path).value_or(path), {}, content.tuple, content.digest});
  }
  for (const manifest::Input& input : work_->prepared.identities.inputs) {
    state.inputs.push_back({input.path, input.pattern, input.tuple, input.digest});
  }
  if (work_->signing_key) {
    // Of a private key not even a digest is kept.
    state.inputs.push_back(
        {base::absolute_path(*options_.sign).value_or(*options_.sign), {}, signing_key_tuple_, {}});
  }
  state.compilers = work_->prepared.compilers;
  for (const AbsentCompiler& absent : work_->prepared.identities.absent) {
    state.absent.emplace_back(absent.compiler.backend, absent.compiler.identity);
  }
  state.no_lock = work_->prepared.identities.no_lock;
  state.locked = work_->prepared.identities.locked;
  state.output = output;
  state.output_tuple = tuple;
  state.unit_count = work_->prepared.units.size();
  state.skipped_count = summary_.skipped;
  for (size_t i = 0; i < work_->prepared.units.size(); ++i) state.units.push_back(remember(i));
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
                      "`kc store verify` looks at everything in it"};
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
                     earlier_ ? memory_of(*earlier_) : Memory(),
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
  if (auto opened = open_signing_key(packs); !opened) return fail(opened.error());

  // 4. What the store holds.
  if (auto looked = look_up(*work_); !looked) return fail(looked.error());

  // 5. The rest.
  const std::optional<ErrorKind> stop = refuses_to_sign() ? ErrorKind::kFailed : stop_for_missing(*work_);
  int code = stop ? code_of(*stop) : 0;
  if (code == 0 && !options_.dry_run) {
    if (auto compiled = compile_misses(*work_); !compiled) {
      listener_.error(compiled.error());
      code = code_of(compiled.error().kind);
    }
  }
  if (work_->stopped) listener_.error(*work_->stopped);
  count_units();
  if (refuses_to_sign() && code == 0) code = code_of(ErrorKind::kFailed);
  if (code == 0) code = options_.dry_run && summary_.failed == 0 ? 0 : exit_code();
  if (code == 0 && packs && summary_.skipped == summary_.units) {
    code = fail({ErrorKind::kFailed, "every unit was skipped, so there is nothing to pack", {}, {}});
  }

  // 6. One bundle of all of it, or the old one stays.
  base::FileTuple tuple;
  std::string recorded;
  const bool partial = code == code_of(ErrorKind::kFailed) && options_.allow_partial &&
                       !options_.require_cached && !refused_ && summary_.hits + summary_.compiled != 0;
  summary_.packs = packs;
  if (packs && (code == 0 || partial) && !work_->interrupted()) {
    auto packed = pack(*work_, *output, partial);
    if (packed) {
      summary_.output_state = packed->state;
      summary_.pack_seconds = packed->seconds;
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
  tell_skipped();
  tell_units();
  return finish(code);
}

}  // namespace

int build(const Options& options, Listener& listener, util::SignalWatch& signals) {
  return Build(options, listener, signals).run();
}

}  // namespace kc::build
