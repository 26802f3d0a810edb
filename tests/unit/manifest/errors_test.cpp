#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "unit/manifest/project.h"

namespace {

using kc::test::joined;
using kc::test::Lines;
using kc::test::one_kernel;
using kc::test::Project;

struct Case {
  std::string text;
  Lines errors;
};

void check(const std::vector<Case>& cases) {
  const Project project;
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(joined(project.errors(c.text)) == joined(c.errors));
  }
}

TEST_CASE("a manifest that cannot be read is named with its cause") {
  const Project project;
  const auto load = [&](const std::string& name) {
    return kc::manifest::load(project.folder() / name, kc::test::backends()).errors;
  };
  const auto text = [&](const std::string& name) {
    const auto errors = load(name);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].kind == kc::base::ErrorKind::kInput);
    CHECK(errors[0].text().find(project.folder() / name) != std::string::npos);
    return errors[0].text().substr((project.folder() / name).size());
  };
  CHECK(text("lib") == ": is a directory, not a file");
  project.folder().write("kernels.yaml", "version: 1\n");
  CHECK(text("kernel.yaml") == ": the manifest does not exist (did you mean \"kernels.yaml\"?)");
  CHECK(load("nowhere/kernels.yaml").at(0).hint ==
        "there is no folder \"" + (project.folder() / "nowhere") + "\"");
  project.folder().write("empty.yaml", "");
  CHECK(text("empty.yaml") == ": is empty");
  project.folder().write("big.yaml", std::string(9U << 20, '#'));
  CHECK(text("big.yaml") == ": has 9437184 bytes; at most 8388608 are read");
  project.folder().write("latin.yaml", "version: 1\nname: caf\xe9\n");
  CHECK(text("latin.yaml") == ":2:10: not UTF-8: the byte 0xe9 is misplaced");
}

TEST_CASE("the top level is checked field by field") {
  check({
      {"[1, 2]", {"1:1: a manifest must be a map, not a list (it begins with `version: 1`)"}},
      {"hello", {"1:1: a manifest must be a map, not a value (it begins with `version: 1`)"}},
      {"name: x",
       {"1:1: \"version\" is missing (add `version: 1`)",
        "1:1: \"kernels\" is missing (a manifest lists at least one kernel or includes a manifest)"}},
      {"version: 2\nnmae: x\nkernels: 7\n",
       {"1:10: manifest version 2 is newer than this version of kc reads (1) (use a newer kc)"}},
      {"version: one\nkernels: []\n",
       {"1:10: \"version\" must be a whole number from 1 to 1, not \"one\"",
        "2:10: \"kernels\" is an empty list (expected a list like [{ name: ..., sources: ... }])"}},
      {"version: 0\nkernels:\n",
       {"1:10: \"version\" must be a whole number from 1 to 1, not \"0\"",
        "2:1: \"kernels\" has no value (expected a list like [{ name: ..., sources: ... }])"}},
      {"version: 1\nkernels: {a: b}\n",
       {"2:10: \"kernels\" must be a list like [{ name: ..., sources: ... }], not a map"}},
      {"version: 1\nkernels: [k, ~]\n",
       {"2:11: an item of \"kernels\" must be a map, not a value",
        "2:14: an item of \"kernels\" has no value (expected a map)"}},
      {one_kernel("nmae: x\n"), {"7:1: unknown key \"nmae\" in a manifest (did you mean \"name\"?)"}},
      {one_kernel("zzzzzzzz: x\n"),
       {"7:1: unknown key \"zzzzzzzz\" in a manifest (known keys: version, name, release, output, include, "
        "targets, settings, defaults, allow_absolute_paths and kernels)"}},
      // A misspelled key is not missing as well.
      {"verzion: 1\ntargets: [sm_90]\nkernels:\n  - { nmae: k, sorces: a.tilebc }\n",
       {"1:1: unknown key \"verzion\" in a manifest (did you mean \"version\"?)",
        "4:7: unknown key \"nmae\" in a kernel (did you mean \"name\"?)",
        "4:16: unknown key \"sorces\" in a kernel (did you mean \"sources\"?)"}},
      {one_kernel("name: a b\n"),
       {"7:7: \"a b\" cannot be the name of a bundle (letters, digits, _, . and -, at most 128 bytes, not . "
        "or - "
        "first)"}},
      {one_kernel("release: -1\n"),
       {"7:10: \"release\" must be a whole number from 0 to 18446744073709551615, not \"-1\""}},
      {one_kernel("release: 1.0\n"),
       {"7:10: \"release\" must be a whole number from 0 to 18446744073709551615, not \"1.0\""}},
      {one_kernel("output: /tmp/a.kcb\n"),
       {"7:9: \"output\" must be a path relative to the manifest's folder, not \"/tmp/a.kcb\" (-o can name "
        "any file)"}},
      {one_kernel("output: b/../a.kcb\n"),
       {"7:9: \"output\" must lie below the manifest's folder, without \"..\", not \"b/../a.kcb\" (-o can "
        "name any "
        "file)"}},
      {one_kernel("output: a.bin\n"),
       {"7:9: \"output\" must be a file that ends in .kcb, not \"a.bin\" (-o can name any file)"}},
      {one_kernel("output: b/.kcb\n"),
       {"7:9: \"output\" must be a file that ends in .kcb, not \"b/.kcb\" (-o can name any file)"}},
      {one_kernel("output: \"\\ea.kcb\"\n"),
       {"7:9: \"output\" must be a path without control bytes, not \"\\x1ba.kcb\" (-o can name any file)"}},
      {one_kernel("settings: { level: 20, timeout: 0s, frame_size: 4095, keep_going: no, lvl: 1 }\n"),
       {"7:20: \"level\" must be a whole number from 1 to 19, not \"20\"",
        "7:33: \"timeout\" must be a duration such as 500ms, 60s, 10m or 2h, more than 0 and at most 10 "
        "years, not "
        "\"0s\"",
        "7:49: \"frame_size\" must be from 4.0 KiB to 64.0 MiB, not \"4095\"",
        "7:67: \"keep_going\" must be a whole number from 0 to 1000000, not \"no\"",
        "7:71: unknown key \"lvl\" in settings (known keys: level, timeout, "
        "frame_size and keep_going)"}},
      {one_kernel("settings: { frame_size: many, timeout: soon }\n"),
       {"7:25: \"frame_size\" must be a size such as 4096, 64KiB or 2M, not \"many\"",
        "7:40: \"timeout\" must be a duration such as 500ms, 60s, 10m or 2h, more than 0 and at most 10 "
        "years, not "
        "\"soon\""}},
      {one_kernel("settings: 3\n"), {"7:11: \"settings\" must be a map, not a value"}},
  });
}

