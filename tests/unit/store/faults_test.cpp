// Every file operation of the store fails once with each error: what was asked for is right or counted as
// trouble, nothing is left behind, and the store works again afterwards.
#include <doctest/doctest.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "store/gc.h"
#include "store/key_locks.h"
#include "store/roots.h"
#include "store/store.h"
#include "support/faulty_file_system.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

using base::ReplacedFileSystem;
using kc::test::at_each_operation;
using kc::test::FaultyFileSystem;
using kc::test::Lost;
using kc::test::Operation;

constexpr int kErrors[] = {ENOSPC, EIO, EDQUOT, EACCES, EMFILE, ESTALE, EINTR, ENOLCK};

const base::Digest kState = key_of("the state");

void make_old(const fs::path& file) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(48));
}

// A store with an entry, a record, a state, and all of them not used for two days.
void fill(const fs::path& root) {
  const auto store = open_store(root);
  REQUIRE(store->put(sample_entry("there")));
  REQUIRE(store->put_record(sample_record("asked", "there")));
  REQUIRE(store->save_state(kState, base::as_bytes("old state")));
  make_old(path_of(root, key_of("there")));
  make_old(path_of(root, key_of("asked"), Kind::kRecord));
  make_old(root / "v1/state" / kState.hex());
}

uint64_t troubles(const Store& store) {
  const Counters& counters = store.counters();
  return counters.soft_errors + counters.corrupt + counters.declined;
}

// What somebody does with a store. False: it was told that something did not work.
using Use = std::function<bool(Store&)>;

struct Scenario {
  const char* name;
  Use use;
  // What must be so afterwards, in a store without faults. `done` is what `use` said.
  std::function<void(Store&, bool done)> check;
  bool is_quiet = false;  // what goes wrong is of no consequence to anybody, and not counted
};

void no_check(Store&, bool) {}

const Scenario kScenarios[] = {
    {"put", [](Store& store) { return store.put(sample_entry("new")); },
     [](Store& store, bool done) {
       const auto entry = store.get(key_of("new"));
       if (done) REQUIRE(entry.has_value());
       if (entry) check_equal(*entry, sample_entry("new"));
     }},
    {"put what is there", [](Store& store) { return store.put(sample_entry("there")); }, no_check},
    {"get",
     [](Store& store) {
       const auto entry = store.get(key_of("there"));
       if (entry) check_equal(*entry, sample_entry("there"));
       return entry.has_value();
     },
     no_check},
    {"get what is missing",
     [](Store& store) {
       CHECK_FALSE(store.get(key_of("missing")).has_value());
       return true;
     },
     no_check},
    {"holds",
     [](Store& store) {
       CHECK(store.holds(key_of("missing")) == Held::kNothing);
       return store.holds(key_of("there")) == Held::kCode;
     },
     no_check, true},
    {"put a record", [](Store& store) { return store.put_record(sample_record("new", "there")); },
     [](Store& store, bool done) {
       const auto record = store.get_record(key_of("new"));
       if (done) REQUIRE(record.has_value());
       if (record) CHECK(record->content == key_of("there"));
     }},
    {"put another record", [](Store& store) { return store.put_record(sample_record("asked", "other")); },
     [](Store& store, bool done) {
       const auto record = store.get_record(key_of("asked"));
       REQUIRE(record.has_value());
       CHECK((record->content == key_of("other") || (!done && record->content == key_of("there"))));
       CHECK(store.put_record(sample_record("asked", "there")));
     }},
    {"get a record",
     [](Store& store) {
       const auto record = store.get_record(key_of("asked"));
       if (record) CHECK(record->content == key_of("there"));
       return record.has_value();
     },
     no_check},
    {"save a state", [](Store& store) { return store.save_state(kState, base::as_bytes("new state")); },
     [](Store& store, bool done) {
       const auto state = store.load_state(kState);
       REQUIRE(state.has_value());
       const auto text = base::as_text(*state);
       CHECK((text == "new state" || (!done && text == "old state")));
     }},
    {"load a state",
     [](Store& store) {
       const auto state = store.load_state(kState);
       if (state) CHECK(base::as_text(*state) == "old state");
       return state.has_value();
     },
     no_check},
    {"touch",
     [](Store& store) {
       store.touch({key_of("there"), key_of("missing")});
       store.touch_records({key_of("asked"), key_of("missing")});
       return store.counters().soft_errors == 0;
     },
     no_check},
    {"make a work folder",
     [](Store& store) {
       const auto folder = store.make_work_folder();
       if (!folder) {
         CHECK_FALSE(folder.error().message.empty());
         return false;
       }
       CHECK(fs::remove(*folder));
       return true;
     },
     no_check, true},
    {"remember a failure",
     [](Store& store) {
       store.remember_failure(key_of("bad"), base::as_bytes("why"));
       const auto failure = store.recent_failure(key_of("bad"));
       if (failure) CHECK(base::as_text(*failure) == "why");
       return failure.has_value();
     },
     no_check},
    {"keep an output",
     [](Store& store) {
       const std::string path = store.keep_output(key_of("bad"), base::as_bytes("what it said"));
       if (!path.empty()) CHECK(base::as_text(slurp(path)) == "what it said");
       return !path.empty();
     },
     no_check},
    {"lock a key",
     [](Store& store) {
       if (store.locks() == nullptr) return false;
       const auto answer = store.locks()->try_lock(key_of("there"));
       CHECK(answer != KeyLocks::Answer::kBusy);
       if (answer != KeyLocks::Answer::kHeld) return false;
       store.locks()->unlock(key_of("there"));
       return true;
     },
     [](Store& store, bool) {
       REQUIRE(store.locks() != nullptr);
       CHECK(store.locks()->try_lock(key_of("there")) == KeyLocks::Answer::kHeld);
     },
     true},
};

