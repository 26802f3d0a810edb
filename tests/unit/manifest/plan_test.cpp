#include "manifest/plan.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/digest.h"
#include "manifest/names.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::Loaded;
using kc::manifest::Pairs;
using kc::manifest::Plan;
using kc::manifest::Unit;
using kc::test::joined;
using kc::test::Lines;
using kc::test::one_kernel;
using kc::test::Project;

std::string repeat(std::string_view piece, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += piece;
  return out;
}

TEST_CASE("every field of the core reaches the plan") {
  const Project project;
  const Plan plan = project.plan(R"(version: 1
name: demo
release: 12
output: ./build//demo.kcb
targets: [sm_90]
settings: { level: 19, timeout: 60s, frame_size: 1M, keep_going: 3 }
x-own: { anything: [goes] }
kernels:
  - name: first
    sources: [lib/../a.loom, lib/c.loom]
    entry: scale_i32
    symbol: scale
    backend: loom
    targets: ['gfx942:xnack-']
    config: { tuner.scale: 3, model.width: 064 }
    options: { report: summary }
    timeout: 5m
    unsupported: skip
    limits: { registers: 96, local_memory: 0, spills: 2, shared_memory: 64KiB, code: 1MiB }
    metadata: { owner: attention, area: '1.0' }
    specializations:
      matrix: { tuner.scale: [4], unroll: [1e3] }
  - name: second
    sources: a.tilebc
)");
  CHECK(plan.name == "demo");
  CHECK(plan.release == 12);
  CHECK(plan.folder == project.folder().path());
  CHECK(plan.output == project.folder() / "build/demo.kcb");
  CHECK(plan.settings.level == 19);
  CHECK(plan.settings.timeout == std::chrono::seconds(60));
  CHECK(plan.settings.frame_size == 1U << 20);
  CHECK(plan.settings.keep_going == 3);
  REQUIRE(plan.kernels.size() == 2);
  const kc::manifest::Kernel& first = plan.kernels[0];
  CHECK(first.name == "first");
  CHECK(first.backend == "loom");
  CHECK(first.place.text() == project.path() + ":9:11");
  CHECK(first.metadata == Pairs{{"area", "1.0"}, {"owner", "attention"}});
  CHECK(first.skip_unsupported);
  CHECK(!plan.kernels[1].skip_unsupported);
  REQUIRE(plan.units.size() == 2);
  const Unit& unit = plan.units[0];
  CHECK(unit.timeout == std::chrono::minutes(5));
  const kc::manifest::Limits& limits = plan.limits.at(unit.limits);
  CHECK(limits.registers == 96);
  CHECK(limits.local_memory == 0);
  CHECK(limits.spills == 2);
  CHECK(limits.shared_memory == 64U << 10);
  CHECK(limits.code == 1U << 20);
  CHECK(plan.units[1].timeout == std::chrono::seconds(60));
  CHECK(!plan.limits.at(plan.units[1].limits).registers.has_value());
  CHECK(unit.name == "first:tuner.scale=4,unroll=1e3@gfx942:xnack-");
  CHECK(unit.kernel == 0);
  CHECK(unit.target.xnack == kc::target::Feature::kOff);
  CHECK(unit.specialization == Pairs{{"tuner.scale", "4"}, {"unroll", "1e3"}});
  CHECK(unit.specialization_text == "tuner.scale=4,unroll=1e3");
  CHECK(unit.config == Pairs{{"model.width", "064"}, {"tuner.scale", "4"}, {"unroll", "1e3"}});
  CHECK(unit.options == Pairs{{"report", "summary"}});
  CHECK(unit.entry == "scale_i32");
  CHECK(unit.symbol == "scale");
  CHECK(!unit.is_default);
  REQUIRE(unit.sources.size() == 2);
  CHECK(plan.sources[unit.sources[0]].identifier == "a.loom");
  CHECK(plan.sources[unit.sources[0]].path == project.folder() / "a.loom");
  CHECK(plan.sources[unit.sources[0]].place.text() == project.path() + ":10:15");
  CHECK(plan.sources[unit.sources[1]].identifier == "lib/c.loom");
  CHECK(plan.units[1].name == "second@sm_90");
  CHECK(plan.units[1].entry == "second");
  CHECK(plan.units[1].is_default);
  CHECK(plan.units[1].options == Pairs{{"debug", "false"}, {"lineinfo", "false"}, {"opt", "3"}});
  REQUIRE(plan.inputs.size() == 1);
  CHECK(plan.inputs[0].path == project.path());
  CHECK(plan.inputs[0].digest == kc::base::sha256(kc::test::content_of(project.path())));
  CHECK(plan.inputs[0].tuple.size == kc::test::content_of(project.path()).size());
}

