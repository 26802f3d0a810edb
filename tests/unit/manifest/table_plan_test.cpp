// Specializations of tables, in the plan.
#include <doctest/doctest.h>

#include <string>

#include "manifest/plan.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::Plan;
using kc::manifest::Unit;
using kc::test::joined;
using kc::test::Lines;
using kc::test::one_kernel;
using kc::test::Project;

// A kernel of `a.loom` with t.csv, and what is said about it: errors of t.csv begin with its name.
struct Tables : Project {
  std::string text(const std::string& table, const std::string& more = "",
                   const char* targets = "gfx942, gfx90a", const char* source = "a.loom") const {
    folder().write("t.csv", table);
    return one_kernel("    specializations: { table: t.csv" + more + " }\n", source, targets);
  }
  Lines units(const std::string& table, const std::string& more = "",
              const char* targets = "gfx942, gfx90a") const {
    return Project::units(text(table, more, targets));
  }
  Lines short_errors(const std::string& manifest) const {
    Lines out = errors(manifest);
    for (std::string& line : out) {
      if (line.starts_with(folder().path() + "/")) line.erase(0, folder().path().size() + 1);
    }
    return out;
  }
};

TEST_CASE("rows are specializations behind matrix and includes and the same one is there once") {
  const Tables project;
  CHECK(joined(project.units("b,a\n1,2\n9,8\n2,1\n3,\n9,8\n",
                             ", matrix: { a: [1], b: [2] }, include: [{ b: 3 }]", "gfx942")) ==
        joined({"k:a=1,b=2@gfx942", "k:b=3@gfx942", "k:a=2,b=1@gfx942", "k:a=8,b=9@gfx942"}));
  CHECK(joined(project.units("a\n1\n2\n")) ==
        joined({"k:a=1@gfx942", "k:a=1@gfx90a", "k:a=2@gfx942", "k:a=2@gfx90a"}));
}

TEST_CASE("a row with a target is for that target and rows of one specialization add up") {
  const Tables project;
  CHECK(joined(project.units("a,target\n1,gfx90a\n2,gfx942\n3,gfx90a\n3,gfx942\n4,gfx942\n4,\n5,gfx90a\n",
                             ", include: [{ a: 5 }]")) ==
        joined({"k:a=5@gfx942", "k:a=5@gfx90a", "k:a=1@gfx90a", "k:a=2@gfx942", "k:a=3@gfx942",
                "k:a=3@gfx90a", "k:a=4@gfx942", "k:a=4@gfx90a"}));
  // Features in another order are the same target.
  CHECK(
      joined(project.units("a,target\n1,gfx942:xnack-:sramecc+\n", "", "'gfx942:sramecc+:xnack-', gfx90a")) ==
      joined({"k:a=1@gfx942:sramecc+:xnack-"}));
}

TEST_CASE("a row that has no key is the kernel without configuration") {
  const Tables project;
  const Plan plan = project.plan(project.text("a,target\n1,gfx942\n,gfx90a\n"));
  REQUIRE(plan.units.size() == 2);
  CHECK(plan.units[1].name == "k@gfx90a");
  CHECK(plan.units[1].is_default);
  CHECK(!plan.units[0].is_default);
}

TEST_CASE("a default matches a row and an empty configuration beside it is none") {
  const Tables project;
  const Plan plan = project.plan(project.text("a,b\n1,\n2,3\n,4\n", ", default: { a: 2 }", "gfx942"));
  for (const Unit& unit : plan.units) CHECK(unit.is_default == (unit.specialization_text == "a=2,b=3"));
  CHECK(joined(project.errors(project.text("a,b\n1,1\n2,1\n", ", default: { b: 1 }", "gfx942"))) ==
        joined(
            {"7:47: \"default\" matches 2 specializations, among them \"a=1,b=1\" and \"a=2,b=1\" (name more "
             "keys)"}));
}