TEST_CASE("the fields of a kernel are checked one by one") {
  check({
      {"version: 1\nkernels:\n  - entry: e\n",
       {"3:5: a kernel without \"name\"", "3:5: a kernel without \"sources\""}},
      {"version: 1\nkernels:\n  - { name: -k, sources: a.tilebc, targets: [sm_90] }\n",
       {"3:13: \"-k\" cannot be the name of a kernel (letters, digits, _, . and -, at most 128 bytes, not . "
        "or - "
        "first)"}},
      {"version: 1\nkernels:\n  - { name: 'k@x', sources: a.tilebc, targets: [sm_90] }\n",
       {"3:13: \"k@x\" cannot be the name of a kernel (letters, digits, _, . and -, at most 128 bytes, not . "
        "or - "
        "first)"}},
      {one_kernel("    entyr: x\n"), {"7:5: unknown key \"entyr\" in a kernel (did you mean \"entry\"?)"}},
      {one_kernel("", "{a: b}"), {"4:14: \"sources\" must be a path or a list of paths, not a map"}},
      {one_kernel("", "[]"), {"4:14: \"sources\" is an empty list (expected a list like [a.tilebc])"}},
      {one_kernel("", "''"), {"4:14: \"sources\" is empty; expected a path"}},
      {one_kernel("", "[a.tilebc, [b]]"), {"4:25: an item of \"sources\" must be a value, not a list"}},
      {one_kernel("", "[a.loom, b.loom, a.loom]", "gfx942"),
       {"4:31: \"a.loom\" is listed twice in \"sources\", first at :4:15"}},
      {one_kernel("", "[a.tilebc, b.tilebc, k_1.tilebc]"),
       {"4:25: tileiras takes 1 source a kernel, and this has 3 (write a kernel for each)"}},
      {one_kernel("", "[a.tilebc]"), {}},
      {one_kernel("    symbol: a b\n"),
       {"7:13: \"a b\" cannot be a symbol (1 to 1024 bytes without blanks and braces; {key} is replaced in "
        "sources and "
        "entry only)"}},
      {one_kernel("    symbol: 'a_{T}'\n"),
       {"7:13: \"a_{T}\" cannot be a symbol (1 to 1024 bytes without blanks and braces; {key} is replaced in "
        "sources "
        "and entry only)"}},
      {one_kernel("    timeout: 5 m\n"),
       {"7:14: \"timeout\" must be a duration such as 500ms, 60s, 10m or 2h, more than 0 and at most 10 "
        "years, not "
        "\"5 m\""}},
      {one_kernel("    limits: { registers: 64KiB, code: x, spils: 1 }\n"),
       {"7:26: \"registers\" must be a whole number from 0 to 4294967295, not \"64KiB\"",
        "7:39: \"code\" must be a size such as 4096, 64KiB or 2M, not \"x\"",
        "7:42: unknown key \"spils\" in limits (did you mean \"spills\"?)"}},
      {one_kernel("    limits: { spills: 0 }\n"),
       {"7:15: \"spills\" is AMD's count: an NVIDIA code object does not tell it (use local_memory, in bytes "
        "a "
        "thread)"}},
      {one_kernel("    metadata: { owner: [me], 'a b': c }\n"),
       {"7:24: \"owner\" must be a value, not a list",
        "7:30: \"a b\" is not a configuration key (letters, digits, _ and ., at most 128 bytes, not a digit "
        "first)"}},
  });
  const Project project;
  CHECK(joined(project.errors(
            "version: 1\nkernels:\n  - { name: k, sources: a.tilebc, targets: [sm_90], entry: '' }\n")) ==
        joined(Lines{"3:60: \"entry\" is empty"}));
  CHECK(joined(project.errors(
            "version: 1\nkernels:\n  - { name: k, sources: a.tilebc, targets: [sm_90], entry: a b }\n")) ==
        joined(Lines{"3:60: \"a b\" cannot be an entry (1 to 1024 bytes without blanks)"}));
  CHECK(project.errors(one_kernel("    limits: { spills: 0 }\n", "a.loom", "gfx942")).empty());
}

