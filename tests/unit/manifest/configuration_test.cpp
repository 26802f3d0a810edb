// Configuration: what modules declare, what files offer, what parameters are.
#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "manifest/plan.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::Pairs;
using kc::manifest::Plan;
using kc::test::joined;
using kc::test::Lines;
using kc::test::one_kernel;
using kc::test::Project;

// m.loom declares A and tile, n.loom declares B, bare.loom nothing; k_1.loom declares A, k_2.loom A and B;
// only its compiler can read m.loombc.
struct Modules : Project {
  Modules() {
    folder().write("m.loom", "module\nkey A\nkey tile\n");
    folder().write("n.loom", "module\nkey B\n");
    folder().write("bare.loom", "module\n");
    folder().write("k_1.loom", "module\nkey A\n");
    folder().write("k_2.loom", "module\nkey A\nkey B\n");
    folder().write("m.loombc", "bytes");
    folder().write("k.py", "");
  }
};

// A manifest with `defaults.config`, which begins at line 3, column 13, and one kernel for gfx942.
std::string offering(const std::string& config, const std::string& fields) {
  return "version: 1\ntargets: [gfx942]\ndefaults: { config: " + config + " }\nkernels:\n  - name: k\n" +
         fields;
}

TEST_CASE("a kernel takes what is offered and declared and its own values count first") {
  const Modules project;
  const Plan plan = project.plan(offering("{ tile: 1, A: 2, B: 3, other: 4 }",
                                          "    sources: [m.loom, n.loom]\n    config: { A: 20 }\n"
                                          "    specializations: { matrix: { tile: [7] } }\n"));
  CHECK(plan.units[0].name == "k:tile=7@gfx942");
  CHECK(plan.units[0].config == Pairs{{"A", "20"}, {"B", "3"}, {"tile", "7"}});
  CHECK(joined(project.warnings(offering("{ tile: 1, A: 2, other: 4 }", "    sources: m.loom\n"))) ==
        joined({"3:38: no kernel takes \"other\" from \"defaults\": none declares it"}));
}

TEST_CASE("what a library declares is declared") {
  const Modules project;
  const Plan plan = project.plan(offering("{ B: 3 }", "    sources: m.loom\n    libraries: n.loom\n"));
  CHECK(plan.units[0].config == Pairs{{"B", "3"}});
}

TEST_CASE("the nearest file offers first and what a nearer one hides counts as taken") {
  const Modules project;
  project.folder().write("inner.yaml",
                         "version: 1\ndefaults: { config: { A: inner } }\n"
                         "kernels: [{ name: in, sources: m.loom }]\n");
  const std::string text =
      "version: 1\ninclude: [inner.yaml]\ntargets: [gfx942]\ndefaults: { config: { A: outer, tile: 8 } }\n"
      "kernels: [{ name: out, sources: bare.loom }]\n";
  const Plan plan = project.plan(text);
  CHECK(plan.units[0].config == Pairs{{"A", "inner"}, {"tile", "8"}});
  CHECK(plan.units[1].config.empty());
  CHECK(project.warnings(text).empty());
}

TEST_CASE("a key that no module declares is an error where it is written first") {
  const Modules project;
  CHECK(
      joined(project.errors(one_kernel("    config: { a: 1 }\n"
                                       "    specializations:\n"
                                       "      matrix: { tiles: [1], A: [1] }\n"
                                       "      include: [{ A: 2, zzz: 3 }, { zzz: 4 }]\n",
                                       "[m.loom, n.loom]", "gfx942"))) ==
      joined({"7:15: the key \"a\" is declared by no source or library of this kernel (did you mean \"A\"?)",
              "9:17: the key \"tiles\" is declared by no source or library of this kernel (did you mean "
              "\"tile\"?)",
              "10:25: the key \"zzz\" is declared by no source or library of this kernel (declared: A, B and "
              "tile)"}));
  CHECK(joined(project.errors(one_kernel("    config: { A: 1 }\n", "bare.loom", "gfx942"))) ==
        joined({"7:15: the key \"A\" is declared by no source or library of this kernel"}));
}

TEST_CASE("a key used between braces need not be declared and reaches the compiler only when it is") {
  const Modules project;
  const Plan plan = project.plan(
      "version: 1\ntargets: [gfx942]\nkernels:\n  - name: k\n    sources: m.loom\n"
      "    entry: 'f_{T}_{A}'\n    config: { T: f32, A: 5 }\n");
  CHECK(plan.units[0].entry == "f_f32_5");
  CHECK(plan.units[0].config == Pairs{{"A", "5"}});
}

TEST_CASE("what is offered is for modules and not for braces") {
  const Modules project;
  CHECK(
      joined(project.errors(offering("{ T: f32 }", "    sources: m.loom\n    entry: 'f_{T}'\n"))) ==
      joined({"7:12: \"{T}\" in \"entry\" is no configuration key of this kernel (\"defaults\" offers it to "
              "modules; write it in the \"config\" of the kernel)"}));
}

