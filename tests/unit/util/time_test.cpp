#include "util/time.h"

#include <doctest/doctest.h>

#include <chrono>
#include <limits>

using namespace kc::util;
using namespace std::chrono_literals;

TEST_CASE("durations are read with each unit and without as seconds") {
  CHECK(parse_duration("500ms") == 500ms);
  CHECK(parse_duration("60s") == 60s);
  CHECK(parse_duration("60") == 60s);
  CHECK(parse_duration("10m") == 10min);
  CHECK(parse_duration("2h") == 2h);
  CHECK(parse_duration("30d") == 30 * 24h);
  CHECK(parse_duration("0") == 0s);
  CHECK(parse_duration("3653d") == 3653 * 24h);
}

TEST_CASE("what is no duration or longer than ten years is refused") {
  for (const char* text : {"", "s", "-1s", "1.5s", "1 s", "1S", "1min", "1us", "3654d", "315619201",
                           "18446744073709551616ms", "9223372036854775807d"}) {
    CHECK(parse_duration(text) == std::nullopt);
  }
}

TEST_CASE("durations are printed for people") {
  CHECK(duration_text(0.35) == "0.35 s");
  CHECK(duration_text(9.99) == "9.99 s");
  CHECK(duration_text(9.996) == "10 s");
  CHECK(duration_text(12.2) == "12 s");
  CHECK(duration_text(59.7) == "1 min");
  CHECK(duration_text(200) == "3 min 20 s");
  CHECK(duration_text(3599.6) == "1 h");
  CHECK(duration_text(2 * 3600 + 300) == "2 h 5 min");
  CHECK(duration_text(86399) == "1 d");
  CHECK(duration_text(2 * 86400 + 3 * 3600) == "2 d 3 h");
}

TEST_CASE("impossible durations are printed without harm") {
  CHECK(duration_text(-1) == "0.00 s");
  CHECK(duration_text(-0.0) == "0.00 s");
  CHECK(duration_text(std::numeric_limits<double>::quiet_NaN()) == "0.00 s");
  CHECK(duration_text(std::numeric_limits<double>::infinity()).ends_with(" h"));
}

TEST_CASE("a stopwatch does not run backwards") {
  const Stopwatch watch;
  const double first = watch.seconds();
  CHECK(first >= 0);
  CHECK(watch.seconds() >= first);
}
