// Which job is where and who is to blame, without a process.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "book.h"
#include "engine/jobs.h"

namespace {

namespace engine = kc::engine;
using engine::Death;
using engine::Done;
using engine::EngineNumber;
using engine::JobState;
using kc::backend::RunKind;
using kc::base::ErrorKind;
using kc::test::Book;
using kc::test::kExit;
using kc::test::kKilled;
using kc::test::kSegv;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Ids = std::vector<uint32_t>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the first engine is started with all slots before any job") {
  Book book(3, 2);
  CHECK(book.started_engines == 1);
  CHECK(book.engines.at(1).slots == 3);
  CHECK(book.jobs.room() == 5);
}

TEST_CASE("an engine gets as many jobs as it has slots and a few that wait") {
  Book book(2, 1);
  book.submit_all(5);
  CHECK(book.engines.at(1).jobs == Ids{1, 2, 3});
  CHECK(book.jobs.room() == 0);
  book.start_all({1, 2});
  book.end(1);
  CHECK(book.engines.at(1).jobs == Ids{2, 3, 4});
}

TEST_CASE("room is what slots and waiting jobs leave and held answers take none") {
  Book book(2, 2);
  book.submit_all(3);
  CHECK(book.jobs.room() == 1);
  book.start_all({1, 2});
  book.end(1);  // held beside 2
  CHECK_FALSE(book.state(1));
  CHECK(book.jobs.room() == 2);
  book.end(2);
  CHECK(book.jobs.room() == 3);
}

TEST_CASE("no job waits in an engine while a child is under way") {
  Book book(2, 3);
  book.submit(1);
  CHECK(book.jobs.room() == 4);
  book.submit(2, RunKind::kChild);
  CHECK(book.jobs.room() == 0);
  book.submit(3);
  CHECK(book.engines.at(1).jobs == Ids{1, 2});
  book.start(2);
  book.end(2);
  CHECK(book.engines.at(1).jobs == Ids{1, 3});
  CHECK(book.jobs.room() == 3);
  book.jobs.set_prefetch(1);
  CHECK(book.jobs.room() == 1);
}

TEST_CASE("an answer is held until every job that ran beside it has ended well") {
  Book book(3);
  book.submit_all(4);
  book.start_all({1, 2, 3});
  book.end(1);
  CHECK_FALSE(book.state(1));
  book.start(4);  // after 1 was done: not beside it
  book.end(2);
  CHECK_FALSE(book.state(1));
  CHECK_FALSE(book.state(2));
  book.end(3);
  CHECK(book.state(1) == JobState::kCompiled);
  CHECK_FALSE(book.state(2));  // 4 is still beside it
  CHECK_FALSE(book.state(3));
  book.end(4);
  CHECK(book.order == Ids{1, 2, 3, 4});
}

TEST_CASE("jobs that ran one after the other hold nothing back") {
  Book book(1, 4);
  book.submit_all(3);
  for (uint32_t id = 1; id <= 3; ++id) {
    book.start(id);
    book.end(id);
    CHECK(book.state(id) == JobState::kCompiled);
  }
}

TEST_CASE("a child holds no answer back and is held back by a compile in process") {
  Book book(3);
  book.submit(1, RunKind::kChild);
  book.submit(2, RunKind::kChild);
  book.submit(3, RunKind::kThreads);
  book.start_all({1, 2});
  book.end(1);
  CHECK(book.state(1) == JobState::kCompiled);
  book.start(3);
  book.end(2);
  CHECK_FALSE(book.state(2));
  book.end(3);
  CHECK(book.state(2) == JobState::kCompiled);
}

TEST_CASE("that a key is busy is told at once") {
  Book book(2);
  book.submit_all(2);
  book.start(1);
  book.end(2, JobState::kBusy);
  CHECK(book.state(2) == JobState::kBusy);
  CHECK_FALSE(book.state(1));
  book.end(1);
  CHECK(book.state(1) == JobState::kCompiled);
}

TEST_CASE("that a content key is busy waits for who runs beside it and is told before their answers") {
  Book book(2);
  book.submit_all(2);
  book.start_all({1, 2});
  book.end_busy(2);
  CHECK_FALSE(book.state(2));
  book.end(1);
  CHECK(book.order == Ids{2, 1});
  CHECK(book.state(2) == JobState::kBusy);
  CHECK(book.answers.at(2).content_key);
}