TEST_CASE("metadata is bounded for each kernel") {
  const auto with = [](size_t last) {
    std::string text = "    metadata:\n";
    for (int i = 0; i < 63; ++i) {
      const std::string number = std::to_string(100 + i);
      text += "      k" + number + ": " + std::string(1020, 'v') + "\n";
    }
    return one_kernel(text + "      last: " + std::string(last, 'v') + "\n");
  };
  check({{with(1020), {}},
         {with(1021), {"7:5: the metadata of a kernel may have 65536 bytes in all, and this has 65537"}}});
}

TEST_CASE("a specialization that no bundle could hold is refused where it is written") {
  const auto pairs = [](bool matrix, size_t last) {
    std::string out = "{ ";
    for (int i = 0; i < 64; ++i) {
      // `k00=` and a comma behind it: 5 bytes; the last pair has no comma.
      const std::string value(i < 63 ? 1019 : last, 'v');
      out += "k" + std::to_string(10 + i) + ": " + (matrix ? "[w, " + value + "]" : value) + ", ";
      if (matrix && i == 20) return out + "}";
    }
    return out + "}";
  };
  const auto loom = [](const std::string& text) {
    return one_kernel("    specializations:\n      " + text + "\n", "a.loom", "gfx942");
  };
  const std::string text =
      " bytes of keys and values as written in names of units; at most 65535 are allowed (fewer keys or "
      "shorter values)";
  check({{loom("include: [{ a: 1 }, " + pairs(false, 1019) + "]"), {}},
         {loom("include: [{ a: 1 }, " + pairs(false, 1020) + "]"),
          {"8:27: this specialization has 65536" + text}},
         // Each byte of these is written with three.
         {loom("matrix: { a: [1], b: [" + std::string(1024, '/') + "] }"), {}}});
  std::string matrix = "matrix: {";
  for (int i = 10; i < 32; ++i) matrix += " k" + std::to_string(i) + ": [" + std::string(1000, '/') + "],";
  check({{loom(matrix + " }"), {"8:7: the longest specialization of this matrix has 66109" + text}}});
}

