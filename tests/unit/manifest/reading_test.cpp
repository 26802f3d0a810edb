// Fields of a manifest, each read and checked on its own: what the document alone decides.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "config/yaml_reader.h"
#include "manifest/draft.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::Faults;
using kc::manifest::KernelDraft;
using kc::manifest::ManifestDraft;
using kc::manifest::Pairs;
using kc::test::joined;
using kc::test::Lines;
using kc::test::Project;

struct Read {
  ManifestDraft draft;
  Lines errors;
};

Read read(const std::string& text) {
  Faults faults("m");
  kc::config::YamlRead yaml = kc::config::read_yaml("m", text);
  faults.append(std::move(yaml.errors));
  REQUIRE(yaml.document.has_value());
  Read out;
  out.draft = kc::manifest::read_manifest(yaml.document->root(), faults);
  for (const kc::base::Error& error : faults.take_errors()) {
    std::string line = error.text();
    out.errors.push_back(line.substr(2));  // without `m:`
  }
  return out;
}

// Errors of a manifest whose line 2 is `field`.
std::string top(const std::string& field) {
  return joined(read("version: 1\n" + field + "\nkernels: [{ name: k, sources: a.tilebc }]\n").errors);
}

// A manifest of one kernel whose line 5 is `field`.
std::string with(const std::string& field, const std::string& name = "k") {
  return "version: 1\nkernels:\n  - name: '" + name + "'\n    sources: a.tilebc\n    " + field + "\n";
}
std::string errors(const std::string& field, const std::string& name = "k") {
  return joined(read(with(field, name)).errors);
}
KernelDraft kernel(const std::string& field, const std::string& name = "k") {
  Read out = read(with(field, name));
  CHECK(joined(out.errors) == "");
  REQUIRE(out.draft.kernels);
  return std::move(out.draft.kernels->at(0));
}

Lines texts(const std::vector<kc::manifest::Text>& list) {
  Lines out;
  for (const auto& text : list) out.push_back(text.text);
  return out;
}

Lines pairs(const std::vector<kc::manifest::NamedText>& list) {
  Lines out;
  for (const auto& pair : list) out.push_back(pair.key.text + "=" + pair.value.text);
  return out;
}

TEST_CASE("includes are a path or a list of paths") {
  CHECK(texts(*read("version: 1\ninclude: a.yaml\n").draft.include) == Lines{"a.yaml"});
  CHECK(texts(*read("version: 1\ninclude: [a.yaml, b/c.yaml]\n").draft.include) ==
        Lines{"a.yaml", "b/c.yaml"});
  CHECK(top("include: []") ==
        joined({"2:10: \"include\" is an empty list (expected a list like [attention.yaml])"}));
  CHECK(top("include: {a: b}") ==
        joined({"2:10: \"include\" must be a list like [attention.yaml], not a map"}));
  CHECK(top("include:") == joined({"2:1: \"include\" has no value (expected a list like [attention.yaml])"}));
  CHECK(top("include: [a, '', [b]]") == joined({"2:14: an item of \"include\" is empty; expected a path",
                                                "2:18: an item of \"include\" must be a value, not a list"}));
}

TEST_CASE("absolute paths are allowed by a boolean") {
  CHECK(read("version: 1\nallow_absolute_paths: true\n").draft.allow_absolute_paths);
  CHECK(!read("version: 1\nallow_absolute_paths: false\n").draft.allow_absolute_paths);
  CHECK(top("allow_absolute_paths: True") ==
        joined({"2:23: \"allow_absolute_paths\" must be true or false, not \"True\""}));
  CHECK(top("allow_absolute_paths: [true]") ==
        joined({"2:23: \"allow_absolute_paths\" must be true or false, not a list"}));
}

