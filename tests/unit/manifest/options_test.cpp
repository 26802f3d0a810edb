// Options of files, of specializations and the rule between them.
#include <doctest/doctest.h>

#include <string>

#include "manifest/plan.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::Pairs;
using kc::manifest::Plan;
using kc::test::joined;
using kc::test::Lines;
using kc::test::one_kernel;
using kc::test::Project;

TEST_CASE("options of the file hold for kernels of their backend that say nothing themselves") {
  const Project project;
  const Plan plan = project.plan(R"(version: 1
targets: [sm_90, gfx942]
defaults:
  options: { tileiras: { opt: 1, lineinfo: true }, loom: { report: summary } }
kernels:
  - { name: a, sources: a.tilebc, options: { opt: 2 } }
  - { name: b, sources: a.loom }
)");
  CHECK(plan.units[0].options == Pairs{{"debug", "false"}, {"lineinfo", "true"}, {"opt", "2"}});
  CHECK(plan.units[1].options == Pairs{{"report", "summary"}});
}

TEST_CASE("options of the nearest file count first") {
  const Project project;
  project.folder().write("inner.yaml",
                         "version: 1\ndefaults: { options: { tileiras: { opt: 0 } } }\n"
                         "kernels: [{ name: in, sources: a.tilebc }]\n");
  const Plan plan = project.plan(
      "version: 1\ninclude: [inner.yaml]\ntargets: [sm_90]\n"
      "defaults: { options: { tileiras: { opt: 1, lineinfo: true } } }\n"
      "kernels: [{ name: out, sources: a.tilebc }]\n");
  CHECK(plan.units[0].name == "in@sm_90");
  CHECK(plan.units[0].options == Pairs{{"debug", "false"}, {"lineinfo", "true"}, {"opt", "0"}});
  CHECK(plan.units[1].options == Pairs{{"debug", "false"}, {"lineinfo", "true"}, {"opt", "1"}});
}

TEST_CASE("options of a file are checked once and not in each kernel") {
  const Project project;
  CHECK(
      joined(project.errors("version: 1\ntargets: [sm_90]\n"
                            "defaults: { options: { tileiras: { otp: 1, opt: 7 }, lom: { report: none } } }\n"
                            "kernels:\n  - { name: a, sources: a.tilebc }\n"
                            "  - { name: b, sources: b.tilebc }\n")) ==
      joined({"3:36: tileiras has no option \"otp\" (did you mean \"opt\"?)",
              "3:49: \"7\" is no value of the option \"opt\" (did you mean \"3\"?)",
              "3:54: unknown backend \"lom\" (did you mean \"loom\"?)"}));
}

TEST_CASE("the rule between options names the file when only the file says something") {
  const Project project;
  const std::string text =
      "version: 1\ntargets: [sm_90]\ndefaults: { options: { tileiras: { debug: true } } }\n";
  CHECK(joined(project.errors(text + "kernels:\n  - { name: a, sources: a.tilebc }\n"
                                     "  - { name: b, sources: b.tilebc }\n")) ==
        joined({"3:36: debug needs opt 0"}));
  CHECK(joined(project.errors(text +
                              "kernels: [{ name: a, sources: a.tilebc, options: { lineinfo: true } }]\n")) ==
        joined({"4:41: debug needs opt 0"}));
  CHECK(project.errors(text + "kernels: [{ name: a, sources: a.tilebc, options: { opt: 0 } }]\n").empty());
}

TEST_CASE("an option that varies is part of the name and reaches the options and not the configuration") {
  const Project project;
  project.folder().write("m.loom", "module\nkey N\n");
  const Plan plan =
      project.plan(one_kernel("    options: { report: details }\n    specializations:\n"
                              "      matrix: { option.report: [none, summary], N: [1] }\n"
                              "      include: [{ N: 2 }]\n"
                              "      default: { option.report: summary }\n",
                              "m.loom", "gfx942"));
  REQUIRE(plan.units.size() == 3);
  CHECK(plan.units[0].name == "k:N=1,option.report=none@gfx942");
  CHECK(plan.units[0].options == Pairs{{"report", "none"}});
  CHECK(plan.units[0].config == Pairs{{"N", "1"}});
  CHECK(plan.units[0].specialization == Pairs{{"N", "1"}, {"option.report", "none"}});
  CHECK(plan.units[1].options == Pairs{{"report", "summary"}});
  CHECK(plan.units[1].is_default);
  // What does not vary it has what the kernel says.
  CHECK(plan.units[2].options == Pairs{{"report", "details"}});
}