TEST_CASE("what rows say about when is kept for the units that they cover") {
  const Tables project;
  const Plan plan =
      project.plan(project.text("a,target,when.n,when.m\n1,,128,64\n1,gfx90a,256,64\n1,,128,64\n1,gfx942,,"
                                "\n2,gfx942,1,\n2,gfx90a,,a b\n3,,,\n7,,x,\n",
                                ", matrix: { a: [7, 8] }"));
  Lines said;
  for (const Unit& unit : plan.units) said.push_back(unit.name + " " + unit.selection);
  CHECK(joined(said) ==
        joined({"k:a=7@gfx942 n=x", "k:a=7@gfx90a n=x", "k:a=8@gfx942 ", "k:a=8@gfx90a ",
                "k:a=1@gfx942 m=64,n=128", "k:a=1@gfx90a m=64,n=128;m=64,n=256", "k:a=2@gfx942 n=1",
                "k:a=2@gfx90a m=a%20b", "k:a=3@gfx942 ", "k:a=3@gfx90a "}));
}

TEST_CASE("more about one unit than a bundle holds is refused at the table") {
  const Tables project;
  std::string table = "a,when.x\n";
  // `x=` and 1,021 bytes, with semicolons between them: 512 fill 512 KiB less a byte.
  for (int i = 0; i < 512; ++i) {
    std::string value = std::to_string(i);
    value.resize(1021, 'v');
    table += "1," + value + "\n";
  }
  CHECK(project.plan(project.text(table, "", "gfx942")).units[0].selection.size() == (512U << 10) - 1);
  CHECK(joined(project.errors(project.text(table + "1,longer\n", "", "gfx942"))) ==
        joined({"7:31: the columns `when.*` say more than 524288 bytes about one unit, \"k:a=1@gfx942\" "
                "(fewer rows "
                "of one specialization)"}));
}

TEST_CASE("a target that is none of the kernel's is an error at its cell and once for each name") {
  const Tables project;
  CHECK(
      joined(project.short_errors(
          project.text("a,target\n1,gfx90c\n2,gfx942\n3,gfx90c\n4,sm_90\n5,nonsense\n"))) ==
      joined(
          {"t.csv:2:3: \"gfx90c\" is none of the targets of the kernel \"k\"; 2 rows name it (did you mean "
           "\"gfx90a\"?)",
           "t.csv:5:3: \"sm_90\" is none of the targets of the kernel \"k\" (its targets: gfx942 and gfx90a)",
           "t.csv:6:3: \"nonsense\" is none of the targets of the kernel \"k\" (its targets: gfx942 and "
           "gfx90a)"}));
}

TEST_CASE("keys of columns are checked as those of a matrix") {
  const Tables project;
  project.folder().write("m.loom", "module\nkey a\n");
  CHECK(joined(project.short_errors(project.text("a,aa,when.zz\n1,2,3\n1,3,4\n", "", "gfx942", "m.loom"))) ==
        joined({"t.csv:1:3: the key \"aa\" is declared by no source or library of this kernel (did you mean "
                "\"a\"?)"}));
  CHECK(joined(project.short_errors(project.text("N,M\n1,2\n", "", "sm_90", "'k_{N}.tilebc'"))) ==
        joined({"t.csv:1:3: the key \"M\" could change nothing: sources for tileiras have no configuration "
                "(use it "
                "as {M} in sources or entry, or leave it out)"}));
}

TEST_CASE("braces need their key in every row and a column that is not there is one fault") {
  const Tables project;
  CHECK(joined(project.short_errors(
            project.text("N,option.opt\n1,3\n,2\n2,1\n,0\n", "", "sm_90", "'k_{N}.tilebc'"))) ==
        joined({"t.csv:3:1: this row has no key \"N\", which \"sources\" uses",
                "t.csv:5:1: this row has no key \"N\", which \"sources\" uses"}));
  CHECK(joined(project.short_errors(
            project.text("option.opt\n1\n2\n", ", include: [{ N: 1 }]", "sm_90", "'k_{N}.tilebc'"))) ==
        joined({"7:31: this table has no key \"N\", which \"sources\" uses"}));
}

TEST_CASE("excludes are for the matrix and not for rows") {
  const Tables project;
  CHECK(joined(project.units("a\n1\n", ", matrix: { a: [1, 2] }, exclude: [{ a: 1 }]", "gfx942")) ==
        joined({"k:a=2@gfx942", "k:a=1@gfx942"}));
  CHECK(
      joined(project.errors(project.text("a\n1\n", ", matrix: { a: [1] }, exclude: [{ a: 1 }]", "gfx942"))) ==
      joined({"7:38: the excludes leave nothing of this matrix"}));
}