TEST_CASE("defaults hold options by backend and libraries and configuration") {
  const Read out = read(
      "version: 1\ndefaults:\n  options: { tileiras: { opt: 3, lineinfo: false }, loom: {} }\n"
      "  libraries: [a.loom, '*.loom', '@l.txt']\n  config: { model.width: 5120 }\nkernels: [{name: k, "
      "sources: a}]\n");
  CHECK(out.errors.empty());
  REQUIRE(out.draft.defaults);
  REQUIRE(out.draft.defaults->options.size() == 2);
  CHECK(out.draft.defaults->options[0].backend.text == "tileiras");
  CHECK(pairs(out.draft.defaults->options[0].options) == Lines{"opt=3", "lineinfo=false"});
  CHECK(texts(*out.draft.defaults->libraries) == Lines{"a.loom", "*.loom", "@l.txt"});
  CHECK(pairs(out.draft.defaults->config) == Lines{"model.width=5120"});
  CHECK(top("defaults: 3") == joined({"2:11: \"defaults\" must be a map, not a value"}));
  CHECK(top("defaults: { option: {} }") ==
        joined({"2:13: unknown key \"option\" in defaults (did you mean \"options\"?)"}));
  CHECK(
      top("defaults: { options: { tileiras: 3, loom: { report: [x] } }, libraries: {}, config: {} }") ==
      joined({"2:34: \"tileiras\" must be a map, not a value", "2:53: \"report\" must be a value, not a list",
              "2:73: \"libraries\" must be a path or a list of paths, not a map",
              "2:85: \"config\" is an empty map (expected { key: value, ... })"}));
}

TEST_CASE("options do not belong in a configuration") {
  const std::string hint = " (what is the same for every specialization belongs in `options`)";
  CHECK(errors("config: { option.opt: 3, a: 1 }") ==
        joined({"5:15: \"option.opt\" is an option, not a configuration key" + hint}));
  CHECK(top("defaults: { config: { option.: 3 } }") ==
        joined({"2:23: \"option.\" is an option, not a configuration key" + hint}));
}

TEST_CASE("paths may be patterns and lists and are right on their own") {
  const auto draft = kernel("libraries: ['@q/l.txt', 'a/**/[bc]?.loom', 'k_{T}.loom', '/abs.loom', './@x']");
  CHECK(draft.libraries->size() == 5);
  CHECK(texts(*kernel("depends: tiles.json").depends) == Lines{"tiles.json"});
  CHECK(errors("depends: []") ==
        joined({"5:14: \"depends\" is an empty list (expected a list like [tiles.json])"}));
  CHECK(errors("libraries: ['', '@', '@*.txt', '@{T}.txt', '{T}*', '*/../a', 'a*/', [a]]") ==
        joined({"5:17: an item of \"libraries\" is empty; expected a path",
                "5:21: an item of \"libraries\" is \"@\" without the path of a list",
                "5:26: the path of a list is taken as it stands, without patterns and {key}: \"@*.txt\"",
                "5:36: the path of a list is taken as it stands, without patterns and {key}: \"@{T}.txt\"",
                "5:48: the pattern \"{T}*\" holds a brace: patterns and {key} do not mix",
                "5:56: the pattern \"*/../a\" has \"..\" behind its first wildcard",
                "5:66: the pattern \"a*/\" ends in a slash, and only files can be named",
                "5:73: an item of \"libraries\" must be a value, not a list"}));
}

TEST_CASE("entries and the name of their kernel belong together") {
  const KernelDraft listed = kernel("entries: [decode, '_Z4fillPf<int>']", "qwen.{entry}");
  CHECK(texts(listed.entries->names) == Lines{"decode", "_Z4fillPf<int>"});
  CHECK(!listed.entries->exported);
  CHECK(kernel("entries: exported", "{entry}").entries->exported);
  CHECK(
      errors("entries: [a]") ==
      joined(
          {"3:11: the name \"k\" holds no {entry}: the kernels of its \"entries\" would all be called so"}));
  CHECK(errors("entry: a", "k{entry}") ==
        joined({"3:11: the name \"k{entry}\" holds {entry}, and the kernel has no \"entries\""}));
  const std::string rule =
      " cannot be the name of a kernel (letters, digits, _, . and -, at most 128 bytes, not . or - first)";
  CHECK(errors("entry: a", "k{T}") == joined({"3:11: \"k{T}\"" + rule}));
  CHECK(errors("entries: [a]", "{entry} x") == joined({"3:11: \"{entry} x\"" + rule}));
  CHECK(errors("entries: [a]", "-{entry}") == joined({"3:11: \"-{entry}\"" + rule}));
  CHECK(errors("entries: [a]", "{entry}.{x}") == joined({"3:11: \"{entry}.{x}\"" + rule}));
  CHECK(errors("entries: [a]", "{entry}" + std::string(127, 'x')) == "");
  CHECK(errors("entries: [a]", "{entry}" + std::string(128, 'x')).find("cannot be the name") !=
        std::string::npos);
  CHECK(errors("entries: [a, b, a, 'c d', '{x}', ~]", "{entry}") ==
        joined({"5:21: the entry \"a\" is listed twice, first at line 5, column 15",
                "5:24: \"c d\" cannot be an entry (1 to 1024 bytes without blanks and braces)",
                "5:31: \"{x}\" cannot be an entry (1 to 1024 bytes without blanks and braces)",
                "5:38: an item of \"entries\" has no value (expected a value)"}));
  CHECK(
      errors("entries: all", "{entry}") ==
      joined({"5:14: \"entries\" must be a list like [decode, prefill] or the word exported, not \"all\""}));
  CHECK(errors("entries: {}", "{entry}") ==
        joined({"5:14: \"entries\" must be a list like [decode, prefill], or the word exported, not a map"}));
  CHECK(errors("entries: []", "{entry}") ==
        joined({"5:14: \"entries\" is an empty list (expected a list like [decode, prefill], or the word "
                "exported)"}));
  CHECK(errors("entries: [a]\n    entry: b", "{entry}") ==
        joined({"6:12: \"entry\" beside \"entries\": each of those is the entry of a kernel"}));
}

