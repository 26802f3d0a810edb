// The supervisor and the real kc-engine over a compiler library that misbehaves (tests/support/hostile_loom).
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/supervisor.h"
#include "engine_support.h"
#include "process_list.h"
#include "store/key_locks.h"
#include "util/text.h"

namespace {

namespace engine = kc::engine;
using engine::Done;
using engine::JobState;
using engine::Supervisor;
using kc::test::TempFolder;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kPatience = seconds(60);
constexpr uint32_t kUnits = 30;

// What the library does wrong it does where @bad is 1. Nothing reads @bad, so that it changes no code.
std::string source(std::string_view misdeed = {}) {
  return kc::util::format(
      "//! {} @when=bad=1\n"
      "config.def @bad = 0 : index\n"
      "config.decl @n : %n: index\n"
      "kernel.def export(\"k\") @k(%a: index) {{\n"
      "}} launch(%a: index) {{\n"
      "  %v = config.get @n : index\n"
      "  kernel.return\n"
      "}}\n",
      misdeed);
}

engine::SharedFiles files_of(const std::string& text) {
  std::vector<kc::backend::Source> out(1);
  out[0].identifier = "k.loom";
  out[0].bytes.assign(text.begin(), text.end());
  return std::make_shared<const std::vector<kc::backend::Source>>(std::move(out));
}

struct Told {
  std::map<uint32_t, Done> done;
  std::vector<std::string> notes;
  std::vector<uint32_t> started;
};

// A supervisor over the hostile library, with a store.
class Fixture {
 public:
  explicit Fixture(uint32_t slots = 2, kc::store::Mode mode = kc::store::Mode::kReadWrite,
                   bool own_program = false, bool prefetch = true) {
    kc::backend::SearchVariables variables;
    variables.kc_loom_library = KC_HOSTILE_LOOM "/g4/libloomc.so";
    auto compiler = kc::backend::find_compiler("loom", variables, {});
    REQUIRE_MESSAGE(compiler, (compiler ? std::string() : compiler.error().text()));
    kc::store::Options options;
    options.directory = folder_ / "store";
    auto store = kc::store::Store::open(options);
    REQUIRE(store);
    store_ = std::move(*store);
    spec_.program = KC_ENGINE;
    if (own_program) {
      spec_.program = folder_ / "kc-engine";
      std::filesystem::copy_file(KC_ENGINE, spec_.program);
    }
    spec_.prefetch = prefetch;
    spec_.setup.compilers = {*compiler};
    spec_.setup.store_directory = options.directory;
    spec_.setup.store_mode = mode;
    spec_.setup.work_folder = folder_ / "work";
    spec_.setup.slots = slots;
    std::filesystem::create_directory(spec_.setup.work_folder);
    auto supervisor = Supervisor::start(spec_);
    REQUIRE_MESSAGE(supervisor, (supervisor ? std::string() : supervisor.error().text()));
    supervisor_ = std::move(*supervisor);
  }

  static engine::Job job(uint32_t id, bool is_bad = false) {
    engine::Job out;
    out.id = id;
    out.backend = "loom";
    out.unit = "unit" + std::to_string(id);
    out.key = kc::test::digest_of("request" + std::to_string(id));
    out.entry = "k";
    out.target = "gfx1100";
    out.options = {{"processor_mode", "default"}, {"report", "none"}};
    out.config = {{"bad", is_bad ? "1" : "0"}, {"n", std::to_string(id)}};
    out.timeout = kPatience;
    return out;
  }