TEST_CASE("what is not written has its default") {
  const Project project;
  const Plan plan = project.plan(one_kernel(""));
  CHECK(plan.name == "kernels");
  CHECK(plan.release == 0);
  CHECK(plan.output == project.folder() / "kernels.kcb");
  CHECK(!plan.settings.level.has_value());
  CHECK(plan.units[0].timeout == kc::manifest::kDefaultTimeout);
  CHECK(plan.units[0].limits == 0);
  CHECK(plan.units[0].selection.empty());
  CHECK(plan.kernels[0].libraries.empty());
  CHECK(plan.units[0].config.empty());
  CHECK(plan.units[0].symbol.empty());
  project.folder().write("my kernels.yaml", one_kernel(""));
  CHECK(
      project.texts(kc::manifest::load(project.folder() / "my kernels.yaml", kc::test::backends()).errors)[0]
          .ends_with("the file's name gives no name for the bundle: \"my kernels\" (write `name:`)"));
}

TEST_CASE("a manifest in the working directory names its files without a folder") {
  const Project project;
  project.folder().write("kernels.yaml", one_kernel(""));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(project.folder().path());
  const Loaded loaded = kc::manifest::load("kernels.yaml", kc::test::backends());
  std::filesystem::current_path(before);
  REQUIRE(loaded.plan.has_value());
  CHECK(loaded.plan->folder == ".");
  CHECK(loaded.plan->output == "kernels.kcb");
  CHECK(loaded.plan->sources[0].path == "a.tilebc");
}

TEST_CASE("sources above the manifest keep their dots and files are shared between units") {
  const Project project;
  project.folder().write("sub/kernels.yaml",
                         "version: 1\ntargets: [sm_90]\nkernels:\n  - { name: a, sources: ../a.tilebc }\n"
                         "  - { name: b, sources: ./x/..//../a.tilebc }\n");
  const Loaded loaded = kc::manifest::load(project.folder() / "sub/kernels.yaml", kc::test::backends());
  REQUIRE(loaded.plan.has_value());
  REQUIRE(loaded.plan->sources.size() == 1);
  CHECK(loaded.plan->sources[0].identifier == "../a.tilebc");
  CHECK(loaded.plan->units[1].sources == std::vector<uint32_t>{0});
}

TEST_CASE(
    "units come in the order of kernels then matrix with the last key fastest then includes then targets") {
  const Project project;
  CHECK(joined(project.units("version: 1\ntargets: [gfx942, gfx1100]\nkernels:\n"
                             "  - name: z\n    sources: a.loom\n    specializations:\n"
                             "      include: [{ b: 9, a: 8 }, { c: 1 }]\n"
                             "      matrix: { b: [2, 1], a: [1, 2] }\n"
                             "  - name: a\n    sources: b.loom\n    targets: [gfx90a]\n")) ==
        joined(Lines{"z:a=1,b=2@gfx942", "z:a=1,b=2@gfx1100", "z:a=2,b=2@gfx942", "z:a=2,b=2@gfx1100",
                     "z:a=1,b=1@gfx942", "z:a=1,b=1@gfx1100", "z:a=2,b=1@gfx942", "z:a=2,b=1@gfx1100",
                     "z:a=8,b=9@gfx942", "z:a=8,b=9@gfx1100", "z:c=1@gfx942", "z:c=1@gfx1100", "a@gfx90a"}));
}