TEST_CASE("overrides say when they hold and what they change") {
  const KernelDraft draft = kernel(
      "overrides: [{ when: { target: gfx942, TM: 64, option.opt: 3 }, options: { report: none }, timeout: 5m,"
      " limits: { registers: 96, spills: 0 } }, { when: { TM: 64 }, skip: true }]");
  REQUIRE(draft.overrides->size() == 2);
  const auto& first = draft.overrides->at(0);
  CHECK(pairs(first.when) == Lines{"target=gfx942", "TM=64", "option.opt=3"});
  CHECK(pairs(*first.options) == Lines{"report=none"});
  CHECK(first.options_place.column == 68);
  CHECK(*first.timeout == std::chrono::minutes(5));
  CHECK(first.limits->limits.registers == 96);
  CHECK(!first.skip);
  CHECK(draft.overrides->at(1).skip);
  CHECK(draft.overrides->at(1).place.line == 5);
  CHECK(errors("overrides: [{ skip: true }, { when: {}, skip: true }, { when: { a: [1], option.: 2 }, skip: "
               "1 }]") ==
        joined({"5:17: an override without \"when\" (say for which units it is: { when: { target: gfx942 }, "
                "... })",
                "5:41: \"when\" is an empty map (expected { key: value, ... })",
                "5:72: \"a\" must be a value, not a list",
                "5:77: \"option.\" names no option (the name of an option stands behind `option.`)",
                "5:97: \"skip\" must be true or false, not \"1\""}));
  CHECK(
      errors("overrides: [{ when: { a: 1 } }]") ==
      joined({"5:17: an override that changes nothing (it needs one of options, timeout, limits and skip)"}));
  CHECK(errors("overrides: [{ wen: { a: 1 }, tiemout: 1s }, 3]") ==
        joined({"5:19: unknown key \"wen\" in an override (did you mean \"when\"?)",
                "5:34: unknown key \"tiemout\" in an override (did you mean \"timeout\"?)",
                "5:49: an item of \"overrides\" must be a map, not a value"}));
  CHECK(errors("overrides: {}") ==
        joined({"5:16: \"overrides\" must be a list like [{ when: { target: gfx942 "
                "}, skip: true }], not a map"}));
}

TEST_CASE("unsupported is one of two words") {
  CHECK(*kernel("unsupported: skip").skip_unsupported);
  CHECK(!*kernel("unsupported: error").skip_unsupported);
  CHECK(!kernel("entry: a").skip_unsupported.written);
  CHECK(errors("unsupported: ignore") ==
        joined({"5:18: \"unsupported\" must be error or skip, not \"ignore\""}));
}

