// `overrides`: what is different for some units of a kernel.
#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "manifest/plan.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::Limits;
using kc::manifest::Pairs;
using kc::manifest::Plan;
using kc::manifest::Unit;
using kc::test::joined;
using kc::test::Lines;
using kc::test::one_kernel;
using kc::test::Project;

std::string loom(const std::string& overrides, const std::string& more = "",
                 const char* targets = "gfx942, gfx90a") {
  return one_kernel(
      "    specializations: { matrix: { N: [1, 2], option.report: [none, summary] } }\n"
      "    overrides:\n" +
          overrides + more,
      "a.loom", targets);
}

TEST_CASE("an override changes the units that it matches and later ones win") {
  const Project project;
  const Plan plan = project.plan(
      one_kernel("    specializations: { matrix: { N: [1, 2] } }\n"
                 "    timeout: 1m\n"
                 "    limits: { registers: 64, spills: 0 }\n"
                 "    overrides:\n"
                 "      - { when: { target: gfx942 }, options: { report: summary }, timeout: 5m }\n"
                 "      - { when: { N: 2 }, limits: { registers: 96, code: 1MiB } }\n"
                 "      - { when: { target: gfx942, N: 2 }, options: { report: details } }\n",
                 "a.loom", "gfx942, gfx90a"));
  REQUIRE(plan.units.size() == 4);
  const auto unit = [&](size_t i) -> const Unit& { return plan.units[i]; };
  const auto limits = [&](size_t i) -> const Limits& { return plan.limits.at(plan.units[i].limits); };
  CHECK(unit(0).name == "k:N=1@gfx942");
  CHECK(unit(0).options == Pairs{{"report", "summary"}});
  CHECK(unit(0).timeout == std::chrono::minutes(5));
  CHECK(limits(0).registers == 64);
  CHECK(unit(1).name == "k:N=1@gfx90a");
  CHECK(unit(1).options == Pairs{{"report", "none"}});
  CHECK(unit(1).timeout == std::chrono::minutes(1));
  CHECK(unit(2).name == "k:N=2@gfx942");
  CHECK(unit(2).options == Pairs{{"report", "details"}});
  CHECK(unit(2).timeout == std::chrono::minutes(5));
  CHECK(limits(2).registers == 96);
  CHECK(limits(2).spills == 0);
  CHECK(limits(2).code == 1U << 20);
  CHECK(limits(3).registers == 96);
  // Equal limits are kept once; the first are none.
  CHECK(plan.limits.size() == 3);
  CHECK(!plan.limits[0].registers.has_value());
  CHECK(unit(2).limits == unit(3).limits);
  CHECK(unit(0).limits == unit(1).limits);
}

TEST_CASE("conditions may name features of a target in another order and options that vary") {
  const Project project;
  CHECK(joined(project.units(loom(
            "      - { when: { target: 'gfx942:xnack-:sramecc+', option.report: none, N: 1 }, skip: true }\n",
            "", "'gfx942:sramecc+:xnack-'"))) ==
        joined({"k:N=1,option.report=summary@gfx942:sramecc+:xnack-",
                "k:N=2,option.report=none@gfx942:sramecc+:xnack-",
                "k:N=2,option.report=summary@gfx942:sramecc+:xnack-"}));
}

TEST_CASE("units that are skipped are not in the plan and the rest keeps its order") {
  const Project project;
  CHECK(joined(project.units(one_kernel("    specializations: { matrix: { N: [1, 2] } }\n"
                                        "    overrides:\n"
                                        "      - { when: { target: gfx90a, N: 1 }, skip: true }\n"
                                        "      - { when: { N: 1 }, timeout: 1s }\n"
                                        "      - { when: { N: 2 }, skip: false, timeout: 1s }\n",
                                        "a.loom", "gfx942, gfx90a"))) ==
        joined({"k:N=1@gfx942", "k:N=2@gfx942", "k:N=2@gfx90a"}));
}

TEST_CASE("a kernel of which the overrides leave nothing is an error") {
  const Project project;
  CHECK(joined(project.errors(loom("      - { when: { N: 1 }, skip: true }\n"
                                   "      - { when: { N: 2 }, skip: true }\n"))) ==
        joined({"3:11: the overrides leave no unit of the kernel \"k\""}));
  // It is not told of its default too.
  CHECK(joined(project.errors(one_kernel("    specializations: { matrix: { N: [1, 2] }, default: { N: 1 } }\n"
                                         "    overrides: [{ when: { target: gfx942 }, skip: true }]\n",
                                         "a.loom", "gfx942"))) ==
        joined({"3:11: the overrides leave no unit of the kernel \"k\""}));
  CHECK(joined(project.errors(one_kernel("    specializations: { matrix: { N: [1, 2] }, default: { N: 1 } }\n"
                                         "    overrides: [{ when: { N: 1 }, skip: true }]\n",
                                         "a.loom", "gfx942"))) ==
        joined({"7:56: \"default\" is \"N=1\", of which the overrides leave no unit"}));
}

