#include "backend/loom/run/report.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace {

std::optional<uint32_t> count(std::string_view report) {
  return kc::backend::loom::spill_count(kc::base::as_bytes(report));
}

}  // namespace

TEST_CASE("the count of spills is read where the report has it") {
  CHECK(
      count(R"({"kind":"x","allocation":{"assignments":[1,{"spill_count":9}],"spill_count":3},"rest":[]})") ==
      3);
  CHECK(count(R"({"allocation":{"spill_count":4294967295}})") == 4294967295U);
  // What follows it may be cut short or wrong: it has been read.
  CHECK(count(R"({"allocation":{"spill_count":3})") == 3);
}

TEST_CASE("a report that does not tell the count of spills tells nothing") {
  for (const std::string_view report :
       {R"({"spill_count":3})", R"({"rows":{"allocation":{"spill_count":3}}})",
        R"([{"allocation":{"spill_count":3}}])", R"({"allocation":[{"spill_count":3}]})",
        R"({"allocation":{"inner":{"spill_count":3}}})", R"({"allocation":{"spill_count":-3}})",
        R"({"allocation":{"spill_count":3.5}})", R"({"allocation":{"spill_count":"3"}})",
        R"({"allocation":{"spill_count":[3]}})", R"({"allocation":{"spill_count":4294967296}})",
        R"({"allocation":{"spill_plan_count":3}})", R"({"allocation":null})", "{}", "", "no JSON",
        "{\"allocation\":{"}) {
    CHECK_MESSAGE(!count(report), report);
  }
}