TEST_CASE("a key of many values is not copied to each of them") {
  // 1 KiB of key for each of 200,000 values would be 200 MB; only the key is at fault.
  const std::string key(1024, 'k');
  std::string text = "    specializations: { matrix: { ? " + key + " : [";
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + ",";
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  const Project project;
  CHECK(project.errors(one_kernel(text + "x] } }\n", "a.loom", "gfx942")).size() == 1);
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 230 * 1024);
}

TEST_CASE("a null where a value is needed is an error at its key") {
  for (const char* field : {"symbol", "backend", "targets", "config", "options", "timeout", "limits",
                            "specializations", "metadata"}) {
    CAPTURE(field);
    const Project project;
    for (const char* null : {"", " ~", " null"}) {
      const Lines errors = project.errors(one_kernel("    " + std::string(field) + ":" + null + "\n"));
      const bool is_targets = std::string(field) == "targets";
      REQUIRE(errors.size() == 1);
      // `targets` is written a second time here, which is the fault.
      CHECK(errors[0].starts_with(is_targets
                                      ? "7:5: the key \"targets\" is written twice"
                                      : "7:5: \"" + std::string(field) + "\" has no value (expected "));
    }
  }
  check({{one_kernel("    config: { a: , b: '' }\n", "a.loom", "gfx942"),
          {"7:15: \"a\" has no value (expected a value)"}},
         {one_kernel("    specializations: { matrix: { a: [1, ~] } }\n", "a.loom", "gfx942"),
          {"7:41: an item of \"a\" has no value (expected a value)"}}});
}

TEST_CASE("sources must be there and the nearest file is named") {
  check({
      {one_kernel("", "a.tilebd.tilebc"), {"4:14: the source \"a.tilebd.tilebc\" does not exist"}},
      {one_kernel("", "lib/d.loom", "gfx942"),
       {"4:14: the source \"lib/d.loom\" does not exist (did you mean \"c.loom\"?)"}},
      {one_kernel("", "/etc/a.tilebc"),
       {"4:14: the source \"/etc/a.tilebc\" is an absolute path: absolute paths need `allow_absolute_paths: "
        "true` "
        "in the top manifest (write it relative to the file that names it)"}},
      {one_kernel("", "\"a\\e.tilebc\""),
       {"4:14: the source \"a\\x1b.tilebc\" has control bytes in its name (did you mean \"a.tilebc\"?)"}},
      {one_kernel("    specializations: { matrix: { N: [1, 2, 3] } }\n", "k_{N}.tilebc"),
       {"4:14: the source \"k_3.tilebc\" does not exist (did you mean \"k_1.tilebc\"?)"}},
      {one_kernel("    specializations: { matrix: { N: [1, 3, 4] } }\n", "k_{N}.tilebc"),
       {"4:14: 2 of the files that \"k_{N}.tilebc\" names cannot be used: \"k_3.tilebc\" and \"k_4.tilebc\" "
        "(the "
        "source \"k_3.tilebc\" does not exist)"}},
      {one_kernel("    config: { P: /etc/ }\n", "'{P}a.tilebc'"),
       {"4:14: the source \"/etc/a.tilebc\" is an absolute path: absolute paths need `allow_absolute_paths: "
        "true` "
        "in the top manifest (write it relative to the file that names it)"}},
  });
}

TEST_CASE("a folder or a fifo is no source") {
  const Project project;
  project.folder().write("d.loom/inside", "");
  REQUIRE(mkfifo((project.folder() / "f.loom").c_str(), 0600) == 0);
  CHECK(joined(project.errors(one_kernel("", "[d.loom, f.loom]", "gfx942"))) ==
        joined(Lines{"4:15: the source \"d.loom\" is a folder",
                     "4:23: the source \"f.loom\" is not a regular file"}));
  const std::string name(5000, 'n');
  CHECK(joined(project.errors(one_kernel("", name + ".tilebc"))).ends_with("...\": File name too long"));
}

