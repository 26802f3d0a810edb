// Answers that are not believed yet, in memory and in their file.
#include "engine/held_answers.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/files.h"
#include "engine_support.h"

namespace {

namespace engine = kc::engine;
using engine::Done;
using engine::HeldAnswers;

}  // namespace

TEST_CASE("an answer that was held comes whole from its file") {
  const kc::test::TempFolder folder;
  HeldAnswers held(folder.path(), 0);
  Done done = kc::test::sample_done();
  const uint64_t first = held.put(done);
  done.id = 99;
  const uint64_t second = held.put(done);
  CHECK(held.bytes_in_memory() == 0);
  CHECK(kc::base::list_directory(AT_FDCWD, folder.path())->empty());
  REQUIRE(held.take(second));
  const auto taken = held.take(first);
  REQUIRE(taken);
  CHECK(engine::encode(*taken) == engine::encode(kc::test::sample_done()));
  CHECK_FALSE(held.take(first));
}

TEST_CASE("answers are held in memory up to a bound and where no file can be made") {
  const kc::test::TempFolder folder;
  HeldAnswers held(folder.path(), 1 << 20);
  std::vector<uint64_t> numbers;
  for (uint32_t i = 0; i < 10; ++i) {
    Done done;
    done.id = i;
    done.artifact.code.assign(300'000, static_cast<uint8_t>(i));
    numbers.push_back(held.put(std::move(done)));
  }
  CHECK(held.bytes_in_memory() <= 1 << 20);
  CHECK(held.bytes_in_memory() > 600'000);
  for (uint32_t i = 0; i < 10; ++i) {
    const auto done = held.take(numbers[i]);
    REQUIRE(done);
    CHECK(done->id == i);
    CHECK(done->artifact.code == kc::base::Bytes(300'000, static_cast<uint8_t>(i)));
  }
  CHECK(held.bytes_in_memory() == 0);

  HeldAnswers nowhere(folder / "missing", 0);
  const uint64_t number = nowhere.put(kc::test::sample_done());
  CHECK(nowhere.bytes_in_memory() > 0);
  CHECK(nowhere.take(number));
}
