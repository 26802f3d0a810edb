// Which files have which number, and which engine has them.
#include "engine/source_sets.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace {

using kc::engine::EngineSets;
using kc::engine::SharedFiles;
using kc::engine::SourceSets;

SharedFiles files() {
  return std::make_shared<const std::vector<kc::backend::Source>>();
}

}  // namespace

TEST_CASE("jobs that share their files share a number and others have their own") {
  SourceSets sets;
  const SharedFiles a = files();
  const SharedFiles b = files();
  const uint32_t first = sets.take(a);
  CHECK(sets.take(a) == first);
  CHECK(sets.take(b) != first);
  CHECK(sets.files(first) == a);
}

TEST_CASE("a number is never given again and its files go with the last who has them") {
  SourceSets sets;
  SharedFiles a = files();
  const std::weak_ptr<const std::vector<kc::backend::Source>> watched = a;
  const uint32_t first = sets.take(a);
  sets.take(a);
  sets.give_back(first);
  CHECK(sets.size() == 1);
  sets.give_back(first);
  CHECK(sets.size() == 0);
  CHECK(sets.take(a) != first);
  sets.give_back(first + 1);
  a.reset();
  CHECK(watched.expired());
}

TEST_CASE("files travel once to an engine and again to another") {
  SourceSets sets;
  const uint32_t set = sets.take(files());
  EngineSets one(sets);
  EngineSets other(sets);
  CHECK(one.use(set));
  CHECK_FALSE(one.use(set));
  CHECK(other.use(set));
  CHECK_FALSE(one.leave(set));
  CHECK_FALSE(one.leave(set));
  CHECK_FALSE(one.use(set));
}

TEST_CASE("an engine forgets what has been idle longest and nothing that is in use") {
  SourceSets sets;
  std::vector<uint32_t> numbers;
  for (int i = 0; i < 4; ++i) numbers.push_back(sets.take(files()));
  EngineSets one(sets, 2);
  for (const uint32_t set : numbers) CHECK(one.use(set));
  CHECK_FALSE(one.leave(numbers[1]));
  CHECK_FALSE(one.leave(numbers[0]));
  CHECK_FALSE(one.use(numbers[1]));  // no longer idle
  CHECK_FALSE(one.leave(numbers[2]));
  CHECK(one.leave(numbers[1]) == numbers[0]);  // 0, 2 and 1 are idle now, 0 the longest
  CHECK_FALSE(one.use(numbers[2]));
  CHECK(one.use(numbers[0]));
  // 3 was in use all the time.
  CHECK_FALSE(one.use(numbers[3]));
}

TEST_CASE("the files that an engine had go with it") {
  SourceSets sets;
  const uint32_t set = sets.take(files());
  {
    EngineSets one(sets);
    one.use(set);
    sets.give_back(set);
    CHECK(sets.size() == 1);
  }
  CHECK(sets.size() == 0);
}