TEST_CASE("a content key that was told busy beside a crash is not believed and compared with nothing") {
  Book book(2);
  book.submit_all(2);
  book.start_all({1, 2});
  book.end_busy(2);
  book.die(1, kSegv);
  CHECK_FALSE(book.state(2));
  book.start(1);
  book.end(1);
  book.start(2);
  book.end(2);
  CHECK(book.state(2) == JobState::kCompiled);
  CHECK(book.notes.size() == 1);  // the crash
}

TEST_CASE("the keys of an answer that was lost while it was held are let go before its job runs again") {
  Book book(2, 0, 0);
  book.submit_all(2);
  book.start_all({1, 2});
  book.end(1, JobState::kCompiled, 1, true);
  book.lose_held();
  book.end(2);
  CHECK_FALSE(book.state(1));
  CHECK(book.freed == Ids{1});
  CHECK(book.sent.at(1) == 2);
  book.start(1);
  book.end(1, JobState::kCompiled, 1, true);
  CHECK(book.state(1) == JobState::kCompiled);
  CHECK(book.freed == Ids{1});
}

TEST_CASE("answers that were there before compiling cannot go on are told") {
  Book book(2);
  book.submit_all(2);
  book.start(1);
  book.die(1, kSegv);
  book.start(1);
  const EngineNumber lone = book.where.at(1);
  const EngineNumber rest = book.where.at(2);
  REQUIRE(lone != rest);
  Done done;
  done.id = 1;
  done.state = JobState::kCompiled;
  REQUIRE(book.jobs.done(lone, done));
  book.jobs.died(rest, kExit);  // nothing was read between
  REQUIRE(book.jobs.failure());
  for (engine::Action& action : book.jobs.take_actions()) {
    REQUIRE(std::holds_alternative<engine::Answer>(action));
    CHECK(std::get<engine::Answer>(action).done.id == 1);
    done.id = 0;
  }
  CHECK(done.id == 0);
}

TEST_CASE("after a crash what was running runs alone in engines of its own and the rest goes on") {
  Book book(2, 2);
  book.submit_all(6);
  book.start_all({1, 2});
  book.die(1, kSegv);
  REQUIRE(book.notes.size() == 1);
  CHECK(book.notes[0] == "an engine was ended by SIGSEGV; 2 units run again, each alone");
  REQUIRE(book.engines.size() == 2);
  for (const auto& [number, one] : book.engines) {
    CHECK(one.slots == 1);
    CHECK(one.jobs.size() == 1);
  }
  CHECK(book.where.at(1) != book.where.at(2));
  book.start_all({1, 2});
  book.end(1);  // alone: believed at once
  CHECK(book.state(1) == JobState::kCompiled);
  CHECK(book.engines.size() == 2);  // the other one, and one for the rest
  CHECK(book.where.at(3) > book.where.at(2));
  CHECK(book.told == Ids{1, 2});  // of each the first time only
  book.die(book.where.at(2), kSegv);
  CHECK(book.state(2) == JobState::kCrashed);
  CHECK(book.answers.at(2).message == "crashed the compiler (SIGSEGV)");
  CHECK(book.answers.at(2).output == "bad address");
  book.start_all({3, 4});
  book.end(3);
  book.end(4);
  book.start_all({5, 6});
  book.end(5);
  book.end(6);
  CHECK(book.answers.size() == 6);
  CHECK(book.sent.at(3) == 2);
  CHECK(book.notes.size() == 1);
}

TEST_CASE("a crash of a single running job is not held against it before it is alone a second time") {
  Book book(1);
  book.submit(1);
  book.start(1);
  book.die(1, kSegv);
  CHECK_FALSE(book.state(1));
  CHECK(book.notes[0] == "an engine was ended by SIGSEGV; 1 unit runs again, alone");
  book.start(1);
  book.end(1);
  CHECK(book.state(1) == JobState::kCompiled);
}

