#include "base/nearest.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using kc::base::nearest_index;
using Views = std::vector<std::string_view>;

TEST_CASE("a swap of neighbours counts as one step and so do insert delete and replace") {
  // Of three letters one step is allowed, so each of these is exactly one.
  CHECK(nearest_index("acb", Views{"abc"}) == 0);
  CHECK(nearest_index("abcd", Views{"abc"}) == 0);
  CHECK(nearest_index("ab", Views{"abc"}) == 0);
  CHECK(nearest_index("axc", Views{"abc"}) == 0);
  CHECK(nearest_index("cab", Views{"abc"}) == std::nullopt);
}

TEST_CASE("the closest wins and the first of equals") {
  CHECK(nearest_index("target", Views{"targeted", "targets", "targett"}) == 1);
  CHECK(nearest_index("sm_9x", Views{"gfx900", "sm_90", "sm_9"}) == 1);
}

TEST_CASE("letter case does not count") {
  CHECK(nearest_index("GFX942", Views{"gfx1100", "gfx942"}) == 1);
}

TEST_CASE("what is too far or too long has no nearest") {
  CHECK(nearest_index("apple", Views{"orange"}) == std::nullopt);
  CHECK(nearest_index("", Views{"ab"}) == std::nullopt);
  const std::string longest(256, 'a');
  CHECK(nearest_index(longest, Views{longest}) == 0);
  CHECK(nearest_index(longest + "a", Views{longest}) == std::nullopt);
  CHECK(nearest_index(longest, Views{longest + "a"}) == std::nullopt);
}
