// kc's side against the real kc-engine with the stand-in compiler, and against programs that only look like
// an engine.
#include "engine/supervisor.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "engine_support.h"
#include "process_list.h"
#include "store/key_locks.h"
#include "util/text.h"

namespace {

namespace engine = kc::engine;
using engine::JobState;
using engine::Supervisor;
using kc::base::ErrorKind;
using kc::store::KeyLocks;
using kc::test::digest_of;
using kc::test::engines;
using kc::test::processes;
using kc::test::TempFolder;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kHeader{"\x7FTileIR\0\x0D\x03\0\0", 12};
constexpr auto kPatience = seconds(60);  // a machine under load; nothing waits so long when all is well

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool becomes_true(const std::function<bool()>& condition, kc::util::Nanoseconds patience = kPatience) {
  const auto deadline = kc::util::Clock::now() + patience;
  while (!condition()) {
    if (kc::util::Clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

// A job with its files.
struct Task : engine::Job {
  engine::SharedFiles files;
};

// A store, a compiler, a work folder and an engine over them.
class Fixture {
 public:
  Fixture() : compiler_(kc::test::install_compiler(KC_FAKE_TILEIRAS, folder_ / "cu13")) {
    kc::store::Options options;
    options.directory = store_path();
    auto store = kc::store::Store::open(options);
    REQUIRE_MESSAGE(store, (store ? std::string() : store.error().text()));
    store_ = std::move(*store);
  }

  engine::EngineSpec spec(unsigned slots = 1) {
    engine::EngineSpec out;
    out.program = KC_ENGINE;
    out.setup.compilers = {compiler_};
    out.setup.store_directory = store_path();
    out.setup.work_folder = work_folder();
    out.setup.slots = slots;
    std::filesystem::create_directory(work_folder());
    return out;
  }
  std::unique_ptr<Supervisor> start(unsigned slots = 1) { return start(spec(slots)); }
  static std::unique_ptr<Supervisor> start(const engine::EngineSpec& spec) {
    auto supervisor = Supervisor::start(spec);
    REQUIRE_MESSAGE(supervisor, (supervisor ? std::string() : supervisor.error().text()));
    return std::move(*supervisor);
  }

  static Task job(uint32_t id, const std::string& directives) {
    Task out;
    out.files = files(directives);
    out.id = id;
    out.backend = "tileiras";
    out.unit = kc::util::format("unit{}", id);
    out.key = digest_of(directives);
    out.entry = "kernel";
    out.target = "sm_90";
    out.timeout = kPatience;
    return out;
  }
  static engine::SharedFiles files(const std::string& directives) {
    const std::string source = std::string(kHeader) + directives;
    std::vector<kc::backend::Source> out(1);
    out[0].identifier = "a.tilebc";
    out[0].bytes.assign(source.begin(), source.end());
    return std::make_shared<const std::vector<kc::backend::Source>>(std::move(out));
  }

  kc::store::Store& store() { return *store_; }
  std::string store_path() const { return folder_ / "store"; }
  std::string work_folder() const { return folder_ / "work"; }
  /// Of the first engine of this supervisor.
  std::string engine_folder() const { return work_folder() + "/engine-1"; }
  bool has_work_folder() const { return std::filesystem::exists(work_folder()); }
  const TempFolder& folder() const { return folder_; }

  /// Compilers that were started from this installation, and what they started.
  std::vector<pid_t> compilers() const {
    return processes(
        [&](pid_t, const std::string& line) { return line.starts_with(compiler_.program + '\0'); });
  }

 private:
  TempFolder folder_;
  kc::backend::Compiler compiler_;
  std::unique_ptr<kc::store::Store> store_;
};

// Waits for the next answer; the jobs that were told as started go to `started`.
engine::Done next_done(Supervisor& supervisor, std::vector<uint32_t>* started = nullptr) {
  const auto deadline = kc::util::Clock::now() + kPatience;
  while (kc::util::Clock::now() < deadline) {
    auto heard = supervisor.wait(seconds(1), -1);
    REQUIRE_MESSAGE(heard, (heard ? std::string() : heard.error().text()));
    for (const engine::Started& message : heard->started) {
      if (started != nullptr) started->push_back(message.id);
    }
    if (!heard->done.empty()) {
      REQUIRE(heard->done.size() == 1);
      return std::move(heard->done.front());
    }
  }
  FAIL("the engine did not answer");
  return {};
}

void submit(Supervisor& supervisor, const Task& task) {
  const auto submitted = supervisor.submit(task, task.files);
  REQUIRE_MESSAGE(submitted, (submitted ? std::string() : submitted.error().text()));
}

engine::Done answer(Supervisor& supervisor, const Task& job) {
  submit(supervisor, job);
  return next_done(supervisor);
}

// Waits until the engine is heard to be gone.
kc::base::Error death_of(Supervisor& supervisor) {
  for (int i = 0; i < 60; ++i) {
    auto heard = supervisor.wait(seconds(1), -1);
    if (!heard) return heard.error();
  }
  FAIL("the engine lives");
  return {};
}

// A shell script in the engine's place; `octal` bytes are its first words on the socket.
std::string octal(const kc::base::Bytes& bytes) {
  std::string out;
  for (const uint8_t byte : bytes) out += kc::util::format("\\{:03o}", byte);
  return out;
}
std::string greeting_script(const engine::Greeting& greeting) {
  return "printf '" + octal(engine::encode(greeting)) + "' >&3\n";
}
engine::EngineSpec pretender(const TempFolder& folder, const std::string& script) {
  engine::EngineSpec out;
  out.program = folder.write("pretender", "#!/bin/sh\n" + script);
  REQUIRE(chmod(out.program.c_str(), 0755) == 0);
  out.setup.work_folder = folder / "work";
  std::filesystem::create_directory(out.setup.work_folder);
  return out;
}
// Lets a script of `spec` wait until it was sent a job, and sets n to which engine it is, from 0: takes the
// setup, with the folder engine-1, engine-2, ..., and the first byte of what follows. dd takes a byte at a
// time, since the rest is not for it.
std::string wait_for_job(const engine::EngineSpec& spec) {
  engine::Setup setup = spec.setup;
  setup.work_folder += "/engine-1";  // as long as those of the next eight
  return kc::util::format("setup=$(dd bs=1 count={} <&3 2>/dev/null | tr -dc a-z0-9-)\n",
                          engine::encode(setup).size() + 1) +
         "n=${setup##*engine-}\nn=$((${n%\"${n#?}\"} - 1))\n";
}

// Scripts that take each other's place, one an engine in the order of their start; the last one stays. Each
// greets, and goes on when it was sent a job.
engine::EngineSpec pretenders(const TempFolder& folder, const std::vector<std::string>& scripts) {
  engine::EngineSpec out = pretender(folder, "");
  std::string all =
      greeting_script({engine::kProtocolVersion, engine::build_id()}) + wait_for_job(out) + "case $n in\n";
  for (size_t i = 0; i < scripts.size(); ++i) {
    all += (i + 1 < scripts.size() ? std::to_string(i) : std::string("*")) + ")\n" + scripts[i] + ";;\n";
  }
  out = pretender(folder, all + "esac\n");
  out.setup.slots = 2;
  return out;
}
std::string say(const engine::Message& message) {
  return "printf '" + octal(engine::encode(message)) + "' >&3\n";
}
engine::Done compiled(uint32_t id) {
  engine::Done out;
  out.id = id;
  out.state = JobState::kCompiled;
  return out;
}
Task in_process(uint32_t id) {
  Task out = Fixture::job(id, "");
  out.backend = "loom";
  return out;
}
std::map<uint32_t, engine::Done> all_done(Supervisor& supervisor, size_t count) {
  std::map<uint32_t, engine::Done> out;
  REQUIRE(becomes_true([&] {
    auto heard = supervisor.wait(seconds(1), -1);
    REQUIRE_MESSAGE(heard, (heard ? std::string() : heard.error().text()));
    for (engine::Done& done : heard->done) out[done.id] = std::move(done);
    return out.size() >= count;
  }));
  return out;
}

kc::base::Error refusal(const engine::EngineSpec& spec) {
  auto started = Supervisor::start(spec);
  REQUIRE_FALSE(started);
  return started.error();
}

}  // namespace

TEST_CASE("a work folder that is not there, or has something in it, is refused and left alone") {
  Fixture fixture;
  engine::EngineSpec spec = fixture.spec();
  const std::string kept = fixture.folder().write("work/notes.txt", "of somebody");
  const kc::base::Error error = refusal(spec);
  CHECK(error.kind == ErrorKind::kInternal);
  CHECK_MESSAGE(contains(error.text(), "notes.txt"), error.text());
  CHECK(std::filesystem::exists(kept));
  spec.setup.work_folder = fixture.folder() / "missing";
  CHECK(refusal(spec).kind == ErrorKind::kEnvironment);
  CHECK_FALSE(std::filesystem::exists(spec.setup.work_folder));
  CHECK(engines().empty());
}

TEST_CASE("an engine starts and ends with its supervisor and its work folder with it") {
  Fixture fixture;
  auto supervisor = fixture.start();
  CHECK(engines().size() == 1);
  CHECK(fixture.has_work_folder());
  supervisor.reset();
  CHECK(engines().empty());
  CHECK_FALSE(fixture.has_work_folder());
}

TEST_CASE("an engine of another build or protocol is refused") {
  const TempFolder folder;
  const auto other = refusal(pretender(folder, greeting_script({1, "0.0.0+other"}) + "sleep 60\n"));
  CHECK(other.kind == ErrorKind::kEnvironment);
  CHECK(contains(other.message, "another build (0.0.0+other)"));
  CHECK_FALSE(other.hint.empty());
  CHECK_FALSE(std::filesystem::exists(folder / "work"));

  const auto newer =
      refusal(pretender(folder, greeting_script({engine::kProtocolVersion + 1, engine::build_id()})));
  CHECK(newer.kind == ErrorKind::kEnvironment);
  CHECK(contains(newer.message, "another build"));
}

TEST_CASE("a start that is called off does not wait for an engine that never greets") {
  const TempFolder folder;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const kc::base::FileDescriptor read_end(ends[0]), write_end(ends[1]);
  REQUIRE(write(ends[1], "x", 1) == 1);
  const kc::util::Stopwatch clock;
  auto supervisor = Supervisor::start(pretender(folder, "sleep 60\n"), read_end.get());
  REQUIRE(supervisor);
  const auto heard = (*supervisor)->wait(seconds(20), -1);
  REQUIRE(heard);
  CHECK(heard->woken);
  supervisor->reset();
  CHECK(clock.seconds() < 15);
}

TEST_CASE("an engine that ends before it greets is told with what it said") {
  const TempFolder folder;
  const auto ended = refusal(pretender(folder, "echo 'no thread left' >&2\nexit 7\n"));
  CHECK(ended.kind == ErrorKind::kEnvironment);
  CHECK(contains(ended.message, "ended with exit code 7"));
  CHECK(contains(ended.message, "no thread left"));

  const auto killed = refusal(pretender(folder, "kill -SEGV $$\n"));
  CHECK(killed.kind == ErrorKind::kEnvironment);
  CHECK(contains(killed.message, "SIGSEGV"));

  engine::EngineSpec missing = pretender(folder, "");
  missing.program = folder / "nothing";
  CHECK(refusal(missing).kind == ErrorKind::kEnvironment);
}

TEST_CASE("an engine that ends after its greeting and before any job is the machine's fault") {
  const TempFolder folder;
  auto supervisor = Supervisor::start(pretender(
      folder, greeting_script({engine::kProtocolVersion, engine::build_id()}) + "echo 'out of threads' >&2\n"
                                                                                "exit 3\n"));
  // The setup may or may not find it alive.
  const kc::base::Error error = supervisor ? death_of(**supervisor) : supervisor.error();
  CHECK(error.kind == ErrorKind::kEnvironment);
  CHECK(contains(error.message, "ended with exit code 3"));
  CHECK(contains(error.message, "out of threads"));
}

TEST_CASE("an engine that speaks out of turn or nonsense is a fault of kc") {
  const TempFolder folder;
  // As a real one it waits for its setup before it speaks again.
  const std::string start =
      greeting_script({engine::kProtocolVersion, engine::build_id()}) + "dd bs=1 count=1 <&3 >&2\n";
  const auto of = [&](const std::string& script) {
    // What it says may come with its greeting.
    auto supervisor = Supervisor::start(pretender(folder, start + script + "sleep 60\n"));
    return supervisor ? death_of(**supervisor) : supervisor.error();
  };
  CHECK(of("printf '" + octal(engine::encode(kc::test::sample_job())) + "' >&3\n").kind ==
        ErrorKind::kInternal);
  CHECK(of("printf '\\377\\377\\377\\377' >&3\n").kind == ErrorKind::kInternal);
  CHECK(of("printf '\\001\\000\\000\\000\\377' >&3\n").kind == ErrorKind::kInternal);
}

TEST_CASE("an engine deaf to the end of its connection is killed within a second") {
  const TempFolder folder;
  const std::string greeting = greeting_script({engine::kProtocolVersion, engine::build_id()});
  auto supervisor = Supervisor::start(pretender(folder, greeting + "trap '' TERM HUP\nsleep 600 & wait\n"));
  REQUIRE(supervisor);
  const kc::util::Stopwatch clock;
  supervisor->reset();
  CHECK(clock.seconds() < 5);  // 0.7 on a machine with nothing else to do
  CHECK_FALSE(std::filesystem::exists(folder / "work"));
  CHECK(processes([&](pid_t, const std::string& line) {
          return contains(line, folder / "pretender");
        }).empty());
}

TEST_CASE("a job is compiled and its key stays locked until it is released") {
  Fixture fixture;
  auto supervisor = fixture.start();
  const Task job = Fixture::job(3, "@registers=40 @stderr=warning:%20slow%0A");
  submit(*supervisor, job);
  std::vector<uint32_t> started;
  const engine::Done done = next_done(*supervisor, &started);
  CHECK_MESSAGE(done.state == JobState::kCompiled, done.message);
  CHECK(started == std::vector<uint32_t>{3});
  CHECK(done.id == 3);
  REQUIRE(done.artifact.facts.find("kernel") != nullptr);
  CHECK(done.artifact.facts.find("kernel")->registers == 40);
  CHECK(done.artifact.code.size() > 512);
  REQUIRE(done.artifact.diagnostics.size() == 1);
  CHECK(contains(done.output, "slow"));
  CHECK(done.seconds > 0);
  CHECK(done.holds_key);

  KeyLocks* locks = fixture.store().locks();
  REQUIRE(locks != nullptr);
  CHECK(locks->try_lock(job.key) == KeyLocks::Answer::kBusy);
  supervisor->release(job.id);
  CHECK(becomes_true([&] { return locks->try_lock(job.key) == KeyLocks::Answer::kHeld; }));
  // The job's own folder is gone before the engine is.
  CHECK(std::filesystem::is_empty(fixture.engine_folder()));
}

TEST_CASE("a job whose artifact somebody has put meanwhile is a hit and compiles nothing") {
  Fixture fixture;
  auto supervisor = fixture.start();
  const Task job = Fixture::job(1, "@exit=1");
  kc::store::Entry entry;
  entry.key = job.key;
  entry.backend = "tileiras";
  entry.target = "sm_90";
  entry.entry = "kernel";
  entry.kernel = "k";
  entry.artifact = kc::test::sample_artifact();
  entry.seconds = 4;
  REQUIRE(fixture.store().put(entry));
  const engine::Done done = answer(*supervisor, job);
  CHECK(done.state == JobState::kHit);
  CHECK(done.artifact == entry.artifact);
  CHECK(done.seconds == 4);
  CHECK_FALSE(done.holds_key);
  CHECK(fixture.store().locks()->try_lock(job.key) == KeyLocks::Answer::kHeld);
}

TEST_CASE("a job that fails says why and lets its key go") {
  Fixture fixture;
  auto supervisor = fixture.start();
  const Task job = Fixture::job(1, "@stderr=error:%20no%20such%20tile%0A @exit=5");
  const engine::Done done = answer(*supervisor, job);
  CHECK(done.state == JobState::kFailed);
  CHECK_FALSE(done.message.empty());
  CHECK(contains(done.output, "no such tile"));
  CHECK(done.artifact.code.empty());
  CHECK_FALSE(done.holds_key);
  CHECK(fixture.store().locks()->try_lock(job.key) == KeyLocks::Answer::kHeld);
}

TEST_CASE("who waited for a key takes over the failure and who did not compiles") {
  Fixture fixture;
  auto supervisor = fixture.start();
  Task job = Fixture::job(1, "@exit=5");
  const engine::Done first = answer(*supervisor, job);
  REQUIRE(first.state == JobState::kFailed);
  job.id = 2;
  job.waited = true;
  const engine::Done taken = answer(*supervisor, job);
  CHECK(taken.state == JobState::kFailed);
  CHECK(taken.id == 2);
  CHECK(taken.message == first.message);
  CHECK(taken.seconds == first.seconds);  // another compile takes another time
  job.id = 3;
  job.waited = false;
  CHECK(answer(*supervisor, job).seconds != first.seconds);
}

TEST_CASE("a job that takes too long is ended and so is what it started") {
  Fixture fixture;
  auto supervisor = fixture.start();
  Task job = Fixture::job(1, "@spawn-grandchild @hang");
  job.timeout = milliseconds(500);
  const engine::Done done = answer(*supervisor, job);
  CHECK(done.state == JobState::kTimeout);
  CHECK_FALSE(done.holds_key);
  CHECK(becomes_true([&] { return fixture.compilers().empty(); }));
}

TEST_CASE("a job of a backend that was not set up or for a target that is none says so") {
  Fixture fixture;
  auto supervisor = fixture.start();
  Task job = Fixture::job(1, "");
  job.backend = "other";
  CHECK(answer(*supervisor, job).state == JobState::kEnvironment);
  job.backend = "tileiras";
  job.target = "none";
  CHECK(answer(*supervisor, job).state == JobState::kFailed);
}

TEST_CASE("a key that another process holds is busy unless the lock is to be ignored") {
  Fixture fixture;
  auto supervisor = fixture.start();
  Task job = Fixture::job(1, "");
  REQUIRE(fixture.store().locks()->try_lock(job.key) == KeyLocks::Answer::kHeld);
  const engine::Done busy = answer(*supervisor, job);
  CHECK(busy.state == JobState::kBusy);
  CHECK_FALSE(busy.holds_key);

  job.id = 2;
  job.ignore_lock = true;
  const engine::Done forced = answer(*supervisor, job);
  CHECK_MESSAGE(forced.state == JobState::kCompiled, forced.message);
  CHECK_FALSE(forced.holds_key);  // it is the other's

  fixture.store().locks()->unlock(job.key);
  job.id = 3;
  job.ignore_lock = false;
  CHECK(answer(*supervisor, job).state == JobState::kCompiled);
}

TEST_CASE("a key that another job of the same engine holds is busy") {
  Fixture fixture;
  auto supervisor = fixture.start(2);
  Task job = Fixture::job(1, "");
  REQUIRE(answer(*supervisor, job).holds_key);
  job.id = 2;
  CHECK(answer(*supervisor, job).state == JobState::kBusy);
}

TEST_CASE("without a store jobs compile without locks") {
  Fixture fixture;
  engine::EngineSpec spec = fixture.spec();
  spec.setup.store_mode = kc::store::Mode::kOff;
  auto supervisor = Fixture::start(spec);
  const Task job = Fixture::job(1, "");
  REQUIRE(fixture.store().locks()->try_lock(job.key) == KeyLocks::Answer::kHeld);
  const engine::Done done = answer(*supervisor, job);
  CHECK_MESSAGE(done.state == JobState::kCompiled, done.message);
  CHECK_FALSE(done.holds_key);
}

TEST_CASE("as many jobs run at once as there are slots") {
  Fixture fixture;
  auto supervisor = fixture.start(2);
  for (uint32_t id = 1; id <= 3; ++id) submit(*supervisor, Fixture::job(id, "@hang n=" + std::to_string(id)));
  CHECK(becomes_true([&] { return fixture.compilers().size() == 2; }));
  std::this_thread::sleep_for(milliseconds(200));
  CHECK(fixture.compilers().size() == 2);
  supervisor.reset();
  CHECK(becomes_true([&] { return fixture.compilers().empty(); }));
  CHECK_FALSE(fixture.has_work_folder());
}

TEST_CASE("wait ends when the other descriptor is readable and when its time is over") {
  Fixture fixture;
  auto supervisor = fixture.start();
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const kc::base::FileDescriptor reading(ends[0]);
  const kc::base::FileDescriptor writing(ends[1]);
  auto heard = supervisor->wait(milliseconds(20), reading.get());
  REQUIRE(heard);
  CHECK_FALSE(heard->woken);
  REQUIRE(write(writing.get(), "x", 1) == 1);
  heard = supervisor->wait(kPatience, reading.get());
  REQUIRE(heard);
  CHECK(heard->woken);
  CHECK(heard->done.empty());
}

TEST_CASE("an engine killed in mid job is replaced and its compilers go") {
  Fixture fixture;
  auto supervisor = fixture.start();
  Task job = Fixture::job(1, "@spawn-grandchild @hang");
  job.timeout = seconds(2);
  submit(*supervisor, job);
  bool started = false;
  REQUIRE(becomes_true([&] {
    auto heard = supervisor->wait(milliseconds(50), -1);
    REQUIRE(heard);
    started = started || !heard->started.empty();
    return started && fixture.compilers().size() == 2;
  }));
  const auto first = fixture.compilers();
  const auto engine = engines();
  REQUIRE(engine.size() == 1);
  REQUIRE(kill(engine.front(), SIGKILL) == 0);
  std::vector<std::string> notes;
  std::optional<engine::Done> done;
  REQUIRE(becomes_true([&] {
    auto heard = supervisor->wait(seconds(1), -1);
    REQUIRE_MESSAGE(heard, (heard ? std::string() : heard.error().text()));
    for (std::string& note : heard->notes) notes.push_back(std::move(note));
    CHECK(heard->started.empty());
    if (!heard->done.empty()) done = std::move(heard->done.front());
    return done.has_value();
  }));
  CHECK(notes == std::vector<std::string>{"an engine was ended by SIGKILL; 1 unit runs again, alone"});
  CHECK(done->state == JobState::kTimeout);  // of the second run, as its runner tells it
  for (const pid_t compiler : first) {
    const auto left = fixture.compilers();
    CHECK(std::ranges::find(left, compiler) == left.end());
  }
  supervisor.reset();
  CHECK(becomes_true([&] { return fixture.compilers().empty(); }));
  CHECK_FALSE(fixture.has_work_folder());
}

TEST_CASE("compilers of a killed engine go even when kc has not read that they were started") {
  Fixture fixture;
  auto supervisor = fixture.start();
  submit(*supervisor, Fixture::job(1, "@hang"));
  REQUIRE(becomes_true([&] { return fixture.compilers().size() == 1; }));
  std::this_thread::sleep_for(milliseconds(200));  // the engine tells it right after the start
  const auto engine = engines();
  REQUIRE(engine.size() == 1);
  REQUIRE(kill(engine.front(), SIGKILL) == 0);
  supervisor.reset();
  CHECK(becomes_true([&] { return fixture.compilers().empty(); }, seconds(5)));
  for (const pid_t left : fixture.compilers()) kill(left, SIGKILL);
}

TEST_CASE("a job handed to an engine that ended before any job tells how it ended") {
  const TempFolder folder;
  auto supervisor = Supervisor::start(pretenders(folder, {"echo 'out of threads' >&2\nexit 3\n"}));
  REQUIRE(supervisor);
  submit(**supervisor, Fixture::job(1, ""));
  const kc::base::Error error = death_of(**supervisor);
  CHECK(error.kind == ErrorKind::kEnvironment);
  CHECK(contains(error.message, "out of threads"));
  // It stays so.
  CHECK_FALSE((*supervisor)->wait(milliseconds(1), -1));
  CHECK((*supervisor)->room() == 0);
}

TEST_CASE("an engine that crashes in a compile is replaced and the guilty unit told with its last words") {
  const TempFolder folder;
  const auto started = [](uint32_t id) { return say(engine::Started{id}); };
  auto supervisor = Supervisor::start(pretenders(
      folder, {started(1) + started(2) + "kill -SEGV $$\n",                  // both
               started(1) + "echo 'assertion failed' >&2\nkill -ABRT $$\n",  // alone: the guilty one
               started(2) + say(compiled(2)) + "cat <&3 >&2\n"}));
  REQUIRE(supervisor);
  for (const uint32_t id : {1, 2}) submit(**supervisor, in_process(id));
  std::map<uint32_t, engine::Done> done = all_done(**supervisor, 2);
  CHECK(done.at(1).state == JobState::kCrashed);
  CHECK(done.at(1).message == "crashed the compiler (SIGABRT)");
  CHECK(done.at(1).output == "assertion failed");
  CHECK(done.at(2).state == JobState::kCompiled);
}

TEST_CASE("a compile that ends the engine with exit code 0 or spoils its connection is guilty") {
  const TempFolder folder;
  const std::string start = say(engine::Started{1});
  auto supervisor = Supervisor::start(pretenders(folder, {start + "exit 0\n", start + "exit 0\n"}));
  REQUIRE(supervisor);
  submit(**supervisor, in_process(1));
  CHECK(next_done(**supervisor).message == "ended the engine with exit code 0");

  const TempFolder other;
  const std::string nonsense = start + "printf '\\377\\377\\377\\377' >&3\nsleep 60\n";
  supervisor = Supervisor::start(pretenders(other, {nonsense, nonsense}));
  REQUIRE(supervisor);
  submit(**supervisor, in_process(1));
  CHECK(next_done(**supervisor).message == "wrote to the connection of the engine");
}

TEST_CASE("a compile in process that takes too long is ended with its engine and the others run again") {
  const TempFolder folder;
  auto supervisor = Supervisor::start(
      pretenders(folder, {say(engine::Started{1}) + say(engine::Started{2}) + "trap '' TERM\nsleep 60\n",
                          say(engine::Started{2}) + say(compiled(2)) + "cat <&3 >&2\n"}));
  REQUIRE(supervisor);
  Task slow = in_process(1);
  slow.timeout = milliseconds(300);
  submit(**supervisor, slow);
  submit(**supervisor, in_process(2));
  std::map<uint32_t, engine::Done> done = all_done(**supervisor, 2);
  CHECK(done.at(1).state == JobState::kTimeout);
  CHECK(done.at(1).message == "took longer than 300ms");
  CHECK(done.at(2).state == JobState::kCompiled);
}

TEST_CASE("the end of an engine is seen though what it left behind holds its connection") {
  const TempFolder folder;
  const std::string script = say(engine::Started{1}) + "sleep 600 & kill -SEGV $$\n";
  auto supervisor = Supervisor::start(pretenders(folder, {script, script}));
  REQUIRE(supervisor);
  const kc::util::Stopwatch clock;
  const engine::Done done = answer(**supervisor, in_process(1));
  CHECK(done.state == JobState::kCrashed);
  CHECK(clock.seconds() < 10);
  CHECK(processes([](pid_t, const std::string& line) {
          return line.starts_with(std::string_view("sleep\000600", 9));
        }).empty());
}

TEST_CASE("an engine that never reads does not stop kc") {
  const TempFolder folder;
  auto supervisor = Supervisor::start(pretenders(folder, {say(engine::Started{1}) + "sleep 60\n"}));
  REQUIRE(supervisor);
  Task job = in_process(1);
  std::vector<kc::backend::Source> large(1);
  large[0].bytes.assign(32U << 20, 1);
  job.files = std::make_shared<const std::vector<kc::backend::Source>>(std::move(large));
  job.timeout = milliseconds(300);
  const kc::util::Stopwatch clock;
  CHECK(answer(**supervisor, job).state == JobState::kTimeout);
  CHECK(clock.seconds() < 10);
}

TEST_CASE("the engine is found beside the folder of the program") {
  CHECK(engine::engine_path("/opt/kc/bin/kc") == "/opt/kc/libexec/kc/kc-engine");
}