TEST_CASE("parameters are constants or have the words of their kind") {
  const KernelDraft draft = kernel(
      "parameters: { TM: constant, A: { ndim: 2, dtype: float16, index_dtype: int64,"
      " stride_lower_bound_incl: [0, none], alias_groups: [], may_alias_internally: false,"
      " stride_constant: [none, -1], shape_constant: [none, 64], stride_divisible_by: [8, 1],"
      " shape_divisible_by: 16, base_addr_divisible_by: 16 }, n: { dtype: int32 },"
      " B: { dtype: float32, ndim: 1, stride_lower_bound_incl: 0, alias_groups: [g, h] } }");
  REQUIRE(draft.parameters->size() == 4);
  CHECK(draft.parameters->at(0).constant);
  CHECK(draft.parameters->at(0).words.empty());
  const auto& a = draft.parameters->at(1);
  CHECK(a.name.text == "A");
  CHECK(!a.constant);
  CHECK(a.words == Pairs{{"alias_groups", ""},
                         {"base_addr_divisible_by", "16"},
                         {"dtype", "float16"},
                         {"index_dtype", "int64"},
                         {"may_alias_internally", "false"},
                         {"ndim", "2"},
                         {"shape_constant", "none,64"},
                         {"shape_divisible_by", "16"},
                         {"stride_constant", "none,-1"},
                         {"stride_divisible_by", "8,1"},
                         {"stride_lower_bound_incl", "0,none"}});
  CHECK(draft.parameters->at(2).words == Pairs{{"dtype", "int32"}});
  CHECK(draft.parameters->at(3).words.at(0).second == "g,h");
  CHECK(draft.parameters_place.column == 5);
}

TEST_CASE("words of parameters are checked by their kind") {
  CHECK(errors("parameters: {}") ==
        joined({"5:17: \"parameters\" is an empty map (expected { name: constant, name: "
                "{ dtype: float16, ndim: 2 }, ... })"}));
  CHECK(
      errors("parameters: { a.b: constant, c: const, d: [e], f: ~ }") ==
      joined(
          {"5:19: \"a.b\" cannot be the name of a parameter (letters, digits and _, at most 128 bytes, not a "
           "digit first)",
           "5:37: the parameter \"c\" must be a map like { dtype: float16, ndim: 2 } or the word constant, "
           "not \"const\"",
           "5:47: \"d\" must be a map, not a list", "5:52: \"f\" has no value (expected a map)"}));
  const auto parameter = [](const std::string& words) {
    return errors("parameters: { A: { " + words + " } }");
  };
  CHECK(parameter("ndim: 2") == joined({"5:19: the parameter \"A\" has no \"dtype\""}));
  CHECK(parameter("dtype: a b, ndim: 65") ==
        joined({"5:31: \"dtype\" must be a name of letters, digits and _, not \"a b\"",
                "5:42: \"ndim\" must be a whole number from 0 to 64, not \"65\""}));
  CHECK(parameter("dtype: [f16, f32], ndim: 1") == joined({"5:31: \"dtype\" must be a value, not a list"}));
  CHECK(
      parameter("dtypo: f16, stride: 1") ==
      joined({"5:24: unknown key \"dtypo\" in a parameter (did you mean \"dtype\"?)",
              "5:36: unknown key \"stride\" in a parameter (known keys: dtype, ndim, index_dtype, "
              "stride_lower_bound_incl, alias_groups, may_alias_internally, stride_constant, shape_constant, "
              "stride_divisible_by, shape_divisible_by and base_addr_divisible_by)"}));
  CHECK(parameter("dtype: f16, stride_divisible_by: 8, alias_groups: []") ==
        joined({"5:36: \"stride_divisible_by\" is for arrays, and the parameter \"A\" has no \"ndim\""}));
  CHECK(parameter(
            "dtype: f16, ndim: 2, stride_constant: [1], shape_divisible_by: [1, 2, 3], alias_groups: [g]") ==
        joined({"5:62: \"stride_constant\" has 1 item, and the parameter \"A\" has 2 dimensions",
                "5:87: \"shape_divisible_by\" has 3 items, and the parameter \"A\" has 2 dimensions"}));
  CHECK(parameter(
            "dtype: f16, ndim: 1, index_dtype: int16, may_alias_internally: 0, base_addr_divisible_by: 0") ==
        joined({"5:58: \"index_dtype\" must be int32, uint32 or int64, not \"int16\"",
                "5:87: \"may_alias_internally\" must be true or false, not \"0\"",
                "5:114: \"base_addr_divisible_by\" must be a whole number from 1, not \"0\""}));
  CHECK(parameter("dtype: f16, ndim: 1, stride_divisible_by: none, stride_constant: 1, shape_constant: [-1], "
                  "alias_groups: g, stride_lower_bound_incl: 1.5") ==
        joined({"5:66: \"stride_divisible_by\" must be a whole number from 1, not \"none\"",
                "5:89: \"stride_constant\" must be a list like [none, 1], not a value",
                "5:109: an item of \"shape_constant\" must be a whole number or none, not \"-1\"",
                "5:128: \"alias_groups\" must be a list like [group], not a value",
                "5:156: \"stride_lower_bound_incl\" must be an integer or none, not \"1.5\""}));
}