TEST_CASE("what ended beside a crash is compiled again and told once") {
  Book book(2);
  book.submit_all(3);
  book.start_all({1, 2});
  book.end(1, JobState::kCompiled, 7);
  book.start(3);
  book.die(1, kSegv);
  CHECK_FALSE(book.state(1));
  // 2 and 3 alone first, then 1 with others.
  book.start_all({2, 3});
  book.end(2);
  book.end(3);
  book.start(1);
  book.end(1, JobState::kCompiled, 7);
  CHECK(book.state(1) == JobState::kCompiled);
  CHECK(book.sent.at(1) == 2);
  CHECK(book.notes.size() == 1);  // the crash alone: both results are the same
}

TEST_CASE("a second result that differs counts and is noted") {
  Book book(2);
  book.submit_all(2);
  book.start_all({1, 2});
  book.end(1, JobState::kCompiled, 7);
  book.die(1, kSegv);
  book.start(2);
  book.end(2);
  book.start(1);
  book.end(1, JobState::kCompiled, 8);
  CHECK(book.answers.at(1).artifact.code == kc::base::Bytes{8});
  REQUIRE(book.notes.size() == 2);
  CHECK(contains(book.notes[1], "unit1"));
  CHECK(contains(book.notes[1], "second"));
}

TEST_CASE("a failure beside a crash is not believed either") {
  Book book(2);
  book.submit_all(2);
  book.start_all({1, 2});
  book.end(1, JobState::kFailed);
  book.die(1, kSegv);
  book.start(2);
  book.end(2);
  book.start(1);
  book.end(1, JobState::kCompiled);
  CHECK(book.state(1) == JobState::kCompiled);
  CHECK(book.notes.size() == 2);
}

TEST_CASE("an answer that somebody else has put meanwhile is the same when its code is") {
  Book book(2);
  book.submit_all(2);
  book.start_all({1, 2});
  book.end(1, JobState::kCompiled, 7);
  book.die(1, kSegv);
  book.start(2);
  book.end(2);
  book.end(1, JobState::kHit, 7);
  CHECK(book.state(1) == JobState::kHit);
  CHECK(book.notes.size() == 1);
}

TEST_CASE("how the guilty one ended its engine is told by what it did") {
  const auto message = [](const Death& death) {
    Book book(1);
    book.submit(1);
    for (int i = 0; i < 3 && !book.state(1); ++i) {
      book.start(1);
      book.die(book.only_engine(), death);
    }
    REQUIRE(book.state(1) == JobState::kCrashed);
    return book.answers.at(1).message;
  };
  CHECK(message(kExit) == "ended the engine with exit code 0");
  CHECK(message(kKilled) == "was killed (SIGKILL), perhaps for its memory");
  CHECK(message({Death::Cause::kSignal, SIGABRT, {}, {}}) == "crashed the compiler (SIGABRT)");
  CHECK(message({Death::Cause::kDamage, 0, {}, {}}) == "wrote to the connection of the engine");
}

TEST_CASE("an engine that is killed from outside costs nothing while its job runs alone") {
  Book book(1);
  book.submit(1);
  book.start(1);
  book.die(book.only_engine(), kSegv);
  book.start(1);
  book.die(book.only_engine(), kKilled);
  CHECK_FALSE(book.state(1));
  book.start(1);
  book.end(1);
  CHECK(book.state(1) == JobState::kCompiled);
}

TEST_CASE("an engine that ends before any of its jobs was started ends all with what it said") {
  const Death death{Death::Cause::kExit, 3, "no thread left", {}};
  for (const bool with_job : {false, true}) {
    Book book(2);
    if (with_job) book.submit(1);
    book.die(1, death);
    REQUIRE(book.jobs.failure());
    CHECK(book.jobs.failure()->kind == ErrorKind::kEnvironment);
    CHECK(contains(book.jobs.failure()->message, "exit code 3: no thread left"));
    CHECK(book.jobs.room() == 0);
    CHECK(book.answers.empty());
  }
  Book alone(1);
  alone.submit(1);
  alone.start(1);
  alone.die(1, kSegv);
  alone.die(alone.only_engine(), death);
  REQUIRE(alone.jobs.failure());
  CHECK(alone.jobs.failure()->kind == ErrorKind::kEnvironment);

  Book second(1, 1);
  second.submit_all(2);
  second.start(1);
  second.end(1);
  second.die(1, kSegv);
  REQUIRE_FALSE(second.jobs.failure());
  second.die(second.only_engine(), death);
  CHECK(second.jobs.failure());
}

