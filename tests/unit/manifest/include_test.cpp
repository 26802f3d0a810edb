// Manifests that include manifests.
#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "manifest/manifest_files.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::Loaded;
using kc::manifest::Plan;
using kc::test::joined;
using kc::test::Lines;
using kc::test::Project;

// A kernel for `include` files, whose sources lie beside them.
std::string kernel(std::string_view name, std::string_view fields = "") {
  return "  - { name: " + std::string(name) + ", sources: a.tilebc" + std::string(fields) + " }\n";
}

Plan plan_of(const Project& project, std::string_view text) {
  Loaded loaded = project.load(text);
  for (const kc::base::Error& error : loaded.errors) MESSAGE(error.text());
  REQUIRE(loaded.plan.has_value());
  return std::move(*loaded.plan);
}

// Errors without the folder.
Lines errors_of(const Project& project, std::string_view text) {
  Lines out;
  for (const kc::base::Error& error : project.load(text).errors) {
    std::string line = error.text();
    const std::string folder = project.folder().path() + "/";
    for (size_t at = line.find(folder); at != std::string::npos; at = line.find(folder)) {
      line.erase(at, folder.size());
    }
    out.push_back(line);
  }
  return out;
}

TEST_CASE("kernels of included files come first in the order of the includes") {
  const Project project;
  const auto& folder = project.folder();
  for (const char* name : {"x/a.tilebc", "x/y/a.tilebc"}) folder.write(name, "");
  folder.write("x/one.yaml",
               "version: 1\nname: other\nrelease: 9\noutput: o.kcb\nsettings: { level: 9 }\n"
               "include: y/deep.yaml\ntargets: [sm_80]\nkernels:\n" +
                   kernel("one"));
  folder.write("x/y/deep.yaml", "version: 1\nkernels:\n" + kernel("deep"));
  folder.write("two.yaml", "version: 1\nkernels:\n" + kernel("two"));
  const Plan plan = plan_of(project,
                            "version: 1\nrelease: 3\ninclude: [x/one.yaml, two.yaml]\n"
                            "targets: [sm_90]\nkernels:\n" +
                                kernel("own"));
  Lines units;
  for (const auto& unit : plan.units) units.push_back(unit.name);
  CHECK(units == Lines{"deep@sm_80", "one@sm_80", "two@sm_90", "own@sm_90"});
  // What an included file says of the bundle is nothing to it.
  CHECK(plan.name == "kernels");
  CHECK(plan.release == 3);
  CHECK(plan.output == folder / "kernels.kcb");
  CHECK(!plan.settings.level.has_value());
  // Sources are relative to the file that names them and known from the top.
  Lines sources;
  for (const auto& source : plan.sources) sources.push_back(source.identifier);
  CHECK(sources == Lines{"x/y/a.tilebc", "x/a.tilebc", "a.tilebc"});
  CHECK(plan.kernels[0].place.text() == folder / "x/y/deep.yaml:3:13");
  // All files are inputs.
  Lines inputs;
  for (const auto& input : plan.inputs) {
    CHECK(input.digest == kc::base::sha256(kc::test::content_of(input.path)));
    CHECK(input.tuple.size == kc::test::content_of(input.path).size());
    inputs.push_back(input.path.substr(folder.path().size() + 1));
  }
  CHECK(inputs == Lines{"kernels.yaml", "x/one.yaml", "x/y/deep.yaml", "two.yaml"});
}

TEST_CASE("a manifest without kernels of its own may include some") {
  const Project project;
  project.folder().write("one.yaml", "version: 1\ntargets: [sm_90]\nkernels:\n" + kernel("one"));
  CHECK(plan_of(project, "version: 1\ninclude: one.yaml\n").units.size() == 1);
}

TEST_CASE("a file that is reached twice is read once whatever it is called") {
  const Project project;
  const auto& folder = project.folder();
  folder.write("base.yaml", "version: 1\ntargets: [sm_90]\nkernels:\n" + kernel("base"));
  folder.write("one.yaml",
               "version: 1\ninclude: [base.yaml]\nkernels:\n" + kernel("one", ", targets: [sm_90]"));
  REQUIRE(symlink("base.yaml", (folder / "link.yaml").c_str()) == 0);
  const Plan plan =
      plan_of(project, "version: 1\ninclude: [one.yaml, lib/../base.yaml, link.yaml, one.yaml]\n");
  Lines units;
  for (const auto& unit : plan.units) units.push_back(unit.name);
  CHECK(units == Lines{"base@sm_90", "one@sm_90"});
  CHECK(plan.inputs.size() == 3);
}