TEST_CASE("specializations take tables and keys of options") {
  const KernelDraft draft = kernel(
      "specializations: { matrix: { option.opt: [2, 3], TM: [1] }, exclude: [{ option.opt: 2 }],"
      " include: [{ option.opt: 1 }], table: tuned/m.csv, default: { option.opt: 3 } }");
  CHECK(draft.specializations->matrix->at(0).key.text == "option.opt");
  CHECK(draft.specializations->table->text == "tuned/m.csv");
  CHECK(kernel("specializations: { table: m.csv }").specializations->table->place.column == 31);
  CHECK(errors("specializations: { table: '', default: { a: 1 } }") ==
        joined({"5:31: \"table\" is empty; expected a path"}));
  CHECK(errors("specializations: { table: [a] }") == joined({"5:31: \"table\" must be a value, not a list"}));
  CHECK(errors("specializations: { table: m.csv, exclude: [{ a: 1 }] }") ==
        joined({"5:48: \"exclude\" without \"matrix\": there is nothing to leave out"}));
  CHECK(errors("specializations: { default: { a: 1 } }") ==
        joined({"5:5: \"specializations\" has none of \"matrix\", \"include\" and \"table\""}));
  const std::string hint = " names no option (the name of an option stands behind `option.`)";
  CHECK(errors("specializations: { matrix: { option.: [1] }, include: [{ option.3: 2 }], default: { "
               "option..x: 1 } }") ==
        joined({"5:34: \"option.\"" + hint, "5:62: \"option.3\"" + hint, "5:89: \"option..x\"" + hint}));
}

TEST_CASE("metadata leaves the name of selection data alone") {
  CHECK(*kernel("metadata: { whenever: x, option.a: y }").metadata ==
        Pairs{{"option.a", "y"}, {"whenever", "x"}});
  const std::string hint =
      " cannot be a key of metadata (`when` is kept for what tables of specializations say)";
  CHECK(errors("metadata: { when: x, when.m: y }") ==
        joined({"5:17: \"when\"" + hint, "5:26: \"when.m\"" + hint}));
}