TEST_CASE("the backend follows from the suffix or is named") {
  const std::string known =
      " (known: .tilebc (tileiras), .loom (loom), .loombc (loom) and .py (cutile, not in this version))";
  check({
      {one_kernel("", "a.cu"), {"4:14: no backend takes sources that end in \".cu\" (\"a.cu\")" + known}},
      {one_kernel("", "a"), {"4:14: the source \"a\" has no suffix that says its backend" + known}},
      {one_kernel("", "[a.tilebc, b.loom]"),
       {"4:25: \"b.loom\" is a source for loom, but \"a.tilebc\" is one for tileiras (a kernel has one "
        "backend)"}},
      {one_kernel("    backend: tileira\n"),
       {"7:14: unknown backend \"tileira\" (did you mean \"tileiras\"?)"}},
      {one_kernel("    backend: nvrtc\n"),
       {"7:14: unknown backend \"nvrtc\" (known: tileiras, loom and cutile (not in this version))"}},
      {one_kernel("    backend: tileiras\n", "a.loom"),
       {"4:14: \"a.loom\" is a source for loom, and \"backend\" says tileiras"}},
      // Which of both was meant is not known: the targets fit one of them.
      {one_kernel("    backend: loom\n"),
       {"4:14: \"a.tilebc\" is a source for tileiras, and \"backend\" says loom"}},
      {one_kernel("    config: { E: tilebc }\n", "'a.{E}'"),
       {"4:14: the backend cannot be told from \"a.{E}\" (name it with `backend:`)"}},
      {one_kernel("    config: { E: tilebc }\n    backend: tileiras\n", "'a.{E}'"), {}},
  });
}

TEST_CASE("targets are checked by grammar and vendor and for repetition") {
  check({
      {one_kernel("", "a.loom", "GFX942"),
       {"6:15: target \"GFX942\" is not the name of a GPU architecture (did you mean \"gfx942\"?)"}},
      {one_kernel("", "a.tilebc", "sm_90, sm_80, sm_90"),
       {"6:29: the target \"sm_90\" is listed twice, first at line 6, column 15"}},
      {one_kernel("", "a.loom", "'gfx942:xnack+:sramecc-', 'gfx942:sramecc-:xnack+', gfx942"),
       {"6:41: the target \"gfx942:sramecc-:xnack+\" is listed twice, first at line 6, column 15"}},
      {one_kernel("", "a.loom", "'gfx942:xnack+', 'gfx942:xnack-', 'gfx942:sramecc+', gfx942"), {}},
      {one_kernel("", "a.tilebc", "sm_90, sm_90a"), {}},
      {one_kernel("", "a.tilebc", "sm_90, gfx942"),
       {"6:22: \"gfx942\" is a target of AMD, and tileiras compiles for NVIDIA"}},
      {one_kernel("", "a.tilebc", ""),
       {"6:14: \"targets\" is an empty list (expected a list like [sm_90, gfx942])"}},
      {"version: 1\nkernels:\n  - { name: k, sources: a.tilebc, targets: sm_90 }\n",
       {"3:44: \"targets\" must be a list like [sm_90, gfx942], not a value"}},
      {"version: 1\nkernels:\n  - { name: k, sources: a.tilebc }\n",
       {"3:13: the kernel \"k\" has no targets (list them in the kernel or at the top of the manifest)"}},
      {"version: 1\ntargets: [gfx942]\nkernels:\n  - { name: k, sources: a.tilebc }\n",
       {"4:13: the kernel \"k\" is left without targets: none of the manifest's is of NVIDIA, which tileiras "
        "compiles "
        "for"}},
      // One bad name in the default targets is one error, not one for each kernel.
      {"version: 1\ntargets: [sm_9x]\nkernels:\n  - { name: k, sources: a.tilebc }\n  - { name: l, sources: "
       "b.tilebc }\n",
       {"2:11: target \"sm_9x\" is not the name of a GPU architecture (did you mean \"sm_90\"?)"}},
  });
}

TEST_CASE("a default target that no kernel takes is a warning") {
  const Project project;
  CHECK(joined(project.warnings(
            "version: 1\ntargets: [sm_90, gfx942, sm_80]\nkernels:\n  - { name: k, sources: a.tilebc }\n")) ==
        joined(Lines{"2:18: no kernel takes the target \"gfx942\""}));
  CHECK(
      project.warnings(
          "version: 1\ntargets: [sm_90]\nkernels:\n  - { name: k, sources: a.tilebc, targets: [sm_80] }\n") ==
      Lines{"2:11: no kernel takes the target \"sm_90\""});
  CHECK(project.warnings("version: 1\ntargets: [sm_90]\nkernels:\n  - { name: k, sources: a.tilebc }\n")
            .empty());
}