TEST_CASE("a row that no bundle could hold is refused at the row") {
  const Tables project;
  std::string header = "k10";
  std::string row = std::string(1024, '/');
  for (int i = 11; i < 32; ++i) {
    header += ",k" + std::to_string(i);
    row += "," + std::string(1024, '/');
  }
  CHECK(joined(project.short_errors(project.text(header + "\n" + row + "\n", "", "gfx942"))) ==
        joined({"t.csv:2:1: this specialization has 67693 bytes of keys and values as written in names of "
                "units; at "
                "most 65535 are allowed (fewer keys or shorter values)"}));
}

TEST_CASE("rows and targets that many kernels have are not gone through for each") {
  const Tables project;
  const std::string text =
      project.text("a\n1\n2\n3\n", "", "gfx942") +
      "  - { name: l, sources: a.loom, targets: [gfx942], specializations: { table: t.csv } }\n"
      "  - { name: m, sources: a.loom, targets: [gfx942], overrides: [{ when: { a: 4 }, skip: true }],\n"
      "      specializations: { table: t.csv } }\n";
  const std::string refused =
      "8:78: with the kernel \"l\" the plan has more than 5 units (counted before excludes, and rows as "
      "often as they "
      "are there)";
  const std::string no_value = "9:77: no specialization has the value \"4\" of \"a\" (did you mean \"1\"?)";
  CHECK(joined(project.texts(project.load(text, 5).errors)) == joined({refused}));
  CHECK(joined(project.texts(project.load(text, 6).errors)) == joined({no_value}));
  // A table of many columns, when the memory for its rows is refused.
  std::string header = "a";
  std::string row = "0";
  for (int i = 1; i < 100; ++i) {
    header += ",c" + std::to_string(i);
    row += "," + std::to_string(i);
  }
  project.folder().write("t.csv", header + "\n" + row + "\n");
  CHECK(joined(project.texts(project.load(text, 6).errors)) ==
        joined({"7:31: with the kernel \"k\" the plan would take more than 12.0 KiB of memory (fewer units, "
                "or fewer "
                "and shorter values in each)"}));
  const std::string targets =
      "version: 1\ntargets: [gfx942, gfx90a]\nkernels:\n  - { name: k, sources: a.loom }\n"
      "  - { name: l, sources: a.loom }\n"
      "  - { name: m, sources: a.loom, overrides: [{ when: { target: gfx950 }, skip: true }] }\n";
  CHECK(joined(project.texts(project.load(targets, 3).errors)) ==
        joined({"5:13: with the kernel \"l\" the plan has more than 3 units (counted before excludes)"}));
  CHECK(project.load(targets, 4).errors.size() == 1);
}

TEST_CASE("rows are counted as often as they are there") {
  const Tables project;
  CHECK(joined(project.texts(project.load(project.text("a\n1\n1\n"), 3).errors)) ==
        joined({"7:31: the kernel \"k\" has 4 units; a plan may have 3 (counted before excludes, and rows as "
                "often as "
                "they are there)"}));
}

TEST_CASE("twenty thousand rows of ten columns are planned in order") {
  const Tables project;
  std::string table = "target";
  for (int c = 0; c < 8; ++c) table += ",key." + std::to_string(c);
  table += ",when.m\n";
  for (int i = 0; i < 20'000; ++i) {
    table += i % 2 == 0 ? "gfx942" : "gfx90a";
    for (int c = 0; c < 8; ++c) table += "," + std::to_string(c == 3 ? i : c);
    table += "," + std::to_string(i) + "\n";
  }
  const Plan plan = project.plan(project.text(table));
  REQUIRE(plan.units.size() == 20'000);
  CHECK(plan.units[7].name == "k:key.0=0,key.1=1,key.2=2,key.3=7,key.4=4,key.5=5,key.6=6,key.7=7@gfx90a");
  CHECK(plan.units[19'999].selection == "m=19999");
}

}  // namespace