TEST_CASE("an engine that ends with nothing in flight is replaced when there is a job") {
  Book book(2);
  book.submit(1);
  book.start(1);
  book.end(1);
  book.die(1, kExit);
  CHECK(book.notes.back() == "an engine ended with exit code 0");
  CHECK(book.engines.empty());
  book.submit(2);
  CHECK(book.started_engines == 2);
  book.start(2);
  book.end(2);
  CHECK(book.state(2) == JobState::kCompiled);
  CHECK(book.sent.at(2) == 1);
}

TEST_CASE("a job that takes too long is guilty at once and the others run again together") {
  Book book(3);
  book.submit(1, RunKind::kThreads, seconds(1));
  book.submit(2, RunKind::kThreads, minutes(10));
  book.submit(3, RunKind::kChild, milliseconds(1));  // its runner's business
  book.start_all({1, 2, 3});
  book.submit(4);
  CHECK(book.jobs.next_deadline() == book.now + seconds(1));
  book.now += milliseconds(999);
  book.expire();
  CHECK(book.answers.empty());
  book.now += milliseconds(1);
  book.expire();
  CHECK(book.state(1) == JobState::kTimeout);
  CHECK(book.answers.at(1).message == "took longer than 1s");
  CHECK_FALSE(book.answers.at(1).hint.empty());
  CHECK(book.notes ==
        std::vector<std::string>{"an engine was ended because unit1 took longer than 1s; 2 units run again"});
  CHECK(book.engines.at(book.only_engine()).jobs == Ids{2, 3, 4});
  CHECK(book.engines.at(book.only_engine()).slots == 3);
  CHECK_FALSE(book.jobs.next_deadline());
  book.start_all({2, 3, 4});
  CHECK(book.jobs.next_deadline() == book.now + minutes(10));
  book.now += minutes(10);
  book.expire();
  CHECK(book.answers.at(2).message == "took longer than 10m");
}

TEST_CASE("time in which nobody listened makes no job late") {
  Book book(1, 1);
  book.submit(1, RunKind::kThreads, seconds(1));
  book.start(1);
  book.now += minutes(5);
  book.jobs.postpone(minutes(5));
  book.expire();
  CHECK_FALSE(book.state(1));
  CHECK(book.jobs.next_deadline() == book.now + seconds(1));
}

TEST_CASE("what ended beside a job that took too long is compiled again") {
  Book book(2);
  book.submit(1, RunKind::kThreads, seconds(1));
  book.submit(2);
  book.start_all({1, 2});
  book.end(2, JobState::kCompiled, 5);
  book.now += seconds(2);
  book.expire();
  CHECK(book.state(1) == JobState::kTimeout);
  CHECK_FALSE(book.state(2));
  book.start(2);
  book.end(2, JobState::kCompiled, 5);
  CHECK(book.state(2) == JobState::kCompiled);
}

TEST_CASE("a job that takes too long while it runs alone is guilty") {
  Book book(1);
  book.submit(1, RunKind::kThreads, milliseconds(1500));
  book.start(1);
  book.die(1, kSegv);
  book.start(1);
  book.now += seconds(2);
  book.expire();
  CHECK(book.state(1) == JobState::kTimeout);
  CHECK(book.answers.at(1).message == "took longer than 1500ms");
  CHECK(book.engines.empty());
}

TEST_CASE("a tainted engine is ended and who taints one alone is guilty") {
  Book book(2, 1);
  book.submit_all(3);
  book.start_all({1, 2});
  book.end(2, JobState::kTainted);
  CHECK(book.notes ==
        std::vector<std::string>{"unit2 or a unit beside it changed the locale of the engine; 2 "
                                 "units run again, each alone"});
  REQUIRE(book.engines.size() == 2);
  book.start_all({1, 2});
  book.end(2);
  CHECK(book.state(2) == JobState::kCompiled);
  book.end(1, JobState::kTainted);
  CHECK(book.state(1) == JobState::kTainted);
  CHECK(book.answers.at(1).message == "changed the locale of the engine");
  CHECK(book.answers.at(1).artifact.code.empty());
  book.start(3);
  book.end(3);
  CHECK(book.state(3) == JobState::kCompiled);
}