TEST_CASE("options are the backend's and are named when they are near") {
  check({
      {one_kernel("    options: { otp: 2 }\n"),
       {"7:16: tileiras has no option \"otp\" (did you mean \"opt\"?)"}},
      {one_kernel("    options: { report: none }\n"),
       {"7:16: tileiras has no option \"report\" (known: opt, debug and lineinfo)"}},
      {one_kernel("    options: { opt: 4 }\n"),
       {"7:21: \"4\" is no value of the option \"opt\" (did you mean \"3\"?)"}},
      {one_kernel("    options: { lineinfo: True }\n"),
       {"7:26: \"True\" is no value of the option \"lineinfo\" (did you mean \"true\"?)"}},
      {one_kernel("    options: { lineinfo: yes, opt: [3] }\n"),
       {"7:36: \"opt\" must be a value, not a list"}},
      {one_kernel("    options: { debug: true }\n"), {"7:5: debug needs opt 0"}},
      {one_kernel("    options: { debug: true, opt: 0 }\n"), {}},
      // Neither is a consequence of the other: no complaint of the rule between them.
      {one_kernel("    options: { debug: true, otp: 0 }\n"),
       {"7:29: tileiras has no option \"otp\" (did you mean \"opt\"?)"}},
  });
}

TEST_CASE("configuration keys and values follow their grammar") {
  const std::string rule = " (letters, digits, _ and ., at most 128 bytes, not a digit first)";
  check({
      {one_kernel("    config: { 1a: x }\n", "a.loom", "gfx942"),
       {"7:15: \"1a\" is not a configuration key" + rule}},
      {one_kernel("    config: { a-b: x }\n", "a.loom", "gfx942"),
       {"7:15: \"a-b\" is not a configuration key" + rule}},
      {one_kernel("    config: {}\n", "a.loom", "gfx942"),
       {"7:13: \"config\" is an empty map (expected { key: value, ... })"}},
      {one_kernel("    config: { a: " + std::string(1025, 'x') + " }\n", "a.loom", "gfx942"),
       {"7:18: the value of \"a\" has 1025 bytes; at most 1024 are allowed"}},
      {one_kernel("    config: { a: " + std::string(1024, 'x') + " }\n", "a.loom", "gfx942"), {}},
      {one_kernel("    config: { " + std::string(128, 'k') + ": 1 }\n", "a.loom", "gfx942"), {}},
      {one_kernel("    config: { " + std::string(129, 'k') + ": 1 }\n", "a.loom", "gfx942"),
       {"7:15: \"" + std::string(129, 'k') + "\" is not a configuration key" + rule}},
  });
}

TEST_CASE("a key that could change nothing is an error where it is written") {
  const auto nothing = [](const std::string& key) {
    return "the key \"" + key +
           "\" could change nothing: sources for tileiras have no configuration (use it as {" + key +
           "} in sources or entry, or leave it out)";
  };
  check({
      {one_kernel("    config: { A: 1 }\n"), {"7:15: " + nothing("A")}},
      {one_kernel(
           "    specializations: { matrix: { N: [1], M: [2] }, include: [{ N: 2, K: 3 }, { N: 1, K: 2 }] }\n",
           "k_{N}.tilebc"),
       {"7:42: " + nothing("M"), "7:70: " + nothing("K")}},
      {one_kernel("    config: { N: 1 }\n", "k_{N}.tilebc"), {}},
  });
}