TEST_CASE("a cycle of includes is an error that shows it") {
  const Project project;
  const auto& folder = project.folder();
  folder.write("sub/b.yaml", "version: 1\ninclude: [c.yaml]\n");
  folder.write("sub/c.yaml", "version: 1\ninclude: [../kernels.yaml, b.yaml, c.yaml]\n");
  CHECK(joined(errors_of(project, "version: 1\ninclude: [sub/b.yaml]\n")) ==
        joined(Lines{"sub/c.yaml:2:11: this include never ends: kernels.yaml -> sub/b.yaml -> sub/c.yaml -> "
                     "kernels.yaml",
                     "sub/c.yaml:2:28: this include never ends: sub/b.yaml -> sub/c.yaml -> sub/b.yaml",
                     "sub/c.yaml:2:36: this include never ends: sub/c.yaml -> sub/c.yaml"}));
}

TEST_CASE("an include that cannot be read is an error at its place") {
  const Project project;
  const auto& folder = project.folder();
  folder.write("one.yaml", "version: 1\nkernels:\n" + kernel("one"));
  folder.write("new.yaml", "version: 2\nsettings: 9\nkernels: 9\n");
  folder.write("bad.yaml", "version: 1\nkernels: [\n");
  folder.write("empty.yaml", "");
  folder.write("sub/more.yaml", "version: 1\ninclude: [lss.yaml]\nrelease: x\n");
  folder.write("sub/less.yaml", "");
  const std::string absolute = folder / "one.yaml";
  CHECK(joined(errors_of(project,
                         "version: 1\ntargets: [sm_90]\ninclude: [on.yaml, new.yaml, bad.yaml, empty.yaml, "
                         "sub/more.yaml, lib, '" +
                             absolute + "', '']\nreleas: 3\n")) ==
        joined(Lines{"kernels.yaml:3:" + std::to_string(76 + absolute.size()) +
                         ": an item of \"include\" is empty; expected a path",
                     "kernels.yaml:4:1: unknown key \"releas\" in a manifest (did you mean \"release\"?)"}));
  CHECK(joined(errors_of(project,
                         "version: 1\ntargets: [sm_90]\ninclude: [on.yaml, new.yaml, bad.yaml, empty.yaml, "
                         "sub/more.yaml, lib, '" +
                             absolute + "']\nreleas: 3\n")) ==
        joined(Lines{
            "kernels.yaml:3:11: the manifest \"on.yaml\" does not exist (did you mean \"one.yaml\"?)",
            "kernels.yaml:3:67: the manifest \"lib\" is a directory, not a file",
            "kernels.yaml:3:72: the manifest \"one.yaml\" is an absolute path: absolute paths need "
            "`allow_absolute_paths: true` in the top manifest",
            "kernels.yaml:4:1: unknown key \"releas\" in a manifest (did you mean \"release\"?)",
            "new.yaml:1:10: manifest version 2 is newer than this version of kc reads (1) (use a newer kc)",
            "bad.yaml:3:1: not YAML: end of sequence flow not found", "empty.yaml: is empty",
            "sub/more.yaml:2:11: the manifest \"lss.yaml\" does not exist (did you mean \"less.yaml\"?)",
            "sub/more.yaml:3:10: \"release\" must be a whole number from 0 to 18446744073709551615, not "
            "\"x\""}));
  CHECK(plan_of(project,
                "version: 1\ntargets: [sm_90]\nallow_absolute_paths: true\ninclude: ['" + absolute + "']\n")
            .units.size() == 1);
}

TEST_CASE("an include is one file and no pattern") {
  const Project project;
  project.folder().write("a*.yaml", "version: 1\nkernels:\n" + kernel("one"));
  CHECK(joined(errors_of(project, "version: 1\ntargets: [sm_90]\ninclude: ['*.yaml', '@list.txt']\n")) ==
        joined(Lines{"kernels.yaml:3:11: the manifest \"*.yaml\" does not exist (an include is one file; "
                     "patterns and lists are for sources)",
                     "kernels.yaml:3:21: the manifest \"@list.txt\" does not exist (an include is one file; "
                     "patterns and lists are for sources)"}));
  CHECK(plan_of(project, "version: 1\ntargets: [sm_90]\ninclude: 'a*.yaml'\n").units.size() == 1);
}