  void submit(const engine::Job& job, const engine::SharedFiles& files) {
    const auto sent = supervisor_->submit(job, files);
    REQUIRE_MESSAGE(sent, (sent ? std::string() : sent.error().text()));
  }
  // Until `count` answers are there; keys are let go at once.
  void hear(Told& told, size_t count) {
    const auto deadline = kc::util::Clock::now() + kPatience;
    while (told.done.size() < count && kc::util::Clock::now() < deadline) hear_once(told);
    REQUIRE(told.done.size() >= count);
  }
  void hear_once(Told& told) {
    auto heard = supervisor_->wait(seconds(1), -1);
    REQUIRE_MESSAGE(heard, (heard ? std::string() : heard.error().text()));
    for (std::string& note : heard->notes) told.notes.push_back(std::move(note));
    for (const engine::Started& started : heard->started) told.started.push_back(started.id);
    for (Done& done : heard->done) {
      if (done.holds_key) supervisor_->release(done.id);
      const uint32_t id = done.id;
      REQUIRE(told.done.emplace(id, std::move(done)).second);
    }
  }
  // All units of one source, as many at a time as there is room for.
  Told build(const std::string& text, uint32_t guilty = 0, kc::util::Nanoseconds timeout = kPatience) {
    const engine::SharedFiles files = files_of(text);
    Told told;
    uint32_t next = 1;
    const auto deadline = kc::util::Clock::now() + kPatience;
    while (told.done.size() < kUnits && kc::util::Clock::now() < deadline) {
      while (next <= kUnits && supervisor_->room() > 0) {
        engine::Job one = job(next, next == guilty);
        one.timeout = timeout;
        submit(one, files);
        ++next;
      }
      hear_once(told);
    }
    REQUIRE(told.done.size() == kUnits);
    return told;
  }

  Supervisor& supervisor() { return *supervisor_; }
  void stop() { supervisor_.reset(); }
  kc::store::Store& store() { return *store_; }
  const kc::backend::Compiler& compiler() const { return spec_.setup.compilers.front(); }
  const std::string& program() const { return spec_.program; }
  std::string work_folder() const { return spec_.setup.work_folder; }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
  std::unique_ptr<kc::store::Store> store_;
  engine::EngineSpec spec_;
  std::unique_ptr<Supervisor> supervisor_;
};

using Codes = std::map<uint32_t, kc::base::Bytes>;

// The code of each unit of a source where nobody does wrong.
Codes good_codes(const std::string& text) {
  Fixture fixture(1);
  Codes codes;
  for (auto& [id, done] : fixture.build(text).done) {
    REQUIRE_MESSAGE(done.state == JobState::kCompiled, done.message);
    codes[id] = done.artifact.code;
  }
  return codes;
}

struct Misdeed {
  std::string_view directive;
  JobState state;
  std::string_view message;  // as it begins
};

// Only `guilty` fails, in the way that is expected; all others have the code that they always have.
void check_only_guilty(const Told& told, const Codes& codes, uint32_t guilty, const Misdeed& misdeed) {
  for (const auto& [id, done] : told.done) {
    if (id == guilty) {
      CHECK_MESSAGE(done.state == misdeed.state, misdeed.directive, ": ", done.message);
      CHECK_MESSAGE(done.message.starts_with(misdeed.message), misdeed.directive, ": ", done.message);
      CHECK(done.artifact.code.empty());
      CHECK_FALSE(done.holds_key);
    } else {
      CHECK_MESSAGE(done.state == JobState::kCompiled, misdeed.directive, " ", id, ": ", done.message);
      CHECK_MESSAGE(done.artifact.code == codes.at(id), misdeed.directive, " ", id);
    }
  }
}

}  // namespace

TEST_CASE("a library that ends the engine costs the guilty unit alone whichever it is") {
  constexpr Misdeed kMisdeeds[] = {
      {"@segfault", JobState::kCrashed, "crashed the compiler (SIGSEGV)"},
      {"@segfault:link", JobState::kCrashed, "crashed the compiler (SIGSEGV)"},
      {"@abort @stderr=assertion%20failed%0A", JobState::kCrashed, "crashed the compiler (SIGABRT)"},
      {"@exit=0", JobState::kCrashed, "ended the engine with exit code 0"},
      {"@exit=3", JobState::kCrashed, "ended the engine with exit code 3"},
      {"@overflow", JobState::kCrashed, "crashed the compiler (SIGSEGV)"},
      {"@kill=9", JobState::kCrashed, "was killed (SIGKILL), perhaps for its memory"},
      {"@corrupt=100", JobState::kCrashed, "crashed the compiler (SIGSEGV)"},
  };
  for (const Misdeed& misdeed : kMisdeeds) {
    const std::string text = source(misdeed.directive);
    const Codes codes = good_codes(text);
    for (const uint32_t guilty : {1U, kUnits / 2, kUnits}) {
      Fixture fixture;
      const kc::util::Stopwatch clock;
      const Told told = fixture.build(text, guilty);
      check_only_guilty(told, codes, guilty, misdeed);
      CHECK_MESSAGE(clock.seconds() < 20, misdeed.directive);  // well below 1 when nothing else runs
      REQUIRE_FALSE(told.notes.empty());
      CHECK(told.notes[0].starts_with("an engine "));
      if (misdeed.directive.starts_with("@abort")) {
        CHECK(told.done.at(guilty).output == "assertion failed");
      }
    }
  }
}

