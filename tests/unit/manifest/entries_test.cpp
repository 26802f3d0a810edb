// `entries`: one kernel an entry.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "manifest/plan.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::Plan;
using kc::manifest::Unit;
using kc::test::joined;
using kc::test::Lines;
using kc::test::Project;

// A kernel for gfx942 with `entries`, which begins at line 4, column 5.
std::string with_entries(std::string_view name, std::string_view sources, std::string_view entries,
                         std::string_view rest = "") {
  return "version: 1\ntargets: [gfx942]\nkernels:\n  - name: " + std::string(name) +
         "\n    sources: " + std::string(sources) + "\n    entries: " + std::string(entries) + "\n" +
         std::string(rest);
}

struct Modules : Project {
  Modules() {
    folder().write("m.loom", "module\nexport first\nexport second\nkey N\n");
    folder().write("n.loom", "module\nexport third\nexport first\n");
    folder().write("none.loom", "module\n");
  }
};

TEST_CASE("a list of entries gives a kernel for each with its name and its place") {
  const Modules project;
  const Plan plan = project.plan(with_entries(
      "'q.{entry}.{entry}'", "m.loom", "[b, a]",
      "    metadata: { owner: me }\n    specializations: { matrix: { N: [1, 2] }, default: { N: 2 } }\n"));
  REQUIRE(plan.kernels.size() == 2);
  CHECK(plan.kernels[0].name == "q.b.b");
  CHECK(plan.kernels[1].name == "q.a.a");
  CHECK(plan.kernels[0].place.text() == project.path() + ":6:15");
  CHECK(plan.kernels[1].place.text() == project.path() + ":6:18");
  CHECK(plan.kernels[1].metadata == kc::manifest::Pairs{{"owner", "me"}});
  Lines names;
  for (const Unit& unit : plan.units) names.push_back(unit.name + (unit.is_default ? " default" : ""));
  CHECK(joined(names) == joined({"q.b.b:N=1@gfx942", "q.b.b:N=2@gfx942 default", "q.a.a:N=1@gfx942",
                                 "q.a.a:N=2@gfx942 default"}));
  CHECK(plan.units[0].entry == "b");
  CHECK(plan.units[3].entry == "a");
  CHECK(plan.units[3].kernel == 1);
}

TEST_CASE("exported entries are those of all sources in order and each once") {
  const Modules project;
  CHECK(joined(project.units(with_entries("'{entry}'", "[n.loom, m.loom]", "exported"))) ==
        joined({"third@gfx942", "first@gfx942", "second@gfx942"}));
  const Plan plan = project.plan(with_entries("'x-{entry}'", "m.loom", "exported"));
  CHECK(plan.kernels[1].place.text() == project.path() + ":4:11");
  CHECK(plan.units[1].entry == "second");
  // What was looked into is not read again.
  CHECK(plan.sources[0].content.has_value());
}

TEST_CASE("entries that only a compiler can tell must be listed") {
  const Modules project;
  project.folder().write("m.loombc", "bytes");
  CHECK(joined(project.errors(with_entries("'{entry}'", "[m.loom, m.loombc]", "exported"))) ==
        joined({"6:5: the entries of \"m.loombc\" cannot be told without its compiler (list them)"}));
  CHECK(joined(project.errors(with_entries("'{entry}'", "none.loom", "exported"))) ==
        joined({"6:5: the sources of the kernel \"{entry}\" export no entries"}));
  CHECK(joined(project.errors(with_entries("'{entry}'", "'{N}.loom'", "exported",
                                           "    specializations: { matrix: { N: [m, n] } }\n"))) ==
        joined({"6:5: which entries \"{N}.loom\" exports is not known before \"{N}\" is replaced (list "
                "them)"}));
  // Of a backend that never tells.
  Modules silent;
  silent.rules()[1].exported_entries = nullptr;
  CHECK(joined(silent.errors(with_entries("'{entry}'", "m.loom", "exported"))) ==
        joined({"6:5: the entries of \"m.loom\" cannot be told without its compiler (list them)"}));
}

TEST_CASE("a source that is missing is the only fault of exported entries") {
  const Modules project;
  CHECK(joined(project.errors(with_entries("'{entry}'", "[m.loom, gone.loom]", "exported"))) ==
        joined({"5:23: the source \"gone.loom\" does not exist (did you mean \"none.loom\"?)"}));
}

TEST_CASE("a name that an entry spoils is reported at the entry or once for all that are exported") {
  const Modules project;
  project.folder().write("odd.loom", "module\nexport @a\nexport b\nexport <c>\n");
  const std::string rule = " (letters, digits, _, . and -, at most 128 bytes, not . or - first)";
  CHECK(joined(project.errors(with_entries("'k{entry}'", "m.loom", "[a, 'b@', 'c/d']"))) ==
        joined({"6:18: \"kb@\" cannot be the name of a kernel" + rule,
                "6:24: \"kc/d\" cannot be the name of a kernel" + rule}));
  CHECK(
      joined(project.errors(with_entries("'k{entry}'", "odd.loom", "exported"))) ==
      joined({"4:11: \"k@a\" cannot be the name of a kernel, nor can 1 more that the entries give" + rule}));
}

TEST_CASE("what is wrong with a kernel of many entries is said once") {
  const Modules project;
  CHECK(joined(project.errors(
            with_entries("'{entry}'", "m.loom", "[a, b, c]",
                         "    options: { report: no }\n    limits: { registers: x }\n    specializations:\n"
                         "      matrix: { N: [1, 2] }\n      exclude: [{ N: 1 }, { N: 2 }]\n"))) ==
        joined({"7:24: \"no\" is no value of the option \"report\" (one of none, summary and details)",
                "8:26: \"registers\" must be a whole number from 0 to 4294967295, not \"x\""}));
  CHECK(joined(project.errors(
            with_entries("'{entry}'", "m.loom", "[a, b, c]",
                         "    timeout: never\n    specializations:\n      matrix: { N: [1, 2] }\n"
                         "      exclude: [{ N: 1 }, { N: 2 }]\n      default: { M: 1 }\n"))) ==
        joined({"7:14: \"timeout\" must be a duration such as 500ms, 60s, 10m or 2h, more than 0 and at most "
                "10 years, not \"never\"",
                "9:7: the excludes leave nothing of this matrix",
                "11:18: \"default\" names \"M\", which no specialization has (did you mean \"N\"?)"}));
}

TEST_CASE("two kernels of one name are found whatever made them") {
  const Modules project;
  CHECK(joined(project.errors(
            with_entries("'{entry}'", "m.loom", "[a, b]", "  - name: b\n    sources: n.loom\n"))) ==
        joined({"7:11: two kernels are named \"b\"; the first is at :6:18"}));
  CHECK(joined(project.errors(
            with_entries("'{entry}'", "m.loom", "exported", "  - { name: second, sources: n.loom }\n"))) ==
        joined({"7:13: two kernels are named \"second\"; the first is at :4:11"}));
}

TEST_CASE("more kernels than a plan may have units are refused before they are made") {
  const Modules project;
  const std::string text = with_entries("'a{entry}'", "m.loom", "[x]",
                                        "  - { name: 'b{entry}', sources: m.loom, entries: exported }\n"
                                        "  - { name: 'c{entry}', sources: m.loom, entries: exported }\n"
                                        "  - { name: 'd{entry}', sources: m.loom, entries: exported }\n");
  CHECK(joined(project.texts(project.load(text, 4).errors)) ==
        joined({"8:42: with these 2 entries the plan has more than 4 kernels"}));
  CHECK(project.load(text, 7).errors.empty());
}

}  // namespace