TEST_CASE("a backend without configuration takes nothing of what is offered") {
  const Modules project;
  const std::string text =
      "version: 1\ntargets: [sm_90]\ndefaults: { config: { A: 1 } }\nkernels: [{ name: k, sources: a.tilebc "
      "}]\n";
  CHECK(project.plan(text).units[0].config.empty());
  CHECK(joined(project.warnings(text)) ==
        joined({"3:23: no kernel takes \"A\" from \"defaults\": none declares it"}));
}

TEST_CASE("keys of a module that only its compiler can read pass with one warning") {
  const Modules project;
  const std::string text = offering("{ x: 1, A: 2 }",
                                    "    sources: [m.loom, m.loombc]\n    config: { y: 1, z: 2 }\n"
                                    "    specializations: { matrix: { A: [3, 4] } }\n");
  const Plan plan = project.plan(text);
  CHECK(plan.units[1].config == Pairs{{"A", "4"}, {"x", "1"}, {"y", "1"}, {"z", "2"}});
  CHECK(
      joined(project.warnings(text)) ==
      joined({"5:11: the configuration keys of the kernel \"k\" are not checked: only its compiler can tell "
              "which ones \"m.loombc\" declares"}));
  // Nothing to check: nothing to say.
  CHECK(project.warnings(one_kernel("", "m.loombc", "gfx942")).empty());
  CHECK(project
            .warnings(one_kernel("    specializations: { matrix: { option.report: [none] } }\n", "m.loombc",
                                 "gfx942"))
            .empty());
}

TEST_CASE("a backend that declares nothing takes every key without a word") {
  Modules project;
  project.rules()[1].declared_keys = nullptr;
  const std::string text = offering("{ x: 1 }", "    sources: m.loom\n    config: { y: 1 }\n");
  CHECK(project.plan(text).units[0].config == Pairs{{"x", "1"}, {"y", "1"}});
  CHECK(project.warnings(text).empty());
}

TEST_CASE("sources that follow from the specialization each declare their own keys") {
  const Modules project;
  const std::string matrix = "    sources: 'k_{N}.loom'\n    specializations: { matrix: { N: [1, 2] } }\n";
  const Plan plan = project.plan(offering("{ A: 1, B: 2 }", matrix));
  CHECK(plan.units[0].config == Pairs{{"A", "1"}});
  CHECK(plan.units[1].config == Pairs{{"A", "1"}, {"B", "2"}});
  CHECK(
      joined(project.errors(one_kernel("    config: { B: 1 }\n    specializations:\n"
                                       "      matrix: { N: [1, 2], C: [3] }\n",
                                       "'k_{N}.loom'", "gfx942"))) ==
      joined({"7:15: the key \"B\" is declared by no source or library of this kernel with \"k_1.loom\" (did "
              "you mean \"A\"?)",
              "9:28: the key \"C\" is declared by no source or library of this kernel with \"k_1.loom\" (did "
              "you mean \"A\"?)"}));
  project.folder().write("k_3.loom", "bytes");
  CHECK(
      joined(project.warnings(one_kernel("    specializations: { matrix: { N: [1, 3], A: [1, 2] } }\n",
                                         "'k_{N}.loom'", "gfx942"))) ==
      joined({"3:11: the configuration keys of the kernel \"k\" are not checked: only its compiler can tell "
              "which ones \"k_3.loom\" declares"}));
}

TEST_CASE("a module is asked once for all kernels that are made from it") {
  Modules project;
  int asked = 0;
  project.rules()[1].declared_keys = [&](const std::string& path, kc::base::ByteView bytes) {
    ++asked;
    CHECK(path == "m.loom");
    return kc::test::words_behind("key", bytes);
  };
  std::string kernels;
  for (int i = 0; i < 20; ++i) {
    kernels += "  - { name: l" + std::to_string(i) + ", sources: m.loom, config: { A: 1 } }\n";
  }
  CHECK(project.plan(offering("{ A: 1 }", "    sources: m.loom\n" + kernels)).units.size() == 21);
  CHECK(asked == 1);
}

TEST_CASE("a module that cannot be read is reported once and its keys are not") {
  const Modules project;
  project.folder().write("locked.loom", "module\n");
  // A file of more than 256 MiB, without taking its room on the disk.
  REQUIRE(truncate((project.folder() / "locked.loom").c_str(), 257L << 20) == 0);
  const Lines errors = project.errors(offering("{ A: 1 }",
                                               "    sources: locked.loom\n    config: { x: 1 }\n"
                                               "  - { name: l, sources: locked.loom, config: { y: 1 } }\n"));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0] ==
        "6:14: the file \"locked.loom\" cannot be used: has 269484032 bytes; at most 268435456 are read");
}