TEST_CASE("a library that taints or throws costs the guilty unit alone") {
  constexpr Misdeed kMisdeeds[] = {
      {"@chdir", JobState::kTainted, "changed the working directory of the engine"},
      {"@locale", JobState::kTainted, "changed the locale of the engine"},
      {"@sigmask", JobState::kTainted, "changed the signal mask of the engine"},
      {"@rounding", JobState::kTainted, "changed the rounding mode of the engine"},
      {"@throw", JobState::kTainted, ""},
      {"@throw:link", JobState::kTainted, ""},
  };
  for (const Misdeed& misdeed : kMisdeeds) {
    const std::string text = source(misdeed.directive);
    const Codes codes = good_codes(text);
    for (const uint32_t guilty : {1U, kUnits / 2, kUnits}) {
      Fixture fixture;
      const Told told = fixture.build(text, guilty);
      check_only_guilty(told, codes, guilty, misdeed);
      CHECK_FALSE(told.notes.empty());
      if (misdeed.directive.starts_with("@throw")) {
        CHECK_MESSAGE(told.done.at(guilty).message.find("exception") != std::string::npos,
                      told.done.at(guilty).message);
      }
    }
  }
}

TEST_CASE("a library that hangs costs the guilty unit alone and its timeout once") {
  const std::string text = source("@hang");
  const Codes codes = good_codes(text);
  for (const uint32_t guilty : {1U, kUnits / 2, kUnits}) {
    Fixture fixture;
    const Told told = fixture.build(text, guilty, seconds(2));
    check_only_guilty(told, codes, guilty, {"@hang", JobState::kTimeout, "took longer than 2s"});
    CHECK(told.done.at(guilty).seconds >= 2);
  }
}

TEST_CASE("a job is not late because kc did not listen") {
  Fixture fixture(1);
  Told told;
  engine::Job job = Fixture::job(1, true);
  job.timeout = seconds(2);
  fixture.submit(job, files_of(source("@hang")));
  while (told.started.empty()) fixture.hear_once(told);
  std::this_thread::sleep_for(seconds(3));
  auto heard = fixture.supervisor().wait(milliseconds(0), -1);
  REQUIRE(heard);
  CHECK(heard->done.empty());
  fixture.hear(told, 1);
  CHECK(told.done.at(1).state == JobState::kTimeout);
}

TEST_CASE("a unit that crashes once and not again is compiled") {
  Fixture fixture;
  const std::string text = source("@segfault @once=" + (fixture.folder() / "once"));
  const Told told = fixture.build(text, 7);
  const Codes codes = good_codes(text);
  for (const auto& [id, done] : told.done) CHECK(done.artifact.code == codes.at(id));
  CHECK(told.notes.size() == 1);
}