// Names in tmp/ that are left, but those of failures, which are meant to stay.
std::vector<std::string> left_in(const fs::path& root) {
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("new-") || name.starts_with("bad-") || name.find(".kc-tmp-") != std::string::npos) {
      left.push_back(name);
    }
  }
  return left;
}

// After a fault: all that was there is right, nothing is left, and the store does all it should.
void check_afterwards(const fs::path& root, const Scenario& scenario, bool done, bool may_leave) {
  if (!may_leave) CHECK(left_in(root) == std::vector<std::string>());
  const auto store = open_store(root);
  const auto entry = store->get(key_of("there"));
  REQUIRE(entry.has_value());
  check_equal(*entry, sample_entry("there"));
  scenario.check(*store, done);
  const auto record = store->get_record(key_of("asked"));
  REQUIRE(record.has_value());
  CHECK(record->content == key_of("there"));
  CHECK(store->put(sample_entry("more")));
  CHECK(store->get(key_of("more")).has_value());
  CHECK(troubles(*store) == 0);
}

// How many operations it takes to open a store that is there.
uint64_t operations_of_opening() {
  const TemporaryFolder folder;
  fill(folder / "s");
  FaultyFileSystem faulty;
  faulty.start();
  const ReplacedFileSystem replaced(faulty);
  const auto store = open_store(folder / "s");
  return faulty.count();
}

struct Fault {
  bool is_lost_answer = false;
  int error = 0;
};

// One operation at fault: `n` since before the store was opened. What was asked for is right or trouble was
// counted, and afterwards all is well.
void attempt(FaultyFileSystem& faulty, const Scenario& scenario, uint64_t n, const Fault& fault) {
  CAPTURE(n);
  CAPTURE(fault.error);
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  fill(root);
  fault.is_lost_answer ? faulty.lose_answer(n) : faulty.fail(n, fault.error);
  bool done = false;
  {
    const ReplacedFileSystem replaced(faulty);
    Options options;
    options.directory = root.string();
    auto store = Store::open(options);
    if (!store) {
      CHECK(store.error().kind == base::ErrorKind::kEnvironment);
      CHECK_FALSE(store.error().message.empty());
    } else {
      done = scenario.use(**store);
      if (!done && !scenario.is_quiet) CHECK(troubles(**store) > 0);
      if (troubles(**store) > 0) CHECK_FALSE((*store)->first_trouble().empty());
      CHECK((*store)->counters().corrupt == 0);
    }
  }
  const auto failed = faulty.failed();
  if (fault.error == EINTR && failed && can_be_interrupted(*failed)) CHECK(done);
  check_afterwards(root, scenario, done, failed == Operation::kUnlink);
}

}  // namespace

