// Files beside the sources: libraries and what sources open themselves.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "manifest/plan.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::Plan;
using kc::test::joined;
using kc::test::Lines;
using kc::test::one_kernel;
using kc::test::Project;

Lines names(const Plan& plan, const std::vector<uint32_t>& files) {
  Lines out;
  for (const uint32_t index : files) out.push_back(plan.sources.at(index).identifier);
  return out;
}

TEST_CASE("libraries stand behind the sources in the order written and a file is there once") {
  const Project project;
  const Plan plan = project.plan(
      "version: 1\ntargets: [gfx942]\nkernels:\n"
      "  - { name: k, sources: a.loom, libraries: [lib/c.loom, b.loom] }\n"
      "  - { name: l, sources: lib/../b.loom, libraries: lib/*.loom }\n");
  CHECK(joined(names(plan, plan.kernels[0].libraries)) == joined({"lib/c.loom", "b.loom"}));
  CHECK(joined(names(plan, plan.units[0].sources)) == joined({"a.loom"}));
  CHECK(joined(names(plan, plan.kernels[1].libraries)) == joined({"lib/c.loom"}));
  CHECK(plan.sources.size() == 3);
}

TEST_CASE("a kernel's own list of libraries replaces that of its files") {
  const Project project;
  const Plan plan = project.plan(
      "version: 1\ntargets: [gfx942, sm_90]\ndefaults: { libraries: [b.loom] }\nkernels:\n"
      "  - { name: k, sources: a.loom }\n"
      "  - { name: l, sources: a.loom, libraries: lib/c.loom }\n"
      "  - { name: m, sources: a.tilebc }\n");
  CHECK(joined(names(plan, plan.kernels[0].libraries)) == joined({"b.loom"}));
  CHECK(joined(names(plan, plan.kernels[1].libraries)) == joined({"lib/c.loom"}));
  CHECK(plan.kernels[2].libraries.empty());
}

TEST_CASE("libraries of a file are relative to it and its includer's hold where it has none") {
  const Project project;
  project.folder().write(
      "lib/inner.yaml",
      "version: 1\ndefaults: { libraries: c.loom }\nkernels: [{ name: in, sources: ../a.loom }]\n");
  project.folder().write("lib/bare.yaml", "version: 1\nkernels: [{ name: bare, sources: ../a.loom }]\n");
  const Plan plan = project.plan(
      "version: 1\ninclude: [lib/inner.yaml, lib/bare.yaml]\ntargets: [gfx942]\n"
      "defaults: { libraries: [b.loom] }\nkernels: [{ name: out, sources: a.loom }]\n");
  CHECK(joined(names(plan, plan.kernels[0].libraries)) == joined({"lib/c.loom"}));
  CHECK(joined(names(plan, plan.kernels[1].libraries)) == joined({"b.loom"}));
  CHECK(joined(names(plan, plan.kernels[2].libraries)) == joined({"b.loom"}));
}

TEST_CASE("libraries are checked as sources are") {
  const Project project;
  const auto errors = [&](const std::string& libraries) {
    return joined(project.errors(one_kernel("    libraries: " + libraries + "\n", "a.loom", "gfx942")));
  };
  CHECK(errors("lib/d.loom") ==
        joined({"7:16: the library \"lib/d.loom\" does not exist (did you mean \"c.loom\"?)"}));
  CHECK(errors("[b.loom, a.tilebc]") ==
        joined({"7:25: \"a.tilebc\" is no library for loom (its libraries end in .loom and .loombc)"}));
  CHECK(errors("[b.loom, ./a.loom]") == joined({"7:25: \"a.loom\" is a source of this kernel and a library "
                                                "at once (a source is linked whole: leave "
                                                "the library out)"}));
  CHECK(errors("'{N}.loom'") ==
        joined({"7:16: \"{N}\" stands for nothing in \"libraries\": these files are the same for all "
                "specializations"}));
}

TEST_CASE("default libraries at fault are reported once for all kernels") {
  const Project project;
  CHECK(joined(project.errors("version: 1\ntargets: [gfx942]\ndefaults: { libraries: [x.loom] }\nkernels:\n"
                              "  - { name: k, sources: a.loom, config: { x: 1 } }\n"
                              "  - { name: l, sources: b.loom }\n")) ==
        joined({"3:25: the library \"x.loom\" does not exist (did you mean \"a.loom\"?)"}));
  CHECK(joined(project.errors("version: 1\ntargets: [gfx942]\ndefaults: { libraries: [b.loom] }\nkernels:\n"
                              "  - { name: k, sources: a.loom }\n  - { name: l, sources: b.loom }\n")) ==
        joined({"6:25: \"b.loom\" is a source of this kernel and by \"defaults\" a library at once (give the "
                "kernel "
                "its own \"libraries\")"}));
}

TEST_CASE("a source that follows from a value is no library either") {
  const Project project;
  CHECK(joined(project.errors(one_kernel("    libraries: b.loom\n"
                                         "    specializations: { matrix: { N: [a, b], M: [1, 2] } }\n",
                                         "'{N}.loom'", "gfx942"))) ==
        joined({"7:16: \"b.loom\" is a source of this kernel and a library at once (a source is linked "
                "whole: leave "
                "the library out)"}));
}

TEST_CASE("libraries and depends are refused where they could change nothing") {
  const Project project;
  CHECK(joined(project.errors(one_kernel("    libraries: [b.loom]\n    depends: [b.loom]\n"))) ==
        joined({"7:17: tileiras links no libraries: \"libraries\" could change nothing",
                "8:15: sources for tileiras open no files: \"depends\" could change nothing"}));
}

TEST_CASE("files that sources open themselves are in the plan") {
  const Project project;
  project.folder().write("k.py", "");
  project.folder().write("tiles.json", "");
  const auto text = [](const std::string& depends) {
    return one_kernel("    parameters: { A: { dtype: float16, ndim: 1 } }\n    depends: " + depends + "\n",
                      "k.py");
  };
  const Plan plan = project.plan(text("[tiles.json, a.loom]"));
  CHECK(joined(names(plan, plan.kernels[0].depends)) == joined({"tiles.json", "a.loom"}));
  CHECK(joined(project.errors(text("[tile.json, '{N}.json']"))) ==
        joined({"8:15: the file \"tile.json\" does not exist (did you mean \"tiles.json\"?)",
                "8:26: \"{N}\" stands for nothing in \"depends\": these files are the same for all "
                "specializations"}));
}

}  // namespace