TEST_CASE("several that crash and hang and taint among thirty are each told") {
  Fixture fixture(3);
  // The directives of one file hold together, so each has a file of its own.
  Told told;
  std::map<uint32_t, engine::SharedFiles> files;
  const engine::SharedFiles good = files_of(source());
  const Codes codes = good_codes(source());
  const std::map<uint32_t, std::string> deeds = {{3, "@segfault"}, {4, "@abort"},   {11, "@hang"},
                                                 {12, "@chdir"},   {13, "@exit=0"}, {29, "@locale"}};
  for (const auto& [id, deed] : deeds) files[id] = files_of(source(deed));
  for (uint32_t id = 1; id <= kUnits; ++id) {
    while (fixture.supervisor().room() == 0) fixture.hear_once(told);
    engine::Job job = Fixture::job(id, files.contains(id));
    job.timeout = seconds(2);
    fixture.submit(job, files.contains(id) ? files.at(id) : good);
  }
  fixture.hear(told, kUnits);
  for (const auto& [id, done] : told.done) {
    if (!deeds.contains(id)) {
      CHECK_MESSAGE(done.state == JobState::kCompiled, id, ": ", done.message);
      CHECK(done.artifact.code == codes.at(id));
    }
  }
  CHECK(told.done.at(3).state == JobState::kCrashed);
  CHECK(told.done.at(4).state == JobState::kCrashed);
  CHECK(told.done.at(11).state == JobState::kTimeout);
  CHECK(told.done.at(12).state == JobState::kTainted);
  CHECK(told.done.at(13).state == JobState::kCrashed);
  CHECK(told.done.at(29).state == JobState::kTainted);
  // Each told as started once, whatever it was run for afterwards.
  std::set<uint32_t> once(told.started.begin(), told.started.end());
  CHECK(once.size() == kUnits);
  CHECK(told.started.size() == kUnits);
}

TEST_CASE("an engine killed from outside at any moment after its first job was started changes nothing") {
  const std::string text = source("@sleep=5");
  const Codes codes = good_codes(text);
  int rounds_noted = 0;
  for (uint32_t round = 0; round < 12; ++round) {
    Fixture fixture;
    const engine::SharedFiles files = files_of(text);
    Told told;
    uint32_t next = 1;
    bool is_killed = false;
    while (told.done.size() < kUnits) {
      while (next <= kUnits && fixture.supervisor().room() > 0) {
        fixture.submit(Fixture::job(next, next % 2 == 0), files);
        ++next;
      }
      fixture.hear_once(told);
      if (!is_killed && told.started.size() > round * 2 && told.done.size() < kUnits) {
        is_killed = true;
        const std::vector<pid_t> engines = kc::test::engines();
        REQUIRE(engines.size() == 1);
        REQUIRE(kill(engines.front(), SIGKILL) == 0);
      }
    }
    for (const auto& [id, done] : told.done) {
      CHECK_MESSAGE(done.state == JobState::kCompiled, done.message);
      CHECK(done.artifact.code == codes.at(id));
    }
    // None when it had done all its work already.
    CHECK(told.notes.size() <= 1);
    rounds_noted += static_cast<int>(told.notes.size());
  }
  CHECK(rounds_noted >= 4);
}

TEST_CASE("an engine that dies behind an answer while jobs wait for it costs nothing") {
  Fixture fixture;
  const engine::SharedFiles brief = files_of(source("@sleep=500"));
  Told told;
  fixture.submit(Fixture::job(1, true), files_of(source("@sleep=6000")));
  fixture.submit(Fixture::job(2, true), brief);
  while (told.started.size() < 2) fixture.hear_once(told);
  REQUIRE(kill(kc::test::engines().at(0), SIGKILL) == 0);
  // Both run alone now; when the second is done, one slot is left for all others.
  fixture.hear(told, 1);
  const std::vector<pid_t> before = kc::test::engines();
  for (const uint32_t id : {3, 4, 5}) {
    REQUIRE(fixture.supervisor().room() > 0);
    fixture.submit(Fixture::job(id, true), brief);
  }
  while (told.started.size() < 3) fixture.hear_once(told);
  std::this_thread::sleep_for(seconds(1));  // the answer of 3 lies in the connection
  for (const pid_t pid : kc::test::engines()) {
    if (std::ranges::find(before, pid) == before.end()) REQUIRE(kill(pid, SIGKILL) == 0);
  }
  fixture.hear(told, 5);
  CHECK(told.notes.size() == 2);
  for (const auto& [id, done] : told.done) CHECK_MESSAGE(done.state == JobState::kCompiled, done.message);
}

