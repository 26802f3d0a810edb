#include "target/target.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace kc::target;

namespace {

Target named(std::string_view text) {
  const auto target = parse_target(text);
  REQUIRE_MESSAGE(target.has_value(), text);
  return *target;
}

std::string refusal(std::string_view text) {
  const auto target = parse_target(text);
  REQUIRE_FALSE_MESSAGE(target.has_value(), text);
  CHECK(target.error().kind == kc::base::ErrorKind::kInput);
  return target.error().text();
}

Fit fit(std::string_view code, std::string_view device) {
  return runs_on(named(code), named(device));
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("NVIDIA names give number and suffix") {
  const Target plain = named("sm_90");
  CHECK(plain.vendor == Vendor::kNvidia);
  CHECK(plain.sm == 90);
  CHECK(plain.suffix == 0);
  CHECK(plain.processor == "sm_90");
  const Target exact = named("sm_120a");
  CHECK(exact.text == "sm_120a");
  CHECK(exact.processor == "sm_120");
  CHECK(exact.sm == 120);
  CHECK(exact.suffix == 'a');
  CHECK(named("sm_100f").suffix == 'f');
}

TEST_CASE("a well-formed NVIDIA name that is not in the table is accepted") {
  CHECK(named("sm_130").sm == 130);
  CHECK(named("sm_131a").suffix == 'a');
}

TEST_CASE("AMD names give processor and features") {
  const Target target = named("gfx942:sramecc+:xnack-");
  CHECK(target.vendor == Vendor::kAmd);
  CHECK(target.text == "gfx942:sramecc+:xnack-");
  CHECK(target.processor == "gfx942");
  CHECK(target.sramecc == Feature::kOn);
  CHECK(target.xnack == Feature::kOff);
  CHECK(named("gfx90a").xnack == Feature::kAny);
  CHECK(named("gfx1151").processor == "gfx1151");
  CHECK(named("gfx9-4-generic:xnack+").xnack == Feature::kOn);
}

TEST_CASE("names that are near are suggested") {
  CHECK(contains(refusal("GFX942"), "did you mean \"gfx942\"?"));
  CHECK(contains(refusal("gfx943"), "did you mean \"gfx940\"?"));
  CHECK(contains(refusal("gfx11-generc"), "did you mean \"gfx11-generic\"?"));
  CHECK(contains(refusal("sm_9x"), "did you mean \"sm_90\"?"));
  CHECK(contains(refusal("sm90"), "did you mean \"sm_90\"?"));
  CHECK(contains(refusal("SM_90"), "did you mean \"sm_90\"?"));
  CHECK(contains(refusal("compute_90"), "did you mean \"sm_90\"?"));
  CHECK(contains(refusal("compute_100a"), "did you mean \"sm_100\"?"));
  CHECK(contains(refusal("sm_90b"), "did you mean \"sm_90\"?"));
  CHECK(contains(refusal("banana"), "targets are named like"));
}

TEST_CASE("suffixes exist only where the architecture has them") {
  CHECK(contains(refusal("sm_80a"), "begin with sm_90a"));
  CHECK(contains(refusal("sm_90f"), "begin with sm_100f"));
  CHECK(named("sm_90a").suffix == 'a');
}

TEST_CASE("malformed names are refused") {
  for (const char* text : {"", "sm_", "sm_a", "sm_9", "sm_1000", "sm_090", "sm_90aa", "sm_90 ", " sm_90",
                           "gfx", "gfx942:", "gfx942:xnack", "gfx942::xnack+", "gfx942:xnack+:", "gfx942:+",
                           "gfx942:tgsplit+", "gfx942-xnack", "gfx9"}) {
    refusal(text);
  }
}

TEST_CASE("a feature is named at most once and only where the processor has it") {
  CHECK(contains(refusal("gfx942:xnack+:xnack-"), "twice"));
  CHECK(contains(refusal("gfx1100:xnack+"), "does not have"));
  CHECK(contains(refusal("gfx900:sramecc+"), "does not have"));
}

TEST_CASE("an error shows no byte that a terminal would act on") {
  const std::string text = refusal("sm_\x1b[31m\x9b" + std::string(1 << 16, 'x'));
  CHECK_FALSE(contains(text, "\x1b"));
  CHECK_FALSE(contains(text, "\x9b"));
  CHECK(text.size() < 300);
}

TEST_CASE("found answers asked when it is the same or has a suffix more") {
  CHECK(found_answers_asked(named("sm_90"), named("sm_90")));
  CHECK(found_answers_asked(named("sm_90a"), named("sm_90")));
  CHECK(found_answers_asked(named("sm_100f"), named("sm_100")));
  CHECK(found_answers_asked(named("sm_90a"), named("sm_90a")));
  CHECK_FALSE(found_answers_asked(named("sm_90"), named("sm_90a")));
  CHECK_FALSE(found_answers_asked(named("sm_100f"), named("sm_100a")));
  CHECK_FALSE(found_answers_asked(named("sm_89"), named("sm_90")));
  CHECK_FALSE(found_answers_asked(named("gfx942"), named("sm_90")));
  CHECK(found_answers_asked(named("gfx942:xnack-:sramecc+"), named("gfx942:sramecc+:xnack-")));
  CHECK_FALSE(found_answers_asked(named("gfx942:xnack-"), named("gfx942")));
  CHECK_FALSE(found_answers_asked(named("gfx942"), named("gfx942:xnack-")));
  CHECK_FALSE(found_answers_asked(named("gfx11-generic"), named("gfx1100")));
}

TEST_CASE("NVIDIA code without suffix runs on the same major and an equal or higher minor") {
  CHECK(fit("sm_80", "sm_80") == Fit::kExact);
  CHECK(fit("sm_80", "sm_86") == Fit::kByRule);
  CHECK(fit("sm_86", "sm_80") == Fit::kNo);
  CHECK(fit("sm_80", "sm_90") == Fit::kNo);
  CHECK(fit("sm_89", "sm_90") == Fit::kNo);
  CHECK(fit("sm_100", "sm_103") == Fit::kByRule);
  CHECK(fit("sm_120", "sm_121") == Fit::kByRule);
  CHECK(fit("sm_103", "sm_110") == Fit::kNo);
}

TEST_CASE("NVIDIA code with an a runs on exactly its SM") {
  CHECK(fit("sm_90a", "sm_90") == Fit::kExact);
  CHECK(fit("sm_100a", "sm_103") == Fit::kNo);
  CHECK(fit("sm_120a", "sm_121") == Fit::kNo);
}

TEST_CASE("NVIDIA code with an f runs on its family") {
  CHECK(fit("sm_100f", "sm_100") == Fit::kExact);
  CHECK(fit("sm_100f", "sm_103") == Fit::kByRule);
  CHECK(fit("sm_103f", "sm_100") == Fit::kNo);
  CHECK(fit("sm_100f", "sm_101") == Fit::kNo);
  CHECK(fit("sm_120f", "sm_121") == Fit::kByRule);
  CHECK(fit("sm_121f", "sm_120") == Fit::kNo);
  CHECK(fit("sm_110f", "sm_110") == Fit::kExact);
}

TEST_CASE("AMD code runs on its own processor or on those that its generic covers") {
  CHECK(fit("gfx1151", "gfx1151") == Fit::kExact);
  CHECK(fit("gfx1151", "gfx1150") == Fit::kNo);
  CHECK(fit("gfx11-generic", "gfx1151") == Fit::kByRule);
  CHECK(fit("gfx11-generic", "gfx1103") == Fit::kByRule);
  CHECK(fit("gfx11-generic", "gfx1170") == Fit::kNo);
  CHECK(fit("gfx11-generic", "gfx1200") == Fit::kNo);
  CHECK(fit("gfx12-generic", "gfx1201") == Fit::kByRule);
  CHECK(fit("gfx12-generic", "gfx1250") == Fit::kNo);
  CHECK(fit("gfx9-generic", "gfx906:sramecc+:xnack-") == Fit::kByRule);
  CHECK(fit("gfx9-generic", "gfx908") == Fit::kNo);
  CHECK(fit("gfx9-generic", "gfx90a") == Fit::kNo);
  CHECK(fit("gfx9-4-generic", "gfx950") == Fit::kByRule);
  CHECK(fit("gfx10-1-generic", "gfx1030") == Fit::kNo);
  CHECK(fit("gfx10-3-generic", "gfx1036") == Fit::kByRule);
  CHECK(fit("gfx1151", "gfx11-generic") == Fit::kNo);
}

TEST_CASE("AMD code made for one state of a feature needs a device in that state") {
  CHECK(fit("gfx942", "gfx942:sramecc+:xnack-") == Fit::kExact);
  CHECK(fit("gfx942:xnack-", "gfx942:sramecc+:xnack-") == Fit::kExact);
  CHECK(fit("gfx942:xnack+", "gfx942:sramecc+:xnack-") == Fit::kNo);
  CHECK(fit("gfx942:sramecc-", "gfx942:sramecc+:xnack-") == Fit::kNo);
  CHECK(fit("gfx942:xnack-", "gfx942") == Fit::kNo);
  CHECK(fit("gfx9-4-generic:xnack+", "gfx942:sramecc+:xnack-") == Fit::kNo);
}

TEST_CASE("of code that runs on a device the one that suits it best comes first") {
  struct Order {
    const char* device;
    std::vector<const char*> best_first;  // all run, none as well as the one before it
  };
  const Order orders[] = {
      {"sm_90", {"sm_90a", "sm_90"}},
      {"sm_89", {"sm_89", "sm_87", "sm_86", "sm_80"}},
      {"sm_100", {"sm_100a", "sm_100f", "sm_100"}},
      {"sm_103", {"sm_103a", "sm_103f", "sm_103", "sm_100f", "sm_101", "sm_100"}},
      {"sm_121", {"sm_121a", "sm_121f", "sm_121", "sm_120f", "sm_120"}},
      {"gfx942:sramecc+:xnack-", {"gfx942:sramecc+:xnack-", "gfx942:sramecc+", "gfx942", "gfx9-4-generic"}},
      {"gfx950:sramecc+:xnack-", {"gfx950:xnack-", "gfx950", "gfx9-4-generic:sramecc+", "gfx9-4-generic"}},
      {"gfx1151", {"gfx1151", "gfx11-generic"}},
  };
  for (const auto& [device, best_first] : orders) {
    for (size_t i = 0; i < best_first.size(); ++i) {
      for (size_t j = 0; j < best_first.size(); ++j) {
        CAPTURE(device);
        CAPTURE(best_first[i]);
        CAPTURE(best_first[j]);
        CHECK(better(named(best_first[i]), named(best_first[j]), named(device)) == (i < j));
      }
    }
  }
}

TEST_CASE("code that does not run suits no device and code that does suits it somewhat") {
  const char* const names[] = {"sm_80",  "sm_90",   "sm_90a",  "sm_100f", "sm_103",        "sm_103a",
                               "gfx942", "gfx1151", "gfx1100", "gfx950",  "gfx11-generic", "gfx942:xnack+"};
  for (const char* code : names) {
    for (const char* device : names) {
      CAPTURE(code);
      CAPTURE(device);
      CHECK((suitability(named(code), named(device)) > 0) == (fit(code, device) != Fit::kNo));
    }
  }
}

TEST_CASE("nothing runs on the other vendor's devices") {
  CHECK(fit("sm_90", "gfx942") == Fit::kNo);
  CHECK(fit("gfx942", "sm_90") == Fit::kNo);
}

TEST_CASE("all AMD processors that are listed can be parsed") {
  const auto names = kc::target::amd_processors();
  CHECK(names.size() > 40);
  for (const std::string_view name : names) {
    const auto target = kc::target::parse_target(name);
    REQUIRE_MESSAGE(target, name);
    CHECK(target->processor == name);
  }
}

TEST_CASE("families are the major versions") {
  CHECK(family_of(named("sm_90a")) == "sm_9");
  CHECK(family_of(named("sm_120")) == "sm_12");
  CHECK(family_of(named("gfx942:xnack-")) == "gfx9");
  CHECK(family_of(named("gfx90a")) == "gfx9");
  CHECK(family_of(named("gfx1151")) == "gfx11");
  CHECK(family_of(named("gfx11-generic")) == "gfx11");
  CHECK(family_of(named("gfx9-4-generic")) == "gfx9");
}