TEST_CASE("braces are checked against the keys of every specialization") {
  check({
      {one_kernel("    config: { TILE: 1 }\n", "a_{TIEL}.loom", "gfx942"),
       {"4:14: \"{TIEL}\" in \"sources\" is no configuration key of this kernel (did you mean \"TILE\"?)"}},
      {one_kernel("    config: { TILE: 1 }\n", "a_{X}.loom", "gfx942"),
       {"4:14: \"{X}\" in \"sources\" is no configuration key of this kernel (its keys: TILE)"}},
      {one_kernel("", "a_{X}.tilebc"),
       {"4:14: \"{X}\" in \"sources\" is no configuration key of this kernel"}},
      {one_kernel("", "'a_{X.tilebc'"),
       {"4:14: a brace without its partner in \"sources\" (\"a_{X.tilebc\") ({key} stands for the value of a "
        "configuration key)"}},
      {one_kernel("", "'a_}X.tilebc'"),
       {"4:14: a brace without its partner in \"sources\" (\"a_}X.tilebc\") ({key} stands for the value of a "
        "configuration key)"}},
      {one_kernel("", "'a_{{X}}.tilebc'"),
       {"4:14: a brace without its partner in \"sources\" (\"a_{{X}}.tilebc\") ({key} stands for the value "
        "of a "
        "configuration key)"}},
      {one_kernel("", "'a_{}.tilebc'"),
       {"4:14: \"\" between braces in \"sources\" is not a configuration key ({key} stands for the value of "
        "a "
        "configuration key)"}},
      {one_kernel("    specializations: { matrix: { N: [1] }, include: [{ M: 2 }, { N: 2 }] }\n",
                  "k_{N}.tilebc"),
       {"7:54: this include has no key \"N\", which \"sources\" uses",
        "7:56: the key \"M\" could change nothing: sources for tileiras have no configuration (use it as {M} "
        "in sources "
        "or entry, or leave it out)"}},
      {one_kernel("    specializations: { matrix: { M: [1] }, include: [{ N: 2 }] }\n", "'k_{N}.tilebc'"),
       {"7:24: the matrix has no key \"N\", which \"sources\" uses",
        "7:34: the key \"M\" could change nothing: sources for tileiras have no configuration (use it as {M} "
        "in sources "
        "or entry, or leave it out)"}},
      {one_kernel("    config: { N: 1 }\n    specializations: { matrix: { M: [1] }, include: [{ N: 2 }] }\n",
                  "a.loom", "gfx942"),
       {}},
  });
}

TEST_CASE("specializations are checked for what they mean") {
  const auto loom = [](const std::string& text) {
    return one_kernel("    specializations: " + text + "\n", "a.loom", "gfx942");
  };
  check({
      {loom("{}"), {"7:5: \"specializations\" has none of \"matrix\", \"include\" and \"table\""}},
      {loom("[1]"), {"7:22: \"specializations\" must be a map, not a list"}},
      {loom("{ matrx: { a: [1] } }"),
       {"7:24: unknown key \"matrx\" in specializations (did you mean \"matrix\"?)"}},
      {loom("{ matrix: {} }"), {"7:32: \"matrix\" is an empty map (expected { key: [value, ...], ... })"}},
      {loom("{ matrix: { a: 1 } }"), {"7:37: \"a\" must be a list like [64, 128], not a value"}},
      {loom("{ matrix: { a: [] } }"), {"7:37: \"a\" is an empty list (expected a list like [64, 128])"}},
      {loom("{ matrix: { a: [{b: 1}] } }"), {"7:38: an item of \"a\" must be a value, not a map"}},
      {loom("{ matrix: { a: [1, '1'] } }"),
       {"7:41: the value \"1\" of \"a\" is listed twice, first at line 7, column 38"}},
      {loom("{ include: { a: 1 } }"), {"7:33: \"include\" must be a list like [{ key: value }], not a map"}},
      {loom("{ include: [{}] }"),
       {"7:34: an item of \"include\" is an empty map (expected { key: value, ... })"}},
      {loom("{ include: [{ a: 1 }], exclude: [{ a: 1 }] }"),
       {"7:55: \"exclude\" without \"matrix\": there is nothing to leave out"}},
      {loom("{ matrix: { tile: [64, 128] }, exclude: [{ tiel: 64 }, { tile: 129 }, { tile: 64, x: 1 }] }"),
       {"7:65: this exclude matches nothing: \"tiel\" is no key of the matrix (did you mean \"tile\"?)",
        "7:85: this exclude matches nothing: \"tile\" has no value \"129\" in the matrix (did you mean "
        "\"128\"?)",
        "7:104: this exclude matches nothing: \"x\" is no key of the matrix"}},
      {loom("{ matrix: { a: [1, 2] }, exclude: [{ a: 1 }, { a: 2 }] }"),
       {"7:24: the excludes leave nothing of this matrix"}},
      {loom("{ matrix: { a: [1, 2] }, exclude: [{ a: 1 }, { a: 2 }], include: [{ a: 1 }] }"),
       {"7:24: the excludes leave nothing of this matrix"}},
      {loom("{ matrix: { a: [1, 2] }, default: { b: 1 } }"),
       {"7:58: \"default\" names \"b\", which no specialization has (did you mean \"a\"?)"}},
      {loom("{ matrix: { a: [1, 2] }, default: { a: 3 } }"), {"7:56: \"default\" matches no specialization"}},
      {loom("{ matrix: { a: [1, 2], b: [1, 2] }, default: { a: 1 } }"),
       {"7:67: \"default\" matches 2 specializations, among them \"a=1,b=1\" and \"a=1,b=2\" (name more "
        "keys)"}},
  });
}