TEST_CASE("what an engine answered is told though no other engine can be started") {
  Fixture fixture(1, kc::store::Mode::kReadWrite, true);
  const engine::SharedFiles files = files_of(source());
  Told told;
  fixture.submit(Fixture::job(1), files);
  fixture.submit(Fixture::job(2, true), files_of(source("@hang")));
  std::this_thread::sleep_for(seconds(1));
  const std::vector<pid_t> engines =
      kc::test::processes([](pid_t pid, const std::string&) { return kc::test::parent_of(pid) == getpid(); });
  REQUIRE(engines.size() == 1);
  REQUIRE(kill(engines.front(), SIGKILL) == 0);
  std::filesystem::remove(fixture.program());
  fixture.hear(told, 1);
  CHECK(told.done.at(1).state == JobState::kCompiled);
  const auto heard = fixture.supervisor().wait(seconds(1), -1);
  REQUIRE_FALSE(heard);
  CHECK(heard.error().kind == kc::base::ErrorKind::kEnvironment);
}

TEST_CASE("a record that leads to the entry of another target or kernel is no hit") {
  Fixture fixture(1);
  const engine::SharedFiles files = files_of(source());
  Told told;
  fixture.submit(Fixture::job(1), files);
  fixture.hear(told, 1);
  kc::store::Entry entry;
  entry.backend = "loom";
  entry.target = "gfx1100";
  entry.entry = "k";
  entry.kernel = "k";
  entry.artifact = told.done.at(1).artifact;
  for (uint32_t id = 2; id <= 4; ++id) {
    kc::store::Entry wrong = entry;
    (id == 2 ? wrong.backend : id == 3 ? wrong.target : wrong.entry) = "other";
    wrong.key = kc::test::digest_of("content" + std::to_string(id));
    REQUIRE(fixture.store().put(wrong));
    kc::store::Record record;
    record.request = Fixture::job(id).key;
    record.content = wrong.key;
    record.unit = "unit";
    REQUIRE(fixture.store().put_record(record));
    fixture.submit(Fixture::job(id), files);
    fixture.hear(told, id);
    CHECK(told.done.at(id).state == JobState::kCompiled);
    CHECK(told.done.at(id).content_key != wrong.key);
  }
}

TEST_CASE("without jobs that wait in the engine there is room for no more than the slots") {
  Fixture fixture(2, kc::store::Mode::kOff, false, false);
  const engine::SharedFiles files = files_of(source());
  Told told;
  for (uint32_t id = 1; id <= 8; ++id) {
    while (fixture.supervisor().room() == 0) fixture.hear_once(told);
    CHECK(fixture.supervisor().room() <= 2);
    fixture.submit(Fixture::job(id), files);
  }
  fixture.hear(told, 8);
  CHECK(fixture.supervisor().room() == 2);
}

TEST_CASE("the content key is over the linked module and what somebody has put under it is a hit") {
  Fixture fixture(1);
  const engine::SharedFiles files = files_of(source());
  Told told;
  fixture.submit(Fixture::job(1), files);
  fixture.hear(told, 1);
  const Done& first = told.done.at(1);
  REQUIRE_MESSAGE(first.state == JobState::kCompiled, first.message);
  REQUIRE(first.module);
  REQUIRE(first.content_key);
  CHECK(first.content_key != Fixture::job(1).key);

  kc::store::Entry entry;
  entry.key = *first.content_key;
  entry.backend = "loom";
  entry.target = "gfx1100";
  entry.entry = "k";
  entry.kernel = "k";
  entry.artifact = first.artifact;
  REQUIRE(fixture.store().put(entry));
  // Asked for in another way, linked to the same.
  engine::Job job = Fixture::job(2);
  job.config = {{"bad", "0"}, {"n", "1"}};
  fixture.submit(job, files);
  fixture.hear(told, 2);
  const Done& second = told.done.at(2);
  CHECK(second.state == JobState::kHit);
  CHECK(second.module == first.module);
  CHECK(second.content_key == first.content_key);
  CHECK(second.artifact == first.artifact);
  CHECK(second.holds_key);  // until its record is put

  // With a record nothing need be linked.
  kc::store::Record record;
  record.request = kc::test::digest_of("request3");
  record.content = *first.content_key;
  record.unit = "unit3";
  REQUIRE(fixture.store().put_record(record));
  fixture.submit(Fixture::job(3), files);
  fixture.hear(told, 3);
  CHECK(told.done.at(3).state == JobState::kHit);
  CHECK(told.done.at(3).content_key == first.content_key);
  CHECK_FALSE(told.done.at(3).module);
  CHECK_FALSE(told.done.at(3).holds_key);
}

