#include "engine/worker.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/files.h"
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
  }
  return JobState::kFailed;
}

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

}  // namespace

Worker::Worker(int socket, Setup setup) : socket_(socket), setup_(std::move(setup)) {
  if (setup_.store_mode != store::Mode::kOff) {
    // kc has opened this store a moment ago and reports its troubles; without it the engine compiles all the
    // same.
    store::Options options;
    options.directory = setup_.store_directory;
    options.mode = setup_.store_mode;
    if (auto opened = store::Store::open(options)) store_ = std::move(*opened);
  }
  if (store_ != nullptr) locks_ = store_->locks();
  for (const backend::Compiler& compiler : setup_.compilers) {
    backends_[compiler.backend].compiler = &compiler;
  }
}

void Worker::answer(const Message& message) {
  const std::lock_guard lock(send_mutex_);
  // A failure means that kc is gone; the reading thread sees the same and ends the engine.
  static_cast<void>(send(socket_, message));
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

void Worker::abandon() {
  {
    const std::lock_guard lock(groups_mutex_);
    abandoned_ = true;
    for (const pid_t group : groups_) ::kill(-group, SIGKILL);
  }
  gate_.close();  // what was just being started has registered itself, and was killed at once
  // A thread may be writing into it still: a few tries, then whoever collects the store's leftovers has it.
  for (int i = 0; i < kRemoveTries && !base::remove_tree(setup_.work_folder); ++i) {
  }
}

void Worker::release(const base::Digest& key) {
  if (locks_ != nullptr) locks_->unlock(key);
}

backend::Runner* Worker::runner_of(const Job& job, Done& done) {
  const auto found = backends_.find(job.backend);
  if (found == backends_.end()) {
    done = ended(job, JobState::kEnvironment, "the engine was given no compiler for " + job.backend);
    return nullptr;
  }
  BackendState& state = found->second;
  std::call_once(state.once, [&] { state.runner = backend::open_runner(*state.compiler); });
  if (!state.runner) {
    done = ended(job, JobState::kEnvironment, state.runner.error().message, state.runner.error().hint);
    return nullptr;
  }
  return state.runner->get();
}

Done Worker::compile(const Job& job, bool& own_answer) {
  Done done;
  backend::Runner* runner = runner_of(job, done);
  if (runner == nullptr) return done;
  auto target = target::parse_target(job.target);
  if (!target) return ended(job, JobState::kFailed, target.error().message, target.error().hint);

  backend::CompileRequest request;
  request.entry = job.entry;
  request.target = std::move(*target);
  request.options = job.options;
  request.config = job.config;
  for (const JobSource& source : job.sources) request.sources.push_back({source.identifier, source.bytes});
  request.timeout = job.timeout;
  request.folder = base::join_path(setup_.work_folder, std::to_string(job.id));
  // Not with its parents: once the work folder is removed, it stays so.
  if (::mkdir(request.folder.c_str(), 0700) != 0) {
    return ended(job, JobState::kEnvironment,
                 base::fail_errno(base::ErrorKind::kEnvironment, "make directory", request.folder, errno)
                     .error()
                     .message);
  }
  util::ProcessHooks hooks;
  hooks.gate = &gate_;
  hooks.started = [&](pid_t group) { group_started(job.id, group); };
  hooks.ended = [&](pid_t group) { group_ended(job.id, group); };
  backend::CompileOutcome outcome = runner->compile(request, hooks);
  static_cast<void>(base::remove_tree(request.folder));  // kc removes the whole work folder at the end

  done = ended(job, state_of(outcome.status), std::move(outcome.message), std::move(outcome.hint));
  done.artifact = std::move(outcome.artifact);
  done.output = std::move(outcome.output);
  own_answer = outcome.is_own_answer;
  done.seconds = outcome.seconds;
  done.peak_bytes = outcome.peak_bytes;
  return done;
}

void Worker::run(const Job& job) {
  if (abandoned_) return;
  bool locked = false;
  if (locks_ != nullptr && !job.ignore_lock) {
    const store::KeyLocks::Answer lock = locks_->try_lock(job.key);
    if (lock == store::KeyLocks::Answer::kBusy) {
      answer(ended(job, JobState::kBusy, {}));
      return;
    }
    locked = lock == store::KeyLocks::Answer::kHeld;
  }
  answer(Started{job.id});

  Done done;
  std::optional<store::Entry> entry = store_ != nullptr ? store_->get(job.key) : std::nullopt;
  // "Not for this target" is for kc to use where the manifest allows it; who asks here wants to hear why.
  if (entry && entry->unsupported) entry.reset();
  std::optional<base::Bytes> failure;
  if (!entry && job.waited && store_ != nullptr) failure = store_->recent_failure(job.key);
  if (entry) {
    done = ended(job, JobState::kHit, {});
    done.artifact = std::move(entry->artifact);
    done.seconds = entry->seconds;
    done.peak_bytes = entry->peak_bytes;
  } else if (auto told = failure ? decode(*failure) : std::nullopt;
             told && std::holds_alternative<Done>(*told) &&
             std::get<Done>(*told).state == JobState::kFailed) {
    done = std::move(std::get<Done>(*told));
    done.id = job.id;
  } else {
    bool own_answer = false;
    done = compile(job, own_answer);
    // A compile that was killed, by this engine's end or by the kernel for its memory, says nothing about the
    // key.
    if (store_ != nullptr && done.state == JobState::kFailed && own_answer && !abandoned_) {
      const base::Bytes frame = encode(done);
      store_->remember_failure(job.key,
                               base::ByteView(frame).subspan(4));  // without the length: decode()'s form
    }
  }
  // A new artifact stays locked until kc has put it, so that nobody compiles it in between.
  done.holds_key = locked && done.state == JobState::kCompiled;
  if (locked && !done.holds_key) locks_->unlock(job.key);
  answer(std::move(done));
}

}  // namespace kc::engine