TEST_CASE("excludes leave out every point that has their values and includes come back") {
  const Project project;
  const auto units = [&](const std::string& text) {
    return project.units(one_kernel("    specializations: " + text + "\n", "a.loom", "gfx942"));
  };
  CHECK(joined(units("{ matrix: { a: [1, 2], b: [1, 2] }, exclude: [{ a: 1 }] }")) ==
        joined(Lines{"k:a=2,b=1@gfx942", "k:a=2,b=2@gfx942"}));
  CHECK(joined(units("{ matrix: { a: [1, 2], b: [1, 2] }, exclude: [{ b: 2, a: 1 }, { a: 2, b: 1 }] }")) ==
        joined(Lines{"k:a=1,b=1@gfx942", "k:a=2,b=2@gfx942"}));
  // An include that an exclude took out of the matrix is asked for.
  CHECK(joined(units("{ matrix: { a: [1, 2] }, exclude: [{ a: 1 }], include: [{ a: 1 }] }")) ==
        joined(Lines{"k:a=2@gfx942", "k:a=1@gfx942"}));
}

TEST_CASE("the same specialization twice is one unit") {
  const Project project;
  const auto units = [&](const std::string& text) {
    return project.units(one_kernel("    specializations: " + text + "\n", "a.loom", "gfx942"));
  };
  CHECK(joined(units(
            "{ matrix: { a: [1], b: [2] }, include: [{ b: 2, a: 1 }, { a: 1 }, { a: 1 }, { a: '1' }] }")) ==
        joined(Lines{"k:a=1,b=2@gfx942", "k:a=1@gfx942"}));
  CHECK(joined(units("{ matrix: { a: [1] }, include: [{ a: 01 }, { a: 1.0 }] }")) ==
        joined(Lines{"k:a=1@gfx942", "k:a=01@gfx942", "k:a=1.0@gfx942"}));
}

TEST_CASE("braces in sources and entry take the value of the specialization before that of config") {
  const Project project;
  const Plan plan = project.plan(
      "version: 1\ntargets: [sm_90]\nkernels:\n  - name: k\n    sources: k_{N}.tilebc\n"
      "    entry: 'f{N}_{T}{T}'\n    config: { T: f32, N: 7 }\n"
      "    specializations: { include: [{ N: 1 }, { N: 2, T: bf16 }] }\n");
  REQUIRE(plan.units.size() == 2);
  CHECK(plan.units[0].name == "k:N=1@sm_90");
  CHECK(plan.units[0].entry == "f1_f32f32");
  CHECK(plan.sources[plan.units[0].sources[0]].identifier == "k_1.tilebc");
  CHECK(plan.units[0].config.empty());
  CHECK(plan.units[1].name == "k:N=2,T=bf16@sm_90");
  CHECK(plan.units[1].entry == "f2_bf16bf16");
  CHECK(plan.sources[plan.units[1].sources[0]].identifier == "k_2.tilebc");
}

TEST_CASE("the default specialization is marked on every target") {
  const Project project;
  const Plan plan = project.plan(

      one_kernel("    specializations: { matrix: { a: [1, 2], b: [1, 2] }, default: { b: 2, a: 1 } }\n",
                 "a.loom", "gfx942, gfx90a"));
  for (const Unit& unit : plan.units) CHECK(unit.is_default == (unit.specialization_text == "a=1,b=2"));
  CHECK(plan.units.size() == 8);
}

TEST_CASE("canonical text escapes every byte outside its alphabet") {
  CHECK(kc::manifest::canonical_configuration({}).empty());
  CHECK(kc::manifest::canonical_configuration({{"a", "A-z_0.9+"}, {"b", ""}}) == "a=A-z_0.9+,b=");
  CHECK(kc::manifest::canonical_configuration({{"a", "x,y=z@%/ \xc3\xa9\n"}}) ==
        "a=x%2Cy%3Dz%40%25%2F%20%C3%A9%0A");
  CHECK(kc::manifest::canonical_configuration({{"a", std::string("\0\xff", 2)}}) == "a=%00%FF");
  CHECK(kc::manifest::unit_name("k", "", "sm_90") == "k@sm_90");
  CHECK(kc::manifest::unit_name("k", "a=1", "sm_90") == "k:a=1@sm_90");
}