TEST_CASE("both keys of a unit stay locked until they are let go and a busy one of either is told") {
  Fixture fixture(1);
  kc::store::KeyLocks* locks = fixture.store().locks();
  REQUIRE(locks != nullptr);
  const engine::SharedFiles files = files_of(source());
  fixture.submit(Fixture::job(1), files);
  std::optional<Done> done;
  while (!done) {
    auto heard = fixture.supervisor().wait(seconds(1), -1);
    REQUIRE(heard);
    if (!heard->done.empty()) done = std::move(heard->done.front());
  }
  REQUIRE_MESSAGE(done->state == JobState::kCompiled, done->message);
  CHECK(done->holds_key);
  using Answer = kc::store::KeyLocks::Answer;
  CHECK(locks->try_lock(Fixture::job(1).key) == Answer::kBusy);
  CHECK(locks->try_lock(*done->content_key) == Answer::kBusy);
  fixture.supervisor().release(1);
  const auto deadline = kc::util::Clock::now() + kPatience;
  Answer content = Answer::kBusy;
  while (content == Answer::kBusy && kc::util::Clock::now() < deadline) {
    content = locks->try_lock(*done->content_key);
  }
  REQUIRE(content == Answer::kHeld);
  CHECK(locks->try_lock(Fixture::job(1).key) == Answer::kHeld);
  locks->unlock(Fixture::job(1).key);

  // Another request, whose module another process compiles.
  Told told;
  engine::Job job = Fixture::job(2);
  job.config = {{"bad", "0"}, {"n", "1"}};
  fixture.submit(job, files);
  fixture.hear(told, 1);
  CHECK(told.done.at(2).state == JobState::kBusy);
  CHECK_FALSE(told.done.at(2).holds_key);
  CHECK(locks->try_lock(job.key) == Answer::kHeld);  // it let the first one go too
  locks->unlock(job.key);
  told.done.clear();
  job.ignore_lock = true;
  fixture.submit(job, files);
  fixture.hear(told, 1);
  CHECK(told.done.at(2).state == JobState::kCompiled);
  CHECK_FALSE(told.done.at(2).holds_key);
}

TEST_CASE("in process compiles make no folder of their own") {
  Fixture fixture(1, kc::store::Mode::kOff);
  Told told;
  fixture.submit(Fixture::job(1), files_of(source()));
  fixture.hear(told, 1);
  CHECK(told.done.at(1).state == JobState::kCompiled);
  CHECK(std::filesystem::is_empty(fixture.work_folder() + "/engine-1"));
  fixture.stop();
  CHECK_FALSE(std::filesystem::exists(fixture.work_folder()));
}

TEST_CASE("an engine all of whose slots hang ends with its connection") {
  // It is killed after 0.7 s. A busy machine may need as long for its own end, but not each time.
  double least = 60;
  for (int round = 0; round < 5 && least >= 0.6; ++round) {
    Fixture fixture;
    const engine::SharedFiles files = files_of(source("@hang"));
    Told told;
    for (const uint32_t id : {1, 2, 3}) fixture.submit(Fixture::job(id, true), files);
    while (told.started.size() < 2) fixture.hear_once(told);
    const kc::util::Stopwatch clock;
    fixture.stop();
    least = std::min(least, clock.seconds());
    CHECK(kc::test::engines().empty());
  }
  CHECK(least < 0.6);
}

TEST_CASE("a library that prints without end does not fill memory with it") {
  Fixture fixture(1);
  std::string text;
  for (int i = 0; i < 4096; ++i) text += "x%0A";
  const engine::SharedFiles files = files_of(source("@stdout=" + text));
  Told told;
  for (uint32_t id = 1; id <= kUnits; ++id) {
    while (fixture.supervisor().room() == 0) fixture.hear_once(told);
    fixture.submit(Fixture::job(id, true), files);
  }
  fixture.hear(told, kUnits);
  for (const auto& [id, done] : told.done) CHECK(done.state == JobState::kCompiled);
}