TEST_CASE("two kernels of one name are an error that names both places") {
  const Project project;
  CHECK(joined(project.errors("version: 1\ntargets: [sm_90]\nkernels:\n  - { name: k, sources: a.tilebc }\n"
                              "  - { name: k, sources: b.tilebc }\n")) ==
        joined(Lines{"5:13: two kernels are named \"k\"; the first is at :4:13"}));
}

TEST_CASE("merges give fields and their faults are reported once") {
  check({
      {"version: 1\ntargets: [sm_90]\nx-base: &base { timeout: never }\nkernels:\n"
       "  - { name: k, sources: a.tilebc, <<: *base }\n  - { name: l, sources: b.tilebc, <<: *base }\n",
       {"3:26: \"timeout\" must be a duration such as 500ms, 60s, 10m or 2h, more than 0 and at most 10 "
        "years, not "
        "\"never\""}},
      {one_kernel("    <<: 3\n"), {"7:9: \"<<\" must be a map or a list of maps, not a value"}},
      {one_kernel("    <<: [{ timeout: 1s }, 3]\n"),
       {"7:27: an item of \"<<\" must be a map or a list of maps, not a value"}},
  });
}

TEST_CASE("a document with many faults gives each of them in order of place") {
  const Project project;
  CHECK(joined(project.errors("version: 1\n"
                              "name: 'a b'\n"
                              "realease: 3\n"
                              "output: ../x.kcb\n"
                              "targets: [sm_90, sm_90]\n"
                              "settings: { level: 0 }\n"
                              "kernels:\n"
                              "  - name: one\n"
                              "    sources: missing.tilebc\n"
                              "    options: { opt: 9 }\n"
                              "  - name: one\n"
                              "    sources: a.tilebc\n"
                              "    timeout: x\n"
                              "    timeout: 1s\n"
                              "  - name: two\n"
                              "    sources: a.unknown\n"
                              "    targets: [gfx942]\n"
                              "    limits: { registers: many }\n"
                              "  - sources: b.loom\n"
                              "    targets: [gfx94]\n")) ==
        joined(Lines{
            "2:7: \"a b\" cannot be the name of a bundle (letters, digits, _, . and -, at most 128 bytes, "
            "not . or - "
            "first)",
            "3:1: unknown key \"realease\" in a manifest (did you mean \"release\"?)",
            "4:9: \"output\" must lie below the manifest's folder, without \"..\", not \"../x.kcb\" (-o can "
            "name any "
            "file)",
            "5:18: the target \"sm_90\" is listed twice, first at line 5, column 11",
            "6:20: \"level\" must be a whole number from 1 to 19, not \"0\"",
            "9:14: the source \"missing.tilebc\" does not exist",
            "10:21: \"9\" is no value of the option \"opt\" (did you mean \"3\"?)",
            "11:11: two kernels are named \"one\"; the first is at :8:11",
            "13:14: \"timeout\" must be a duration such as 500ms, 60s, 10m or 2h, more than 0 and at most 10 "
            "years, not "
            "\"x\"",
            "14:5: the key \"timeout\" is written twice, first at line 13, column 5",
            "16:14: no backend takes sources that end in \".unknown\" (\"a.unknown\") (known: .tilebc "
            "(tileiras), .loom (loom), .loombc (loom) and .py (cutile, not in this version))",
            "18:26: \"registers\" must be a whole number from 0 to 4294967295, not \"many\"",
            "19:5: a kernel without \"name\"",
            "20:15: target \"gfx94\" is not the name of a GPU architecture (did you mean \"gfx904\"?)",
        }));
}

TEST_CASE("errors of one line are in order of column whatever step found them") {
  const Project project;
  CHECK(joined(project.errors("version: 1\nkernels:\n"
                              "  - { name: k, sources: x.loom, timeout: never, targets: [sm_90] }\n")) ==
        joined(Lines{
            "3:25: the source \"x.loom\" does not exist (did you mean \"a.loom\"?)",
            "3:42: \"timeout\" must be a duration such as 500ms, 60s, 10m or 2h, more than 0 and at most "
            "10 years, not \"never\"",
            "3:59: \"sm_90\" is a target of NVIDIA, and loom compiles for AMD"}));
}

}  // namespace