TEST_CASE("what ended beside a taint is compiled again") {
  Book book(3);
  book.submit_all(3);
  book.start_all({1, 2, 3});
  book.end(1, JobState::kCompiled, 4);
  book.end(3, JobState::kTainted);
  book.start_all({2, 3});
  book.end(2);
  book.end(3, JobState::kTainted);
  CHECK_FALSE(book.state(1));
  book.start(1);
  book.end(1, JobState::kCompiled, 4);
  CHECK(book.state(1) == JobState::kCompiled);
  CHECK(book.state(3) == JobState::kTainted);
}

TEST_CASE("running jobs of all engines together are never more than the slots") {
  Book book(2, 4);
  book.submit_all(6);
  book.start_all({1, 2});
  book.end(1);  // held
  book.start(3);
  book.die(1, kSegv);  // 2 and 3 alone, 1 once more, 4 to 6 as before
  CHECK(book.engines.size() == 2);
  book.start_all({2, 3});
  book.end(2);
  // One slot is free, so one job of the rest may be in an engine.
  size_t waiting = 0;
  for (const auto& [number, one] : book.engines) waiting += one.jobs.size();
  CHECK(waiting == 2);
  book.end(3);
  CHECK(book.engines.at(book.only_engine()).jobs.size() == 4);
}

TEST_CASE("a job that is to run alone waits for a slot of the engine that runs the others") {
  Book book(2);
  book.submit(1);
  book.submit(2);
  book.start_all({1, 2});
  book.die(1, kSegv);
  book.start_all({1, 2});
  book.die(book.where.at(1), kKilled);  // once more alone
  CHECK(book.engines.size() == 2);
  book.submit(3);
  CHECK(book.sent.count(3) == 0);
  book.start(1);
  book.end(1);
  CHECK(book.sent.count(3) == 1);
}

TEST_CASE("keys of an answered job are let go in the engine that holds them") {
  Book book(2);
  book.submit(1);
  book.start(1);
  book.end(1, JobState::kCompiled, 1, true);
  CHECK(book.jobs.release(1) == EngineNumber{1});
  CHECK_FALSE(book.jobs.release(1));
  CHECK_FALSE(book.jobs.release(2));
}

TEST_CASE("an engine of a lone job lives until its keys are let go") {
  Book book(1);
  book.submit(1);
  book.start(1);
  book.die(1, kSegv);
  book.start(1);
  book.end(1, JobState::kCompiled, 1, true);
  CHECK(book.state(1) == JobState::kCompiled);
  CHECK(book.engines.size() == 1);
  book.submit(2);  // its slot is free
  CHECK(book.engines.size() == 2);
  CHECK_FALSE(book.jobs.release(1));  // nobody need be told: it ends
  book.read();
  CHECK(book.engines.size() == 1);
}

TEST_CASE("an engine that dies takes its keys with it") {
  Book book(2);
  book.submit_all(2);
  book.start(1);
  book.end(1, JobState::kCompiled, 1, true);
  book.start(2);
  book.die(1, kSegv);
  CHECK_FALSE(book.jobs.release(1));
}

TEST_CASE("an engine cannot speak of jobs that it does not have") {
  Book book(1, 1);
  book.submit_all(2);
  CHECK_FALSE(book.jobs.started(1, 7, book.now));
  Done done;
  done.id = 7;
  CHECK_FALSE(book.jobs.done(1, done));
  book.start(1);
  CHECK_FALSE(book.jobs.started(1, 1, book.now));
  done.id = 1;
  done.state = JobState::kCrashed;
  CHECK_FALSE(book.jobs.done(1, done));
  book.end(1);
  done.state = JobState::kCompiled;
  CHECK_FALSE(book.jobs.done(1, done));
}

TEST_CASE("what an engine said that was ended is not heard") {
  Book book(2);
  book.submit(1, RunKind::kThreads, seconds(1));
  book.submit(2);
  book.start_all({1, 2});
  book.now += seconds(2);
  book.expire();
  Done done;
  done.id = 2;
  done.state = JobState::kCompiled;
  CHECK(book.jobs.done(1, done));
  CHECK(book.jobs.started(1, 2, book.now));
  book.jobs.died(1, kSegv);
  book.read();
  CHECK_FALSE(book.state(2));
  CHECK(book.notes.size() == 1);
}