TEST_CASE("a manifest with many different faults gives each of them on its line and nothing else") {
  const Project project;
  const auto& folder = project.folder();
  folder.write("list.txt", "a.loom\n@more.txt\n");
  folder.write("table.csv", "T,T M\nx,1\n");
  folder.write("rows.csv", "N,target\n1,gfx942\n,\n\"2\"x,gfx942\n3,gfx90a\n4\n");
  folder.write("part.yaml",
               "version: 1\ninclude: part.yaml\nkernels:\n  - { name: part, sources: a.tilebc }\n");
  const Lines lines = project.errors(
      "version: 1\n"                                           // 1
      "name: a b\n"                                            // 2
      "realease: 3\n"                                          // 3
      "output: ../x.kcb\n"                                     // 4
      "include: [part.yaml, parts.yaml]\n"                     // 5
      "allow_absolute_paths: yes\n"                            // 6
      "targets: [sm_90, gfx942, sm_90]\n"                      // 7
      "settings:\n"                                            // 8
      "  level: 0\n"                                           // 9
      "  timeout: never\n"                                     // 10
      "defaults:\n"                                            // 11
      "  options: { tilerias: { opt: 3 },\n"                   // 12
      "             loom: { reprot: none } }\n"                // 13
      "  config: { option.opt: 3 }\n"                          // 14
      "kernels:\n"                                             // 15
      "  - name: one\n"                                        // 16
      "    sources: missing.tilebc\n"                          // 17
      "    options: { opt: 9 }\n"                              // 18
      "  - name: one\n"                                        // 19
      "    sources: a.tilebc\n"                                // 20
      "    timeout: x\n"                                       // 21
      "    timeout: 1s\n"                                      // 22
      "    unsupported: maybe\n"                               // 23
      "  - name: two\n"                                        // 24
      "    sources: a.unknown\n"                               // 25
      "    limits: { registers: many }\n"                      // 26
      "  - sources: b.loom\n"                                  // 27
      "    targets: [gfx94]\n"                                 // 28
      "  - name: three\n"                                      // 29
      "    sources: '@list.txt'\n"                             // 30 (list.txt:2)
      "    metadata: { when.m: 3 }\n"                          // 31
      "  - name: four\n"                                       // 32
      "    sources: 'lib/*.mlir'\n"                            // 33
      "    backend: loom\n"                                    // 34
      "    entries: [a, b]\n"                                  // 35 (name at 32)
      "  - name: 'five.{entry}'\n"                             // 36
      "    sources: a.loom\n"                                  // 37
      "    entries: [a, a]\n"                                  // 38
      "    overrides:\n"                                       // 39
      "      - { when: {}, skip: true }\n"                     // 40
      "      - { when: { target: gfx942 } }\n"                 // 41
      "      - { when: { target: gfx942 }, skip: no }\n"       // 42
      "  - name: six\n"                                        // 43
      "    sources: a.loom\n"                                  // 44
      "    specializations: { table: table.csv }\n"            // 45 (table.csv:1)
      "  - name: seven\n"                                      // 46
      "    sources: a.loom\n"                                  // 47
      "    specializations: { table: rows.csv }\n"             // 48 (rows.csv:3,4,6)
      "  - name: eight\n"                                      // 49
      "    sources: k_{T}.tilebc\n"                            // 50
      "    specializations:\n"                                 // 51
      "      matrix: { T: [1, 2] }\n"                          // 52
      "      exclude: [{ U: 1 }]\n"                            // 53
      "  - name: nine\n"                                       // 54
      "    sources: a.py\n"                                    // 55
      "    targets: [sm_90]\n"                                 // 56
      "    parameters:\n"                                      // 57
      "      A: { dtype: f16, ndim: x }\n"                     // 58
      "      B: { ndim: 1 }\n"                                 // 59
      "    depends: [none.json]\n"                             // 60
      "  - name: ten\n"                                        // 61
      "    sources: k_{T}.tilebc\n"                            // 62
      "    specializations: { matrix: { T: [1, 2, 1] } }\n");  // 63
  std::vector<std::string> places;
  for (const std::string& line : lines) {
    const size_t slash = line.find(folder.path()) == 0 ? folder.path().size() + 1 : 0;
    const std::string rest = line.substr(slash);
    // `name:line` or, in the manifest itself, `line`.
    const size_t first = rest.find(':');
    places.push_back(rest.substr(0, slash == 0 ? first : rest.find(':', first + 1)));
  }
  CAPTURE(joined(lines));
  CHECK(places == Lines{"2",           "3",          "4",          "5",         "6",           "7",
                        "9",           "10",         "12",         "13",        "14",          "17",
                        "18",          "19",         "21",         "22",        "23",          "25",
                        "26",          "27",         "28",         "31",        "32",          "33",
                        "38",          "40",         "41",         "42",        "53",          "55",
                        "58",          "59",         "60",         "63",        "part.yaml:2", "list.txt:2",
                        "table.csv:1", "rows.csv:3", "rows.csv:4", "rows.csv:6"});
}

TEST_CASE("megabytes of nested lists are refused") {
  const Project project;
  std::string text = "version: 1\nkernels: ";
  text += std::string(4U << 20, '[');
  CHECK(joined(project.errors(text)) == joined({"2:1000010: more than 1000000 nodes"}));
  // In brackets within brackets, and as blocks.
  text = "version: 1\nkernels:\n  - " + std::string(500'000, '[') + std::string(500'000, ']') + "\n";
  CHECK(joined(project.errors(text)) == joined({"3:67: collections nested deeper than 64 levels"}));
  text = "version: 1\nkernels:\n";
  for (size_t i = 0; i < (2U << 20); ++i) text += "- ";
  CHECK(joined(project.errors(text)) == joined({"3:127: collections nested deeper than 64 levels"}));
}

}  // namespace
