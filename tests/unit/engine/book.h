// A book of what the state machine of jobs decides, in which a test speaks for the engines.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "engine/jobs.h"
#include "support/temp_folder.h"

namespace kc::test {

inline const engine::Death kSegv{engine::Death::Cause::kSignal, SIGSEGV, "bad address", {}};
inline const engine::Death kKilled{engine::Death::Cause::kSignal, SIGKILL, {}, {}};
inline const engine::Death kExit{engine::Death::Cause::kExit, 0, {}, {}};

// Carries out the actions as notes in a book, and lets a test speak for the engines.
class Book {
 public:
  explicit Book(uint32_t slots, uint32_t prefetch = 0,
                size_t most_in_memory = engine::HeldAnswers::kMostInMemory)
      : jobs(slots, prefetch, engine::HeldAnswers(folder_.path(), most_in_memory)) {
    read();
  }

  void read() {
    for (engine::Action& action : jobs.take_actions()) {
      std::visit([&](auto& what) { write(what); }, action);
    }
  }
  void submit(uint32_t id, backend::RunKind run = backend::RunKind::kThreads,
              util::Nanoseconds timeout = {}) {
    jobs.submit({id, "unit" + std::to_string(id), run, timeout});
    read();
  }
  void submit_all(uint32_t count) {
    for (uint32_t id = 1; id <= count; ++id) submit(id);
  }
  // Of the engine that has it.
  void start(uint32_t id) {
    REQUIRE(jobs.started(where.at(id), id, now));
    read();
  }
  void start_all(const std::vector<uint32_t>& ids) {
    for (const uint32_t id : ids) start(id);
  }
  void end(uint32_t id, engine::JobState state = engine::JobState::kCompiled, uint8_t code = 1,
           bool holds_key = false) {
    engine::Done done;
    done.id = id;
    done.state = state;
    done.artifact.code = {code};
    done.holds_key = holds_key;
    if (state == engine::JobState::kTainted) done.message = "changed the locale of the engine";
    tell(std::move(done));
  }
  // Somebody else has the content key.
  void end_busy(uint32_t id) {
    engine::Done done;
    done.id = id;
    done.state = engine::JobState::kBusy;
    done.content_key = base::sha256(std::string_view("content"));
    tell(std::move(done));
  }
  // Empties the file of held answers.
  void lose_held() {
    for (int fd = 0; fd < 1024; ++fd) {
      std::string target(4096, '\0');
      const ssize_t size =
          readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target.data(), target.size());
      if (size > 0 && target.starts_with(folder_ / "held-")) REQUIRE(ftruncate(fd, 0) == 0);
    }
  }
  void tell(engine::Done done) {
    const engine::EngineNumber number = where.at(done.id);
    std::erase(engines.at(number).jobs, done.id);
    REQUIRE(jobs.done(number, std::move(done)));
    read();
  }
  void die(engine::EngineNumber number, const engine::Death& death) {
    engines.erase(number);
    jobs.died(number, death);
    read();
  }
  void expire() {
    jobs.expire(now);
    read();
  }
  std::optional<engine::JobState> state(uint32_t id) const {
    const auto found = answers.find(id);
    return found == answers.end() ? std::nullopt : std::optional(found->second.state);
  }
  engine::EngineNumber only_engine() const {
    REQUIRE(engines.size() == 1);
    return engines.begin()->first;
  }

  struct Engine {
    uint32_t slots = 0;
    std::vector<uint32_t> jobs;
  };

 private:
  TempFolder folder_;

  void write(const engine::StartEngine& action) {
    REQUIRE(engines.emplace(action.engine, Engine{action.slots, {}}).second);
    ++started_engines;
  }
  void write(const engine::SendJob& action) {
    engines.at(action.engine).jobs.push_back(action.job);
    where[action.job] = action.engine;
    ++sent[action.job];
  }
  void write(const engine::EndEngine& action) { REQUIRE(engines.erase(action.engine) == 1); }
  void write(const engine::TellStarted& action) { told.push_back(action.job); }
  void write(const engine::FreeKeys& action) {
    CHECK(where.at(action.job) == action.engine);
    freed.push_back(action.job);
  }
  void write(engine::Answer& action) {
    order.push_back(action.done.id);
    REQUIRE(answers.emplace(action.done.id, std::move(action.done)).second);
  }
  void write(engine::Note& action) { notes.push_back(std::move(action.text)); }

 public:
  engine::Jobs jobs;
  engine::Jobs::TimePoint now{};
  std::map<engine::EngineNumber, Engine> engines;
  std::map<uint32_t, engine::EngineNumber> where;
  std::map<uint32_t, int> sent;
  std::map<uint32_t, engine::Done> answers;
  std::vector<uint32_t> order;
  std::vector<uint32_t> told;
  std::vector<uint32_t> freed;
  std::vector<std::string> notes;
  int started_engines = 0;
};

}  // namespace kc::test