// Each error at each operation takes half a minute, so that is for the long form; else the errors take turns.
TEST_CASE("whatever operation of the store fails nothing is wrong afterwards") {
  const bool is_long = std::getenv("KC_TEST_LONG") != nullptr;
  const uint64_t opening = operations_of_opening();
  FaultyFileSystem faulty;
  uint64_t points = 0;
  for (const Scenario& scenario : kScenarios) {
    CAPTURE(scenario.name);
    // All scenarios open the store in the same way.
    const uint64_t first = points == 0 ? 1 : opening + 1;
    if (is_long) {
      for (const int error : kErrors) {
        points += at_each_operation(
            faulty,
            [&](uint64_t n) {
              attempt(faulty, scenario, n, {false, error});
            },
            first);
      }
    } else {
      points += at_each_operation(
          faulty,
          [&](uint64_t n) {
            attempt(faulty, scenario, n, {false, kErrors[(n + points) % std::size(kErrors)]});
          },
          first);
    }
  }
  MESSAGE("operations that failed: " << points);
  CHECK(points > (is_long ? 1'500 : 200));
}

TEST_CASE("what was done and whose answer was lost counts as done") {
  FaultyFileSystem faulty;
  uint64_t lost = 0;
  for (const Scenario& scenario : kScenarios) {
    CAPTURE(scenario.name);
    at_each_operation(
        faulty,
        [&](uint64_t n) {
          attempt(faulty, scenario, n, {true, 0});
          if (faulty.failed()) ++lost;
        },
        operations_of_opening() + 1);
  }
  CHECK(lost > 10);
}

TEST_CASE("short reads and writes and interruptions change nothing") {
  FaultyFileSystem faulty;
  for (const Scenario& scenario : kScenarios) {
    CAPTURE(scenario.name);
    const TemporaryFolder folder;
    const fs::path root = folder / "s";
    fill(root);
    faulty.start();
    faulty.hinder();
    const ReplacedFileSystem replaced(faulty);
    const auto store = open_store(root);
    CHECK(scenario.use(*store));
    CHECK(troubles(*store) == 0);
    scenario.check(*store, true);
  }
}

TEST_CASE("a power cut leaves entries and records that are right or are misses") {
  FaultyFileSystem faulty;
  uint64_t misses = 0;
  uint64_t torn = 0;
  for (const Lost lost : kc::test::kLosses) {
    CAPTURE(static_cast<int>(lost));
    const auto cut_at = [&](uint64_t n) {
      CAPTURE(n);
      const TemporaryFolder folder;
      const fs::path root = folder / "s";
      const TemporaryFolder morgue;
      fill(root);
      faulty.cut_power(n, (morgue / "m").parent_path().string());
      {
        const ReplacedFileSystem replaced(faulty);
        const auto store = open_store(root);
        store->put(sample_entry("new"));
        store->put_record(sample_record("new", "new"));
        store->put_record(sample_record("asked", "other"));
        store->save_state(kState, base::as_bytes("new state"));
      }
      faulty.lose(lost);
      const auto store = open_store(root);
      const auto there = store->get(key_of("there"));
      REQUIRE(there.has_value());
      if (const auto entry = store->get(key_of("new"))) check_equal(*entry, sample_entry("new"));
      if (const auto record = store->get_record(key_of("new"))) CHECK(record->content == key_of("new"));
      if (const auto record = store->get_record(key_of("asked"))) {
        CHECK((record->content == key_of("there") || record->content == key_of("other")));
      }
      if (const auto state = store->load_state(kState)) {
        CHECK((base::as_text(*state) == "old state" || base::as_text(*state) == "new state"));
      }
      misses += store->counters().misses;
      torn += store->counters().corrupt;
      CHECK(store->put(sample_entry("new")));
      CHECK(store->get(key_of("new")).has_value());
      CHECK(store->put_record(sample_record("new", "new")));
      CHECK(store->get_record(key_of("new")).has_value());
    };
    at_each_operation(faulty, cut_at, operations_of_opening() + 1);
  }
  CHECK(misses > 0);
  CHECK(torn > 0);
}

// A scan opens 512 folders, most of which are missing; those operations are like each other, so that every
// seventh is enough of them. The last ones, which remove, are all looked at.
TEST_CASE("a collection that fails anywhere says so and takes nothing that is in use") {
  FaultyFileSystem faulty;
  GcOptions options;
  options.max_age = std::chrono::hours(24);
  const auto fill_with_leftovers = [](const fs::path& root) {
    fill(root);
    REQUIRE(open_store(root)->put(sample_entry("in use")));
    const std::string leftover = (root / "v1/tmp" / new_file_name()).string();
    spill(leftover, "half of an entry");
    make_old(leftover);
  };
  uint64_t total = 0;
  {
    const TemporaryFolder folder;
    fill_with_leftovers(folder / "s");
    faulty.start();
    const ReplacedFileSystem replaced(faulty);
    const auto report = collect((folder / "s").string(), options);
    REQUIRE(report.has_value());
    REQUIRE(report->entries_removed == 1);
    REQUIRE(report->records_removed == 1);
    REQUIRE(report->temporaries_removed == 1);
    total = faulty.count();
  }
  for (uint64_t n = 1; n <= total; n += n + 60 > total ? 1 : 7) {
    CAPTURE(n);
    const TemporaryFolder folder;
    const fs::path root = folder / "s";
    fill_with_leftovers(root);
    faulty.start();
    faulty.fail(n, kErrors[n / 7 % std::size(kErrors)]);
    bool is_complete = false;
    {
      const ReplacedFileSystem replaced(faulty);
      const auto report = collect(root.string(), options);
      if (!report) CHECK_FALSE(report.error().message.empty());
      is_complete = report && report->trouble.empty() && report->entries_removed == 1 &&
                    report->records_removed == 1 && report->temporaries_removed == 1;
      if (report && !is_complete) CHECK_FALSE(report->trouble.empty());
    }
    const auto store = open_store(root);
    CHECK(store->get(key_of("in use")).has_value());
    if (is_complete) CHECK_FALSE(store->get(key_of("there")).has_value());
    CHECK(store->counters().corrupt == 0);
    const auto again = collect(root.string(), options);
    REQUIRE(again.has_value());
    CHECK(again->trouble.empty());
    CHECK(left_in(root) == std::vector<std::string>());
  }
}

TEST_CASE("after a power cut a pin is the old one or the new one and the new one once that was said") {
  FaultyFileSystem faulty;
  Pin before{"release", "old.yaml", 1, {{key_of("a")}, {key_of("b")}}};
  Pin after{"release", "new.yaml", 2, {{key_of("c"), key_of("d")}, {}}};
  for (const Lost lost : kc::test::kLosses) {
    CAPTURE(static_cast<int>(lost));
    const uint64_t points = at_each_operation(faulty, [&](uint64_t n) {
      CAPTURE(n);
      const TemporaryFolder folder;
      const fs::path root = folder / "s";
      const TemporaryFolder morgue;
      const bool is_first = n % 2 == 0;
      if (!is_first) REQUIRE(write_pin(root.string(), before).has_value());
      faulty.cut_power(n, (morgue / "m").parent_path().string());
      bool is_written = false;
      {
        const ReplacedFileSystem replaced(faulty);
        is_written = write_pin(root.string(), after).has_value();
      }
      faulty.lose(lost);
      const auto pins = read_pins(root.string());
      REQUIRE(pins.has_value());
      REQUIRE(pins->size() <= 1);
      if (is_written || !is_first) REQUIRE(pins->size() == 1);
      if (pins->empty()) return;
      const Pin& pin = pins->front();
      const Pin& expected = pin.source == after.source || is_first ? after : before;
      if (is_written) CHECK(pin.source == after.source);
      CHECK(pin.source == expected.source);
      CHECK(pin.keys.entries == expected.keys.entries);
      CHECK(pin.keys.records == expected.keys.records);
    });
    CHECK(points > 20);
  }
}

}  // namespace kc::store::test
