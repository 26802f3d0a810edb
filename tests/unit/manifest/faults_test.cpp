#include "manifest/faults.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using kc::base::Error;
using kc::base::ErrorKind;
using kc::manifest::Faults;

std::vector<std::string> texts(const std::vector<Error>& errors) {
  std::vector<std::string> out;
  for (const Error& error : errors) out.push_back(error.text());
  return out;
}
using Lines = std::vector<std::string>;

TEST_CASE("faults of several files stand in the order in which the files were added") {
  Faults faults("top");
  const uint32_t b = faults.add_file("b");
  const uint32_t a = faults.add_file("a");
  CHECK(faults.add_file("b") == b);
  CHECK(faults.add_file("top") == 0);
  faults.error({2, 1, a}, "five");
  faults.error({1, 9, b}, "four");
  faults.error({0, 0, b}, "three");
  faults.error({9, 2, 0}, "two", "hint");
  faults.error({9, 1, 0}, "one");
  faults.append({Error{ErrorKind::kInput, "six", {"a", 3, 1}, {}, 0},
                 Error{ErrorKind::kInput, "zero", {"top", 1, 1}, {}, 0},
                 Error{ErrorKind::kInput, "last", {"elsewhere", 1, 1}, {}, 0}});
  CHECK(faults.count() == 8);
  CHECK(faults.located({4, 5, a}).text() == "a:4:5");
  CHECK(texts(faults.take_errors()) == Lines{"top:1:1: zero", "top:9:1: one", "top:9:2: two (hint)",
                                             "b: three", "b:1:9: four", "a:2:1: five", "a:3:1: six",
                                             "elsewhere:1:1: last"});
}

TEST_CASE("the same fault of the same place is said once and others of that place stay in order") {
  Faults faults("m");
  for (int i = 0; i < 2; ++i) {
    faults.error({1, 1, 0}, "b");
    faults.error({1, 1, 0}, "a");
  }
  faults.error({1, 2, 0}, "b");
  CHECK(texts(faults.take_errors()) == Lines{"m:1:1: b", "m:1:1: a", "m:1:2: b"});
}

TEST_CASE("faults beyond those that anybody reads are counted and named with the top file") {
  Faults faults("m");
  const uint32_t other = faults.add_file("o");
  for (uint32_t i = 1; i <= 9'999; ++i) faults.error({i, 1, other}, "x");
  std::vector<Error> more(3, Error{ErrorKind::kInput, "y", {"m", 1, 1}, {}, 0});
  faults.append(more);
  faults.error({1, 1, 0}, "z");
  CHECK(faults.count() == 10'003);
  const std::vector<std::string> lines = texts(faults.take_errors());
  CHECK(lines.size() == 10'001);
  CHECK(lines.front() == "m:1:1: y");
  CHECK(lines.back() == "m: 3 more errors are not listed");
}

}  // namespace