TEST_CASE("conditions that no unit can meet are errors where they are written") {
  const Project project;
  CHECK(
      joined(project.errors(loom("      - { when: { target: gfx90c }, skip: true }\n"
                                 "      - { when: { target: sm_90 }, skip: true }\n"
                                 "      - { when: { M: 1 }, skip: true }\n"
                                 "      - { when: { targt: gfx942 }, skip: true }\n"
                                 "      - { when: { N: 12 }, skip: true }\n"
                                 "      - { when: { N: many }, skip: true }\n"
                                 "      - { when: { option.report: detials }, skip: true }\n"
                                 "      - { when: { option.report: details }, skip: true }\n"))) ==
      joined({"9:27: \"gfx90c\" is none of the targets of the kernel \"k\" (did you mean \"gfx90a\"?)",
              "10:27: \"sm_90\" is none of the targets of the kernel \"k\" (its targets: gfx942 and gfx90a)",
              "11:19: \"when\" names \"M\", which no specialization has (did you mean \"N\"?)",
              "12:19: \"when\" names \"targt\", which no specialization has (did you mean \"target\"?)",
              "13:22: no specialization has the value \"12\" of \"N\" (did you mean \"1\"?)",
              "14:22: no specialization has the value \"many\" of \"N\" (it has 1 and 2)",
              "15:34: \"detials\" is no value of the option \"report\" (did you mean \"details\"?)",
              "16:34: no specialization has the value \"details\" of \"option.report\" (it has none and "
              "summary)"}));
  CHECK(joined(project.errors(one_kernel("    overrides: [{ when: { N: 1 }, skip: true }]\n"))) ==
        joined({"7:27: \"when\" names \"N\", which no specialization has (it may name target)"}));
}

TEST_CASE("an override that matches no unit is an error") {
  const Project project;
  CHECK(joined(project.errors(one_kernel("    specializations:\n"
                                         "      matrix: { N: [1, 2], M: [1, 2] }\n"
                                         "      exclude: [{ N: 1, M: 2 }]\n"
                                         "    overrides:\n"
                                         "      - { when: { N: 1, M: 2 }, timeout: 1s }\n"
                                         "      - { when: { N: 1, M: 1 }, timeout: 1s }\n",
                                         "a.loom", "gfx942"))) ==
        joined({"11:9: this override matches no unit of the kernel \"k\""}));
  // What an earlier one skips was matched all the same.
  CHECK(project
            .errors(loom("      - { when: { N: 1 }, skip: true }\n"
                         "      - { when: { N: 1, target: gfx942 }, timeout: 1s }\n"))
            .empty());
}

TEST_CASE("options and limits of an override are checked as those of a kernel") {
  const Project project;
  CHECK(joined(project.errors(loom("      - { when: { N: 1 }, options: { reprot: none } }\n"
                                   "      - { when: { N: 2 }, options: { report: summary } }\n"))) ==
        joined(
            {"9:38: loom has no option \"reprot\" (did you mean \"report\"?)",
             "10:38: this override sets the option \"report\", which the specializations vary (a unit's name "
             "says the value that it has)"}));
  CHECK(
      joined(project.errors(one_kernel("    overrides:\n"
                                       "      - { when: { target: sm_90 }, limits: { spills: 0 } }\n"
                                       "      - { when: { target: sm_90 }, options: { opt: 4 } }\n"))) ==
      joined({"8:46: \"spills\" is AMD's count: an NVIDIA code object does not tell it (use local_memory, in "
              "bytes a thread)",
              "9:52: \"4\" is no value of the option \"opt\" (did you mean \"3\"?)"}));
}

TEST_CASE("overrides are not checked against what is itself at fault") {
  const Project project;
  CHECK(joined(project.errors(one_kernel("    overrides: [{ when: { target: sm_80, N: 1 }, skip: true }]\n"
                                         "    specializations: { matrix: { N: 1 } }\n",
                                         "a.tilebc", "sm_9x"))) ==
        joined({"6:15: target \"sm_9x\" is not the name of a GPU architecture (did you mean \"sm_90\"?)",
                "8:37: \"N\" must be a list like [64, 128], not a value"}));
}

TEST_CASE("overrides that would take minutes to apply are refused by counting") {
  const Project project;
  std::string values;
  for (int i = 0; i < 200; ++i) values += std::to_string(i) + ",";
  std::string overrides;
  for (int i = 0; i < 1000; ++i)
    overrides += "      - { when: { a: " + std::to_string(i % 200) + " }, timeout: 1s }\n";
  CHECK(
      joined(project.errors(one_kernel("    specializations: { matrix: { a: [" + values + "], b: [" + values +
                                           "] } }\n    overrides:\n" + overrides,
                                       "a.loom", "gfx942"))) ==
      joined({"7:24: with the kernel \"k\" the overrides must be compared with more than 50000000 units and "
              "specializations (fewer overrides, each for more units)"}));
}

}  // namespace