TEST_CASE("an option may vary for a backend without configuration and be used between braces") {
  const Project project;
  const Plan plan = project.plan(
      one_kernel("    specializations: { matrix: { option.opt: [1, 2] } }\n", "'k_{option.opt}.tilebc'"));
  REQUIRE(plan.units.size() == 2);
  CHECK(plan.units[1].name == "k:option.opt=2@sm_90");
  CHECK(plan.units[1].options == Pairs{{"debug", "false"}, {"lineinfo", "false"}, {"opt", "2"}});
  CHECK(plan.sources[plan.units[1].sources[0]].identifier == "k_2.tilebc");
  CHECK(plan.units[1].config.empty());
}

TEST_CASE("options that vary are the backend's wherever they are written") {
  const Project project;
  const auto errors = [&](const std::string& specializations) {
    return joined(project.errors(one_kernel("    specializations: " + specializations + "\n")));
  };
  CHECK(errors("{ matrix: { option.otp: [1], option.opt: [3, 4] } }") ==
        joined({"7:34: tileiras has no option \"otp\" (did you mean \"opt\"?)",
                "7:67: \"4\" is no value of the option \"opt\" (did you mean \"3\"?)"}));
  // Of one name one error, of each bad value one.
  CHECK(errors("{ include: [{ option.x: 1 }, { option.x: 2 }, { option.opt: 9 }, { option.opt: 9 }] }") ==
        joined({"7:36: tileiras has no option \"x\" (known: opt, debug and lineinfo)",
                "7:82: \"9\" is no value of the option \"opt\" (did you mean \"3\"?)"}));
  CHECK(errors("{ matrix: { option.opt: [3] }, default: { option.opt: 8 } }") ==
        joined({"7:76: \"8\" is no value of the option \"opt\" (did you mean \"3\"?)"}));
  CHECK(errors("{ matrix: { option.opt: [3, 2] }, default: { option.opt: 1 } }") ==
        joined({"7:65: \"default\" matches no specialization"}));
  project.folder().write("t.csv", "option.opt,option.bug\n3,true\n5,true\n5,false\n");
  const kc::manifest::Loaded loaded = project.load(one_kernel("    specializations: { table: t.csv }\n"));
  REQUIRE(loaded.errors.size() == 2);
  CHECK(loaded.errors[0].text() ==
        project.folder() / "t.csv" +
            ":1:12: tileiras has no option \"bug\" (known: opt, debug and lineinfo)");
  CHECK(loaded.errors[1].text() ==
        project.folder() / "t.csv" + ":3:1: \"5\" is no value of the option \"opt\" (did you mean \"3\"?)");
}

TEST_CASE("the rule between options is reported where the fault comes in") {
  const Project project;
  // In the matrix, which the kernel's own options do not break.
  CHECK(joined(project.errors(one_kernel(
            "    specializations: { matrix: { option.opt: [0, 3], option.debug: [true, false] } }\n"))) ==
        joined({"7:34: debug needs opt 0, as in \"k:option.debug=true,option.opt=3@sm_90\""}));
  CHECK(project
            .errors(one_kernel("    specializations:\n"
                               "      matrix: { option.opt: [0, 3], option.debug: [true, false] }\n"
                               "      exclude: [{ option.opt: 3, option.debug: true }]\n"))
            .empty());
  // In an include.
  CHECK(joined(project.errors(
            one_kernel("    specializations: { include: [{ option.opt: 0 }, { option.debug: true }] }\n"))) ==
        joined({"7:69: debug needs opt 0, as in \"k:option.debug=true@sm_90\""}));
  // In the kernel, when some specializations leave it as it is.
  CHECK(joined(project.errors(one_kernel("    options: { debug: true }\n"
                                         "    specializations: { include: [{ option.opt: 0 }, "
                                         "{ option.lineinfo: true }] }\n"))) ==
        joined({"7:5: debug needs opt 0, as in \"k:option.lineinfo=true@sm_90\""}));
  // No unit has what the kernel alone would have.
  CHECK(project
            .errors(one_kernel("    options: { debug: true }\n"
                               "    specializations: { matrix: { option.opt: [0] } }\n"))
            .empty());
  // In an override.
  CHECK(joined(project.errors(one_kernel("    overrides: [{ when: { target: sm_90 }, timeout: 1s, "
                                         "options: { debug: true } }]\n"))) ==
        joined({"7:57: debug needs opt 0, as in \"k@sm_90\""}));
  // An override may bring the remedy too.
  CHECK(project
            .errors(one_kernel("    options: { debug: true }\n"
                               "    overrides: [{ when: { target: sm_90 }, options: { opt: 0 } }]\n"))
            .empty());
}

TEST_CASE("a fault of options that vary does not hide behind another fault") {
  const Project project;
  CHECK(joined(project.errors(
            one_kernel("    specializations: { matrix: { option.debug: [true] } }\n", "gone_away.tilebc"))) ==
        joined({"4:14: the source \"gone_away.tilebc\" does not exist",
                "7:34: debug needs opt 0, as in \"k:option.debug=true@sm_90\""}));
}

}  // namespace
