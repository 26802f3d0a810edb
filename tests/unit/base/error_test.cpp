#include "base/error.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

using namespace kc::base;

namespace {

Result<int> doubled(Result<int> input) {
  KC_ASSIGN(const int value, std::move(input));
  return 2 * value;
}

Result<void> passed_on(Result<int> input) {
  KC_TRY(std::move(input));
  return {};
}

}  // namespace

TEST_CASE("a place is written as far as it is known") {
  CHECK(Place{}.text().empty());
  CHECK(Place{"a.yaml"}.text() == "a.yaml");
  CHECK(Place{"a.yaml", 3}.text() == "a.yaml:3");
  CHECK(Place{"a.yaml", 3, 7}.text() == "a.yaml:3:7");
  CHECK(Place{"", 3, 7}.text().empty());
  CHECK(Place{"a.yaml", 0, 7}.text() == "a.yaml");
}

TEST_CASE("an error is written with its place and its hint") {
  CHECK(fail(ErrorKind::kInput, "bad").error().text() == "bad");
  CHECK(fail(ErrorKind::kInput, "bad", "do this").error().text() == "bad (do this)");
  const Error error = fail_at(ErrorKind::kInput, {"f", 1, 2}, "bad", "do this").error();
  CHECK(error.text() == "f:1:2: bad (do this)");
  CHECK(error.kind == ErrorKind::kInput);
}

TEST_CASE("a system error names action and path and keeps the number") {
  const Error error = fail_errno(ErrorKind::kEnvironment, "open", "/x", ENOENT).error();
  CHECK(error.message == "cannot open /x: No such file or directory");
  CHECK(error.sys_errno == ENOENT);
  CHECK(error.kind == ErrorKind::kEnvironment);
  CHECK(fail_errno(ErrorKind::kFailed, "open", "/x", 99'999).error().message ==
        "cannot open /x: error 99999");
}

TEST_CASE("the macros bind a value or return the error") {
  CHECK(doubled(21) == 42);
  CHECK(doubled(fail(ErrorKind::kFailed, "no")).error().message == "no");
  CHECK(passed_on(1).has_value());
  CHECK(passed_on(fail(ErrorKind::kInput, "no")).error().kind == ErrorKind::kInput);
}

TEST_CASE("the kinds are the exit codes of the command line") {
  CHECK(static_cast<int>(ErrorKind::kFailed) == 1);
  CHECK(static_cast<int>(ErrorKind::kInput) == 2);
  CHECK(static_cast<int>(ErrorKind::kEnvironment) == 3);
  CHECK(static_cast<int>(ErrorKind::kInternal) == 4);
}