TEST_CASE("keys are not checked against sources that are not there") {
  const Modules project;
  CHECK(joined(project.errors(
            one_kernel("    config: { x: 1 }\n    libraries: gone_away.loom\n", "m.loom", "gfx942"))) ==
        joined({"8:16: the library \"gone_away.loom\" does not exist"}));
  CHECK(joined(project.errors(one_kernel("    config: { x: 1 }\n", "[m.loom, gone_away.loom]", "gfx942"))) ==
        joined({"4:23: the source \"gone_away.loom\" does not exist"}));
}

TEST_CASE("defaults at fault leave nothing missing in kernels") {
  const Modules project;
  CHECK(
      joined(project.errors(
          "version: 1\ntargets: [gfx942, sm_90]\n"
          "defaults: { libraries: [], config: { TM: [1] }, options: { tileiras: { opt: ~ } } }\n"
          "kernels:\n"
          "  - { name: k, sources: bare.loom, config: { B: 1 } }\n"
          "  - { name: l, sources: k.py, parameters: { TM: constant } }\n"
          "  - { name: m, sources: a.tilebc, options: { debug: true } }\n")) ==
      joined({"3:24: \"libraries\" is an empty list (expected a list like [common.loom])",
              "3:42: \"TM\" must be a value, not a list", "3:72: \"opt\" has no value (expected a value)"}));
}

constexpr const char* kParameters =
    "    parameters: { A: { dtype: float16, ndim: 2 }, TM: constant, TN: constant }\n";

std::string python(const std::string& fields, bool with_parameters = true) {
  return one_kernel((with_parameters ? kParameters : "") + fields, "k.py");
}

TEST_CASE("the constants of parameters are the keys and reach the plan in their order") {
  const Modules project;
  const Plan plan =
      project.plan(python("    config: { TN: 8 }\n    specializations: { matrix: { TM: [64] } }\n"));
  CHECK(plan.units[0].config == Pairs{{"TM", "64"}, {"TN", "8"}});
  const std::vector<kc::manifest::Parameter>& parameters = plan.kernels[0].parameters;
  REQUIRE(parameters.size() == 3);
  CHECK(parameters[0].name == "A");
  CHECK(!parameters[0].constant);
  CHECK(parameters[0].words == Pairs{{"dtype", "float16"}, {"ndim", "2"}});
  CHECK(parameters[1].name == "TM");
  CHECK(parameters[1].constant);
  CHECK(parameters[2].name == "TN");
}

TEST_CASE("each constant has a value in every specialization") {
  const Modules project;
  CHECK(
      joined(project.errors(python(""))) ==
      joined({"7:51: the constant \"TM\" has no value (give it one in \"config\" or in every specialization)",
              "7:65: the constant \"TN\" has no value (give it one in \"config\" or in every "
              "specialization)"}));
  CHECK(joined(project.errors(python("    specializations:\n      matrix: { TM: [1], TN: [1] }\n"
                                     "      include: [{ TM: 2 }, { TN: 3 }]\n"))) ==
        joined({"10:17: this include has no key \"TN\", which is a constant of \"parameters\"",
                "10:28: this include has no key \"TM\", which is a constant of \"parameters\""}));
  CHECK(joined(project.errors(python("    config: { TN: 1 }\n    specializations:\n"
                                     "      include: [{ TM: 2 }]\n      matrix: { TN: [3] }\n"))) ==
        joined({"11:7: the matrix has no key \"TM\", which is a constant of \"parameters\""}));
  const std::string offered = python("    specializations: { matrix: { TM: [1] } }\n");
  CHECK(project.errors(offered + "defaults: { config: { TN: 4 } }\n").empty());
}

TEST_CASE("a key that is no constant of parameters is an error") {
  const Modules project;
  CHECK(joined(project.errors(python("    config: { TM: 1, TN: 1, depth: 1 }\n"))) ==
        joined({"8:29: the key \"depth\" is no constant of \"parameters\" (constants: TM and TN)"}));
  // Not even an array.
  CHECK(joined(project.errors(python("    config: { TM: 1, TN: 1, A: 1 }\n"))) ==
        joined({"8:29: the key \"A\" is no constant of \"parameters\" (constants: TM and TN)"}));
}

TEST_CASE("parameters are for the kernels that need them") {
  const Modules project;
  CHECK(joined(project.errors(python("    config: { TM: 1 }\n", false))) ==
        joined({"3:11: the kernel \"k\" lacks \"parameters\", which cutile needs (list the parameters of its "
                "function in their order)"}));
  CHECK(joined(project.errors(one_kernel(kParameters))) ==
        joined({"7:5: kernels for tileiras have no \"parameters\""}));
}

}  // namespace
