#include "engine/worker.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <optional>
#include <utility>

#include "backend/content_key.h"
#include "base/files.h"
#include "engine/exit.h"
#include "util/text.h"

namespace kc::engine {
namespace {

JobState state_of(backend::Status status) {
  switch (status) {
    case backend::Status::kCompiled:
      return JobState::kCompiled;
    case backend::Status::kFailed:
      return JobState::kFailed;
    case backend::Status::kUnsupported:
      return JobState::kUnsupported;
    case backend::Status::kTimeout:
      return JobState::kTimeout;
    case backend::Status::kChanged:
      return JobState::kChanged;
    case backend::Status::kEnvironment:
      return JobState::kEnvironment;
    case backend::Status::kTainted:
      return JobState::kTainted;
    case backend::Status::kStopped:
      break;  // replaced by what stopped it
  }
  return JobState::kFailed;
}

// A few small code objects. A larger one took long to make, so that a write of its own costs nothing.
constexpr size_t kMostUnsent = 64 << 10;
// Removing the work folder while its last files are being made.
constexpr int kRemoveTries = 3;

Done ended(const Job& job, JobState state, std::string message, std::string hint = {}) {
  Done done;
  done.id = job.id;
  done.state = state;
  done.message = std::move(message);
  done.hint = std::move(hint);
  return done;
}

// `record`, which may be null, has led to the entry.
Done hit(const Job& job, store::Entry entry, const store::Record* record) {
  Done done = ended(job, JobState::kHit, {});
  done.signers = store::signers_of(entry, record);
  done.artifact = std::move(entry.artifact);
  done.seconds = entry.seconds;
  done.peak_bytes = entry.peak_bytes;
  return done;
}

}  // namespace

struct Worker::Attempt {
  const Job& job;
  const Sources& sources;
  std::vector<base::Digest> locked;
  std::optional<Done> stopped;  // what has_module() found instead of a compile
  std::optional<base::Digest> module;
  std::optional<base::Digest> content_key;
};

Worker::Worker(int socket, Setup setup)
    : socket_(socket), setup_(std::move(setup)), untouched_(ProcessState::of_now()) {
  if (setup_.store_mode != store::Mode::kOff) {
    // kc has opened this store a moment ago and reports its troubles; without it the engine compiles all the
    // same.
    store::Options options;
    options.directory = setup_.store_directory;
    options.read_only_directories = setup_.read_only_directories;
    options.mode = setup_.store_mode;
    if (auto opened = store::Store::open(options)) store_ = std::move(*opened);
  }
  if (store_ != nullptr) locks_ = store_->locks();
  for (const backend::Compiler& compiler : setup_.compilers) {
    BackendState& state = backends_[compiler.backend];
    state.compiler = &compiler;
    state.description = backend::find_description(compiler.backend);
  }
}

// A message that may wait does so only while a job waits for a thread. run() takes that job from the count
// before it says anything of it, so what it says comes after this and takes what waits along.
void Worker::answer(const Message& message, Haste haste) {
  const base::Bytes frame = encode_answer(message);
  const std::lock_guard lock(send_mutex_);
  unsent_.insert(unsent_.end(), frame.begin(), frame.end());
  if (haste == Haste::kWithNext && expected_ > 0 && unsent_.size() <= kMostUnsent) return;
  send_unsent();
}

// Precondition: send_mutex_ is held. A failure means that kc is gone, or that it would wait for ever for what
// was lost: both sides see the end of the connection, and the engine ends.
void Worker::send_unsent() {
  if (!send_frames(socket_, unsent_)) ::shutdown(socket_, SHUT_RDWR);
  unsent_.clear();
}

// Before what takes long, or may end the engine.
void Worker::send_held() {
  const std::lock_guard lock(send_mutex_);
  if (!unsent_.empty()) send_unsent();
}

void Worker::group_started(uint32_t job, pid_t group) {
  {
    const std::lock_guard lock(groups_mutex_);
    groups_.insert(group);
    if (abandoned_) ::kill(-group, SIGKILL);
  }
  answer(Group{job, group, true});
}

void Worker::group_ended(uint32_t job, pid_t group) {
  {
    const std::lock_guard lock(groups_mutex_);
    groups_.erase(group);
  }
  answer(Group{job, group, false});
}

void Worker::abandon(bool kc_is_gone) {
  {
    const std::lock_guard lock(groups_mutex_);
    abandoned_ = true;
    for (const pid_t group : groups_) ::kill(-group, SIGKILL);
  }
  gate_.close();  // what was just being started has registered itself, and was killed at once
  // A thread may be writing into it still: a few tries, then whoever collects the store's leftovers has it.
  for (int i = 0; i < kRemoveTries && !base::remove_tree(setup_.work_folder); ++i) {
  }
  // The folder of all engines is kc's to remove; without kc the last engine to leave finds it empty.
  if (kc_is_gone) static_cast<void>(::rmdir(base::parent_path(setup_.work_folder).c_str()));
}

void Worker::learn(engine::Sources sources) {
  auto set = std::make_shared<backend::SourceSet>();
  set->id = sources.set;
  set->files = std::move(sources.files);
  sources_[sources.set] = std::move(set);
}

Worker::Sources Worker::sources(uint32_t set) const {
  const auto found = sources_.find(set);
  return found == sources_.end() ? nullptr : found->second;
}

void Worker::release(uint32_t id) {
  std::vector<base::Digest> keys;
  {
    const std::lock_guard lock(held_mutex_);
    auto node = held_.extract(id);
    if (node.empty()) return;
    keys = std::move(node.mapped());
  }
  for (const base::Digest& key : keys) locks_->unlock(key);
}

Worker::BackendState* Worker::backend_of(const Job& job, Done& done) {
  const auto found = backends_.find(job.backend);
  if (found == backends_.end() || found->second.description == nullptr) {
    done = ended(job, JobState::kEnvironment, "the engine was given no compiler for " + job.backend);
    return nullptr;
  }
  BackendState& state = found->second;
  std::call_once(state.once, [&] {
    send_held();
    state.runner = backend::open_runner(*state.compiler);
    end_at_once_on_exit();  // before what the compiler's library has registered
  });
  if (!state.runner) {
    done = ended(job, JobState::kEnvironment, state.runner.error().message, state.runner.error().hint);
    return nullptr;
  }
  return &state;
}

store::KeyLocks::Answer Worker::lock(Attempt& attempt, const base::Digest& key) {
  if (locks_ == nullptr || attempt.job.ignore_lock) return store::KeyLocks::Answer::kUnavailable;
  const store::KeyLocks::Answer answer = locks_->try_lock(key);
  if (answer == store::KeyLocks::Answer::kHeld) attempt.locked.push_back(key);
  return answer;
}

// Whether somebody has put the result, or left a failure to who waited for it, meanwhile.
bool Worker::find_stored(Attempt& attempt, Done& done) {
  const Job& job = attempt.job;
  if (store_ == nullptr) return false;
  const backend::Description* description = backend::find_description(job.backend);
  std::optional<base::Digest> content = job.key;
  std::optional<store::Record> record;
  if (description != nullptr && description->has_front_half) {
    record = store_->get_record(job.key);
    content = record ? std::optional(record->content) : std::nullopt;
    attempt.content_key = content;
  }
  if (std::optional<store::Entry> entry = content ? store_->get(*content) : std::nullopt;
      entry && !entry->unsupported && store::is_of(*entry, job.backend, job.target, job.entry)) {
    // "Not for this target" is for kc to use where the manifest allows it; who asks here wants to hear why.
    done = hit(job, std::move(*entry), record ? &*record : nullptr);
    return true;
  }
  attempt.content_key.reset();
  const std::optional<base::Bytes> failure =
      job.waited ? store_->recent_failure(job.key) : std::optional<base::Bytes>();
  std::optional<Message> told = failure ? decode(*failure) : std::nullopt;
  Done* earlier = told ? std::get_if<Done>(&*told) : nullptr;
  if (earlier == nullptr || earlier->state != JobState::kFailed) return false;
  done = std::move(*earlier);
  done.id = job.id;
  return true;
}

// Between the two halves. False: there is nothing left to do; `attempt.stopped` says how the job ended.
bool Worker::has_module(Attempt& attempt, const BackendState& state, const base::Digest& module) {
  const Job& job = attempt.job;
  backend::ContentKeyInputs inputs;
  inputs.backend = job.backend;
  inputs.adapter_revision = state.description->adapter_revision;
  inputs.compiler = state.compiler->identity;
  inputs.target = job.target;
  inputs.entry = job.entry;
  inputs.options = job.options;
  inputs.module = module;
  attempt.module = module;
  attempt.content_key = backend::content_key(inputs);
  if (lock(attempt, *attempt.content_key) == store::KeyLocks::Answer::kBusy) {
    attempt.stopped = ended(job, JobState::kBusy, {});
    return false;
  }
  std::optional<store::Entry> entry = store_ != nullptr ? store_->get(*attempt.content_key) : std::nullopt;
  if (!entry || entry->unsupported) return true;
  attempt.stopped = hit(job, std::move(*entry), nullptr);
  return false;
}

Done Worker::compile(Attempt& attempt, BackendState& state) {
  const Job& job = attempt.job;
  auto target = target::parse_target(job.target);
  if (!target) return ended(job, JobState::kFailed, target.error().message, target.error().hint);
  const bool is_child = state.description->run == backend::RunKind::kChild;
  std::unique_lock<std::mutex> turn;
  if (state.description->run == backend::RunKind::kProcess) {
    turn = std::unique_lock(state.one_at_a_time, std::try_to_lock);
    if (!turn) {
      send_held();
      turn.lock();
    }
  }
  answer(Started{job.id});

  backend::CompileRequest request;
  request.entry = job.entry;
  request.target = std::move(*target);
  request.options = job.options;
  request.config = job.config;
  request.sources = attempt.sources;
  request.timeout = job.timeout;
  if (state.description->has_front_half) {
    request.has_module = [&](const base::Digest& module) { return has_module(attempt, state, module); };
  }
  util::ProcessHooks hooks;
  if (is_child) {
    request.folder = base::join_path(setup_.work_folder, std::to_string(job.id));
    // Not with its parents: once the work folder is removed, it stays so.
    if (::mkdir(request.folder.c_str(), 0700) != 0) {
      return ended(job, JobState::kEnvironment,
                   base::fail_errno(base::ErrorKind::kEnvironment, "make directory", request.folder, errno)
                       .error()
                       .message);
    }
    hooks.gate = &gate_;
    hooks.started = [&](pid_t group) { group_started(job.id, group); };
    hooks.ended = [&](pid_t group) { group_ended(job.id, group); };
  }
  backend::CompileOutcome outcome = (*state.runner)->compile(request, hooks);
  // kc removes the whole work folder at the end.
  if (is_child) static_cast<void>(base::remove_tree(request.folder));
  if (const std::string changes = is_child ? std::string() : untouched_.changes(); !changes.empty()) {
    Done done = ended(job, JobState::kTainted, changes);
    done.output = std::move(outcome.output);
    return done;
  }
  if (outcome.status == backend::Status::kStopped && attempt.stopped) return std::move(*attempt.stopped);

  Done done = ended(job, state_of(outcome.status), std::move(outcome.message), std::move(outcome.hint));
  done.artifact = std::move(outcome.artifact);
  done.output = std::move(outcome.output);
  done.seconds = outcome.seconds;
  done.peak_bytes = outcome.peak_bytes;
  // A compile that was killed, by this engine's end or by the kernel for its memory, says nothing about the
  // key; one in process may have been spoilt by a neighbour, and takes less time than telling others of it.
  if (store_ != nullptr && is_child && done.state == JobState::kFailed && outcome.is_own_answer &&
      !abandoned_) {
    const base::Bytes frame = encode(done);
    // Without the length: decode()'s form.
    store_->remember_failure(job.key, base::ByteView(frame).subspan(4));
  }
  return done;
}

Done Worker::look_up_and_compile(Attempt& attempt) {
  Done done;
  if (lock(attempt, attempt.job.key) == store::KeyLocks::Answer::kBusy) {
    return ended(attempt.job, JobState::kBusy, {});
  }
  if (find_stored(attempt, done)) return done;
  // A library that cannot be loaded without ending the engine does so before a job is Started.
  BackendState* state = backend_of(attempt.job, done);
  return state != nullptr ? compile(attempt, *state) : done;
}

void Worker::run(const Job& job, const Sources& sources) {
  --expected_;
  if (abandoned_) return;
  Attempt attempt{job, sources, {}, {}, {}, {}};
  Done done;
  try {
    done = look_up_and_compile(attempt);
  } catch (const std::exception& error) {
    done = ended(job, JobState::kTainted, util::format("threw an exception: {}", util::escape(error.what())));
  } catch (...) {
    done = ended(job, JobState::kTainted, "threw an exception");
  }
  done.module = attempt.module;
  done.content_key = attempt.content_key;
  // A new artifact stays locked until kc has put it, so that nobody compiles it in between. What was found by
  // its module is there for all to see; only the way to it is new.
  const bool is_new = done.state == JobState::kCompiled;
  const bool is_found = done.state == JobState::kHit && attempt.module;
  std::vector<base::Digest> kept;
  for (const base::Digest& key : attempt.locked) {
    if (is_new || (is_found && key == job.key)) {
      kept.push_back(key);
    } else {
      locks_->unlock(key);
    }
  }
  done.holds_key = !kept.empty();
  if (done.holds_key) {
    const std::lock_guard lock(held_mutex_);
    held_[job.id] = std::move(kept);
  }
  // With the next Started, so that a small compile wakes kc once, not twice. What is not as usual is told at
  // once.
  answer(std::move(done), is_new ? Haste::kWithNext : Haste::kNow);
}

}  // namespace kc::engine