TEST_CASE("names follow their grammars") {
  using kc::manifest::is_configuration_key;
  using kc::manifest::is_kernel_name;
  using kc::manifest::is_symbol;
  for (const char* name : {"a", "_", "9", "a.b-c_D9"}) CHECK(is_kernel_name(name));
  for (const char* name : {"", ".a", "-a", "a b", "a:b", "a@b", "a{b}", "\xc3\xa9"})
    CHECK(!is_kernel_name(name));
  CHECK(is_kernel_name(std::string(128, 'a')));
  CHECK(!is_kernel_name(std::string(129, 'a')));
  for (const char* key : {"a", "_", "a.b_C9"}) CHECK(is_configuration_key(key));
  for (const char* key : {"", "9a", ".a", "a-b", "a b"}) CHECK(!is_configuration_key(key));
  CHECK(is_symbol("_Z3fooIiEvPT_$<>"));
  CHECK(is_symbol(std::string(1024, 'a')));
  for (const char* symbol : {"", "a b", "a\n", "\x7f"}) CHECK(!is_symbol(symbol));
  CHECK(!is_symbol(std::string(1025, 'a')));
}

TEST_CASE("merged maps give what the kernel itself does not say") {
  const Project project;
  const Plan plan = project.plan(R"(version: 1
targets: [sm_90]
x-slow: &slow { timeout: 10m, options: { opt: 0 } }
x-base: &base { <<: *slow, timeout: 7m }
kernels:
  - { name: a, sources: a.tilebc, <<: *base }
  - { <<: [{ timeout: 1s }, *slow], name: b, sources: b.tilebc, options: { opt: 2 } }
)");
  CHECK(plan.units[0].timeout == std::chrono::minutes(7));
  CHECK(plan.units[0].options == Pairs{{"debug", "false"}, {"lineinfo", "false"}, {"opt", "0"}});
  CHECK(plan.units[1].timeout == std::chrono::seconds(1));
  CHECK(plan.units[1].options == Pairs{{"debug", "false"}, {"lineinfo", "false"}, {"opt", "2"}});
}

TEST_CASE("a billion units are refused by counting") {
  const Project project;
  std::string values;
  for (int i = 0; i < 1000; ++i) values += std::to_string(i) + ",";
  const std::string axis = "[" + values + "]";
  CHECK(
      project.errors(one_kernel(
          "    specializations: { matrix: { a: " + axis + ", b: " + axis + ", c: " + axis + " } }\n",
          "a.loom", "gfx942")) ==
      Lines{
          "7:24: the kernel \"k\" has 1000000000 units; a plan may have 1000000 (counted before excludes)"});
  // Far beyond 64 bits: 10 values in each of 100 keys.
  std::string keys;
  for (int i = 0; i < 100; ++i) keys += "k" + std::to_string(i) + ": [0,1,2,3,4,5,6,7,8,9], ";
  const Lines errors =
      project.errors(one_kernel("    specializations: { matrix: { " + keys + " } }\n", "a.loom", "gfx942"));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].starts_with("7:24: the kernel \"k\" has more than "));
}

TEST_CASE("units are counted over all kernels and targets") {
  const Project project;
  std::string values;
  for (int i = 0; i < 600; ++i) values += std::to_string(i) + ",";
  const std::string matrix =
      "specializations: { matrix: { a: [" + values + "], b: [" + values + "] }, include: [{ c: 1 }] }";
  const std::string text =
      "version: 1\ntargets: [gfx942, gfx90a]\nkernels:\n  - { name: k, sources: a.loom, " + matrix +
      " }\n  - { name: l, sources: a.loom, " + matrix + " }\n";
  CHECK(joined(project.errors(text)) ==
        joined(Lines{"5:52: with the kernel \"l\" the plan has more than 1000000 units (counted "
                     "before excludes)"}));
}

TEST_CASE("a caller may allow fewer units than a plan may have") {
  const Project project;
  project.folder().write(
      "kernels.yaml",
      one_kernel("    specializations: { matrix: { a: [1, 2, 3], b: [1, 2] } }\n", "a.loom", "gfx942"));
  CHECK(kc::manifest::load(project.path(), kc::test::backends(), 6).errors.empty());
  const Loaded loaded = kc::manifest::load(project.path(), kc::test::backends(), 5);
  REQUIRE(loaded.errors.size() == 1);
  CHECK(loaded.errors[0].message == "the kernel \"k\" has 6 units; a plan may have 5");
}