TEST_CASE("a source that is a link to nothing is named as one") {
  const Project project;
  for (const auto& [target, name] : {std::pair("gone", "c.tilebc"), std::pair("d.tilebc", "d.tilebc")}) {
    REQUIRE(symlink(target, (project.folder() / name).c_str()) == 0);
    CHECK(joined(project.errors(kc::test::one_kernel("", name))) ==
          joined(Lines{"4:14: the source \"" + std::string(name) + "\" is a link that leads nowhere"}));
  }
}

TEST_CASE("defaults of a file come before those of its includer one by one") {
  const Project project;
  const auto& folder = project.folder();
  folder.write("lib/common.loom", "");
  folder.write("own.loom", "");
  folder.write("sub/x.loom", "module\nkey N\nkey M\n");
  folder.write("sub/a.tilebc", "");
  folder.write("sub/libs/common.loom", "");
  folder.write("sub/one.yaml",
               "version: 1\n"
               "defaults: { options: { tileiras: { opt: 1 } }, config: { N: 1 } }\n"
               "kernels:\n"
               "  - { name: tile, sources: a.tilebc }\n"
               "  - { name: loom, sources: x.loom }\n");
  folder.write("sub/two.yaml",
               "version: 1\n"
               "targets: [gfx1151]\n"
               "defaults: { libraries: libs/common.loom }\n"
               "kernels:\n"
               "  - { name: two, sources: x.loom }\n");
  const Plan plan = plan_of(project,
                            "version: 1\n"
                            "targets: [sm_90, gfx942]\n"
                            "include: [sub/one.yaml, sub/two.yaml]\n"
                            "defaults:\n"
                            "  options: { tileiras: { opt: 2, lineinfo: true }, loom: { report: summary } }\n"
                            "  libraries: [lib/common.loom, own.loom]\n"
                            "  config: { N: 7, M: 8 }\n");
  REQUIRE(plan.units.size() == 3);
  using kc::manifest::Pairs;
  CHECK(plan.units[0].name == "tile@sm_90");
  CHECK(plan.units[0].options == Pairs{{"debug", "false"}, {"lineinfo", "true"}, {"opt", "1"}});
  CHECK(plan.units[1].name == "loom@gfx942");
  CHECK(plan.units[1].options == Pairs{{"report", "summary"}});
  CHECK(plan.units[1].config == Pairs{{"M", "8"}, {"N", "1"}});
  CHECK(plan.units[2].name == "two@gfx1151");
  CHECK(plan.units[2].config == Pairs{{"M", "8"}, {"N", "7"}});
  const auto libraries = [&](size_t kernel) {
    Lines out;
    for (const uint32_t index : plan.kernels[kernel].libraries) out.push_back(plan.sources[index].identifier);
    return out;
  };
  CHECK(libraries(0).empty());
  CHECK(libraries(1) == Lines{"lib/common.loom", "own.loom"});
  CHECK(libraries(2) == Lines{"sub/libs/common.loom"});
}

TEST_CASE("a fault in defaults makes no further ones") {
  const Project project;
  project.folder().write("one.yaml",
                         "version: 1\n"
                         "targets: [sm_9x]\n"
                         "defaults:\n"
                         "  options: { tileiras: { opt: [1] } }\n"
                         "  libraries: []\n"
                         "  config: { N: [1], option.opt: 3 }\n"
                         "kernels:\n"
                         "  - { name: 'loom', sources: a.loom }\n" +
                             kernel("one"));
  CHECK(joined(errors_of(project, "version: 1\ntargets: [sm_90, gfx942]\ninclude: one.yaml\n")) ==
        joined(
            Lines{"one.yaml:2:11: target \"sm_9x\" is not the name of a GPU architecture (did you mean "
                  "\"sm_90\"?)",
                  "one.yaml:4:31: \"opt\" must be a value, not a list",
                  "one.yaml:5:14: \"libraries\" is an empty list (expected a list like [common.loom])",
                  "one.yaml:6:16: \"N\" must be a value, not a list",
                  "one.yaml:6:21: \"option.opt\" is an option, not a configuration key (what is the same for "
                  "every specialization belongs in `options`)"}));
}