TEST_CASE("a plan that would take gigabytes is refused by counting") {
  const Project project;
  std::string config;
  for (int i = 0; i < 2000; ++i) config += "c" + std::to_string(i) + ": " + std::string(1000, 'v') + ", ";
  std::string values;
  for (int i = 0; i < 100; ++i) values += std::to_string(i) + ",";
  CHECK(joined(project.errors(one_kernel("    config: { " + config +
                                             " }\n    specializations: { matrix: { a: [" + values +
                                             "], b: [" + values + "] } }\n",
                                         "a.loom", "gfx942"))) ==
        joined(Lines{
            "8:24: with the kernel \"k\" the plan would take more than 1.9 GiB of memory (fewer units, or "
            "fewer and "
            "shorter values in each)"}));
}

TEST_CASE("excludes that would take minutes to apply are refused by counting") {
  const Project project;
  std::string values;
  for (int i = 0; i < 1000; ++i) values += std::to_string(i) + ",";
  std::string excludes;
  for (int i = 0; i < 1000; ++i) excludes += "{ a: " + std::to_string(i) + ", b: 1 },";
  CHECK(joined(project.errors(one_kernel("    specializations: { matrix: { a: [" + values + "], b: [" +
                                             values + "] }, exclude: [" + excludes + "] }\n",
                                         "a.loom", "gfx942"))) ==
        joined(Lines{
            "7:24: with the kernel \"k\" the excludes must be compared with more than 200000000 points of "
            "matrices "
            "(leave values out of the matrix instead)"}));
}

TEST_CASE("ten thousand units are planned in order") {
  const Project project;
  std::string values;
  for (int i = 0; i < 100; ++i) values += std::to_string(i) + ",";
  const Plan plan = project.plan(one_kernel(
      "    specializations: { matrix: { a: [" + values + "], b: [" + values + "] } }\n", "a.loom", "gfx942"));
  REQUIRE(plan.units.size() == 10'000);
  CHECK(plan.units[101].name == "k:a=1,b=1@gfx942");
  CHECK(plan.units[9'999].name == "k:a=99,b=99@gfx942");
  CHECK(plan.sources.size() == 1);
}

TEST_CASE("a manifest cut off at any byte gives a plan or errors with places") {
  const Project project;
  const std::string whole = R"(version: 1
name: "demo"
output: 'build/demo.kcb'
targets: [sm_90, gfx942]
settings: { level: 3, timeout: 60s }
x-b: &b { timeout: 1m, metadata: { a: b } }
kernels:
  - name: k
    <<: *b
    sources: ["k_{N}.tilebc"]
    entry: k{N}
    specializations:
      matrix: { N: [1, 2] }
      exclude: [{ N: 2 }]
      include:
        - { N: 2 }
      default: { N: 1 }
    options: { opt: 2 }
    limits: { registers: 64, code: 1MiB }
  - name: l
    sources: a.loom
    config:
      x: |
        text
)";
  REQUIRE(joined(project.errors(whole)) == "");
  for (size_t size = 0; size <= whole.size(); ++size) {
    const Loaded loaded = project.load(whole.substr(0, size));
    CAPTURE(size);
    CHECK(loaded.plan.has_value() == loaded.errors.empty());
    for (const kc::base::Error& error : loaded.errors) CHECK(error.place.file == project.path());
  }
}

TEST_CASE("a manifest with any byte replaced gives a plan or errors") {
  const Project project;
  const std::string whole =
      one_kernel("    specializations: { matrix: { N: [1] }, exclude: [{ N: 1 }] }\n", "k_{N}.tilebc");
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char c : {'\0', '\x04', '\n', ' ', '[', '}', '"', '&', '*', '%', '\xff'}) {
      std::string text = whole;
      text[at] = c;
      const Loaded loaded = project.load(text);
      CHECK(loaded.plan.has_value() == loaded.errors.empty());
    }
  }
}

TEST_CASE("half a million faults are counted and the first ten thousand kept") {
  const Project project;
  const Lines errors = project.errors("version: 1\nkernels: [" + repeat("1,", 20'000) + "]\n");
  REQUIRE(errors.size() == 10'001);
  CHECK(errors[0] == "2:11: an item of \"kernels\" must be a map, not a value");
  CHECK(errors.back() == "10000 more errors are not listed");
}

}  // namespace