TEST_CASE("absolute paths are the top manifest's to allow") {
  const Project project;
  project.folder().write(
      "one.yaml", "version: 1\nallow_absolute_paths: true\ntargets: [sm_90]\nkernels:\n" + kernel("one"));
  const Loaded loaded = project.load("version: 1\ninclude: one.yaml\n");
  CHECK(loaded.plan.has_value());
  REQUIRE(loaded.warnings.size() == 1);
  CHECK(loaded.warnings[0].text() ==
        project.folder() /
            "one.yaml:2:1: \"allow_absolute_paths\" counts in the top manifest only (it is "
            "ignored here)");
  CHECK(joined(project.errors(kc::test::one_kernel("allow_absolute_paths: yes\n"))) ==
        joined(Lines{"7:23: \"allow_absolute_paths\" must be true or false, not \"yes\""}));
}

TEST_CASE("includes are bounded in depth and in number") {
  const Project project;
  const auto& folder = project.folder();
  for (int i = 0; i < 70; ++i) {
    folder.write("d" + std::to_string(i) + ".yaml",
                 "version: 1\ninclude: d" + std::to_string(i + 1) + ".yaml\n");
  }
  CHECK(joined(errors_of(project, "version: 1\ninclude: d0.yaml\n")) ==
        joined(Lines{"d62.yaml:2:10: manifests include each other deeper than 64 levels"}));
  std::string many = "version: 1\ninclude:\n";
  for (int i = 0; i < 1'000; ++i) {
    const std::string name = "m" + std::to_string(i) + ".yaml";
    folder.write(name, "version: 1\ntargets: [sm_90]\nkernels:\n" + kernel("m" + std::to_string(i)));
    many += "  - " + name + "\n";
  }
  CHECK(joined(errors_of(project, many)) ==
        joined(Lines{"kernels.yaml:1002:5: a manifest may have 1000 files in all, and this is one more"}));
}

TEST_CASE("included files are bounded in bytes and their defaults in number") {
  const Project project;
  const auto& folder = project.folder();
  std::string large = "version: 1\ninclude:\n";
  for (int i = 0; i < 9; ++i) {
    const std::string name = "l" + std::to_string(i) + ".yaml";
    folder.write(name, std::string(8U << 20, '\x01'));  // not read far
    large += "  - " + name + "\n";
  }
  const Lines errors = errors_of(project, large);
  REQUIRE(errors.size() == 9);
  CHECK(
      errors[0] ==
      "kernels.yaml:10:5: the files of a manifest may have 67108864 bytes in all, and with \"l7.yaml\" they "
      "have more");
  std::string defaults = "version: 1\ninclude: [d0.yaml, d1.yaml, d2.yaml]\ndefaults:\n  config:\n";
  for (int i = 0; i < 100'000; ++i) defaults += "    k" + std::to_string(i) + ": v\n";
  for (int i = 0; i < 3; ++i) {
    folder.write("d" + std::to_string(i) + ".yaml",
                 "version: 1\ntargets: [sm_90]\nkernels:\n" + kernel("d" + std::to_string(i)));
  }
  CHECK(joined(errors_of(project, defaults)) ==
        joined(Lines{
            "kernels.yaml:2:29: the defaults of the files before come to more than 200000 values, counted "
            "in each file that has them"}));
}

TEST_CASE("what one thing names is an input once for each way in which it is read") {
  const Project project;
  const auto& folder = project.folder();
  folder.write("list.txt", "a.tilebc\n");
  folder.write("table.csv", "T\n1\n2\n");
  const Plan plan =
      plan_of(project,
              "version: 1\ntargets: [sm_90]\nkernels:\n"
              "  - { name: a, sources: '@list.txt' }\n"
              "  - { name: b, sources: '@lib/../list.txt' }\n"
              "  - { name: c, sources: 'k_{T}.tilebc', specializations: { table: table.csv } }\n"
              "  - { name: d, sources: 'k_{T}.tilebc', specializations: { table: ./table.csv } }\n"
              "  - { name: e, sources: 'k_1*.tilebc' }\n"
              "  - { name: f, sources: 'lib/../k_1*.tilebc' }\n");
  Lines inputs;
  for (const auto& input : plan.inputs) {
    const std::string path = input.path == folder.path() ? "." : input.path.substr(folder.path().size() + 1);
    inputs.push_back(path + (input.pattern.empty() ? "" : " " + input.pattern));
  }
  CHECK(inputs == Lines{"kernels.yaml", "list.txt", "table.csv", ". k_1*.tilebc"});
}

}  // namespace
