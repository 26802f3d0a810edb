"""Loom through kc: with the real compiler that bootstrap makes (tests/support/loom_bridge), or with the library that
KC_LOOM_LIBRARY names when the tests are started; what is wrong with a library is tested with stand-ins.
"""

import os
import re
import shutil
import struct
import subprocess

from kc_test import BUILD, DEMO_AMD, HOSTILE, KC, SOURCE, KcTest, loom, main, real_loom

# The library of whoever runs the tests; kc's own tests set the variable themselves.
USERS_LIBRARY = os.environ.get("KC_LOOM_LIBRARY")
KERNELS = SOURCE / "tests" / "support" / "loom_kernels"  # wrong on purpose

CONFIGURED = """\
config.decl @tuner.workgroup_size : %size: index where [range(%size, 32, 256), mul(%size, 32)]
"""


def configured(name):
    """A kernel whose work group's size has no default."""
    return CONFIGURED + "\n".join(loom(name).splitlines()[1:]) + "\n"


class Loom(KcTest):
    """With a real compiler."""

    def setUp(self):
        super().setUp()
        self.env = self.with_loom()

    def one(self, text, fields="", targets="[gfx1100]", name="broken"):
        """A manifest of one kernel."""
        self.write(f"{name}.loom", text)
        self.write("kernels.yaml",
                   f"version: 1\ntargets: {targets}\nkernels:\n  - {{ name: {name}, sources: {name}.loom{fields} }}\n")

    def failure(self, expect=1):
        return self.kc("build", env=self.env, expect=expect).err

    def objects(self, folder, *arguments, env=None):
        """The code objects of a build: name of the file -> bytes."""
        self.kc("build", "-o", f"{folder}.kcb", "--store-mode=off", *arguments, env=env or self.env)
        self.kc("extract", f"{folder}.kcb", "--all", folder)
        root = self.work / folder
        return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    # -- what works -----------------------------------------------------------------------------------------

    def test_the_demo_is_built_for_every_target_and_nothing_is_left_to_do(self):
        events = self.kc_json("build", "-f", DEMO_AMD, "-o", "demo.kcb", "-j2", env=self.env, timeout=300)
        summary = events[-1]
        self.assertGreaterEqual(summary["units"], 200)
        self.assertEqual((summary["compiled"], summary["failed"]), (summary["units"], 0))
        self.assertEqual({e["target"] for e in events[:-1]}, {"gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201"})
        self.kc("verify", "demo.kcb")
        for event in events[:-1]:
            self.assertEqual(event["facts"]["wave_size"], 64 if event["target"].startswith("gfx9") else 32)
        summary = self.summary("build", "-f", DEMO_AMD, "-o", "demo.kcb", env=self.env)
        self.assertEqual((summary["compiled"], summary["output_state"]), (0, "unchanged"))

    def test_any_number_of_slots_gives_the_same_bundle(self):
        self.make_loom_units(40, targets="[gfx942, gfx1100, gfx1201]")
        for slots in (1, 2, 24):
            self.kc("build", f"-j{slots}", "-o", f"j{slots}.kcb", "--store-mode=off", env=self.env)
        self.assertEqual(len({self.digest(self.work / f"j{slots}.kcb") for slots in (1, 2, 24)}), 1)

    def test_both_generations_give_the_same_code(self):
        self.make_loom_units(6, targets="[gfx950, gfx1151]")
        newer = self.objects("g4")
        self.assertEqual(len(newer), 12)
        self.assertEqual(self.objects("g3", env=self.with_loom("g3")), newer)

    def test_a_processor_mode_changes_one_bit_where_a_library_has_it(self):
        vendors = self.with_loom("g4-hrx")
        plain = None
        for mode, differing_bits in (("default", 0), ("workgroup_processor", 0), ("compute_unit", 1)):
            self.one(loom("k"), f", options: {{ processor_mode: {mode} }}", name="k")
            code = next(iter(self.objects(mode, env=vendors).values()))
            plain = plain or code
            bits = sum((a ^ b).bit_count() for a, b in zip(plain, code, strict=True))
            self.assertEqual(bits, differing_bits, mode)
        error = self.failure()  # the library without them
        self.assertRegex(error, r"k@gfx1100: [^\n]*processor mode")

    def test_features_are_part_of_the_target(self):
        self.one(loom("k"), name="k", targets='["gfx942", "gfx942:sramecc+:xnack-"]')
        events = self.kc_json("build", env=self.env)
        self.assertEqual(events[-1]["compiled"], 2)
        found = {e["found_target"] for e in self.kc_json("show", "kernels.kcb") if e["event"] == "record"}
        self.assertEqual(found, {"gfx942", "gfx942:sramecc+:xnack-"})
        self.one(loom("k"), name="k", targets='["gfx1100:xnack+"]')
        self.assertRegex(self.failure(expect=2), r"kernels\.yaml:2:\d+: [^\n]*xnack")

    def test_a_report_is_kept_and_does_not_change_the_code(self):
        self.one(loom("k"), name="k")
        plain = self.objects("none")
        for mode in ("summary", "details"):
            self.one(loom("k"), f", options: {{ report: {mode} }}", name="k")
            self.assertEqual(self.objects(mode), plain)

    def test_a_no_op_build_of_a_thousand_units_opens_no_library_and_starts_nothing(self):
        self.write("k.loom", configured("k"))
        sizes = ", ".join(str(32 * i) for i in range(1, 9))
        kernels = [f"""\
  - name: k{i:02}
    sources: k.loom
    entry: k
    specializations: {{ matrix: {{ tuner.workgroup_size: [{sizes}] }} }}
""" for i in range(25)]
        targets = "[gfx942, gfx950, gfx1100, gfx1151, gfx1201]"
        self.write("kernels.yaml", f"version: 1\ntargets: {targets}\nkernels:\n{''.join(kernels)}")
        self.settle()
        summary = self.summary("build", "-j2", env=self.env, timeout=300)
        self.assertEqual((summary["units"], summary["failed"]), (1000, 0))
        log = self.root / "trace"
        done = subprocess.run(
            ["strace", "-f", "-o", log, "-e", "trace=openat,open,execve,fork,vfork,clone,clone3", KC, "build"],
            cwd=self.work, env={**self.env, "ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1000 units", done.stdout)
        trace = log.read_text()
        self.assertIn('"state"', trace, "the trace shows what is opened")
        self.assertNotIn("libloom", trace)
        self.assertNotIn("k.loom", trace)
        self.assertEqual(trace.count("execve("), 1)
        self.assertNotRegex(trace, r"\b(fork|vfork|clone3?)\(")

    # -- what fails, with place, cause and what to do -------------------------------------------------------

    def test_a_syntax_error_has_its_place(self):
        self.one((KERNELS / "bad_syntax.loom").read_text(), ", entry: fill_i32")
        error = self.failure()
        self.assertRegex(error, r"broken\.loom:11:\d+: error PARSE/003: unexpected token ':', expected ']'")

    def test_a_type_error_leads_and_what_follows_from_it_is_counted(self):
        self.one((KERNELS / "bad_type.loom").read_text(), ", entry: mixed")
        error = self.failure()
        self.assertRegex(error, r"broken\.loom:11:3: error TYPE/003: ")
        self.assertNotIn("TYPE/001", error)
        self.assertRegex(error, r"\b1 (more|further) ")
        self.assertIn("TYPE/001", self.kc("build", "-v", env=self.env, expect=1).err)

    def test_a_kernel_that_is_not_there_or_not_exported_is_named_with_what_to_do(self):
        self.one(loom("k"), ", entry: kk", name="k")
        error = self.failure()
        self.assertRegex(error, r"kernels\.yaml:4:\d+: k@gfx1100: k\.loom has no entry \"kk\"; it has k")
        # The beginning of a name that is there is not that name.
        self.one(loom("k_wide"), ", entry: k", name="k")
        self.assertRegex(self.failure(), r"kernels\.yaml:4:\d+: k@gfx1100: k\.loom has no entry \"k\"; it has k_wide")
        self.one(loom("k").replace(' export("k")', ""), name="k")
        error = self.failure()
        self.assertRegex(error, r"kernels\.yaml:4:\d+: k@gfx1100: k\.loom does not export")
        self.assertIn('export("k")', error)

    def test_a_configuration_key_that_is_not_declared_is_refused_with_the_nearest(self):
        self.one(configured("k"), ", config: { tuner.workgroup_sice: 64 }", name="k")
        error = self.failure(expect=2)
        self.assertIn("tuner.workgroup_sice", error)
        self.assertIn("tuner.workgroup_size", error)
        self.assertRegex(error, r"kernels\.yaml:4:\d+")

    def test_a_value_out_of_range_names_key_and_value(self):
        for value, words in (("512", "range"), ("33", "mul"), ("many", "integer")):
            with self.subTest(value):
                self.one(configured("k"), f", config: {{ tuner.workgroup_size: {value} }}", name="k")
                error = self.failure()
                self.assertIn("CONFIG/INVALID", error)
                self.assertIn("tuner.workgroup_size", error)
                self.assertIn(value, error)
                self.assertIn(words, error)

    def test_a_value_that_is_missing_is_named(self):
        self.one(configured("k"), name="k")
        error = self.failure()
        self.assertIn("tuner.workgroup_size", error)
        self.assertRegex(error, r"no value|unresolved")

    def test_a_missing_library_source_has_the_place_of_the_call(self):
        call = "    %more = func.call @triple(%product) : (i32) -> (i32)\n"
        declaration = "func.decl @triple(%value: i32) -> (i32)\n"
        self.one(declaration + loom("k", more=call), name="k")
        error = self.failure()
        self.assertRegex(error, r"k\.loom:\d+:5: error LOWERING/044: ")
        self.assertIn("triple", error)

    def test_a_unit_whose_code_object_lacks_its_kernel_is_not_what_the_next_build_compares_with(self):
        self.one(loom("k"), ", symbol: other", name="k")
        self.assertIn('no kernel "other"; it has k', self.failure())
        self.one(loom("k", factor=5), name="k")
        done = self.kc("build", env=self.env)
        self.assertIn("1 compiled", done.out)
        self.assertNotIn("->", done.err)

    def test_targets_that_do_not_exist_or_that_the_library_lacks(self):
        self.one(loom("k"), name="k", targets="[GFX942]")
        error = self.failure(expect=2)
        self.assertRegex(error, r"kernels\.yaml:2:\d+: [^\n]*GFX942")
        self.assertIn("gfx942", error)
        self.one(loom("k"), name="k", targets="[gfx9999]")
        self.assertRegex(self.failure(expect=2), r"kernels\.yaml:2:\d+: [^\n]*gfx9999")
        self.one(loom("k"), name="k", targets="[gfx90a, gfx1100]")
        done = self.kc("build", env=self.env, expect=1)
        self.assertRegex(done.err, r"kernels\.yaml:4:\d+: k@gfx90a: [^\n]*no gfx90a; it has [^\n]*gfx942[^\n]*gfx1201")
        self.assertIn("1 compiled", done.out)
        # And with `unsupported: skip` the answer is kept: the next build asks nobody.
        self.one(loom("k"), ", unsupported: skip", name="k", targets="[gfx90a, gfx1100]")
        summary = self.summary("build", env=self.env)
        self.assertEqual((summary["skipped"], summary["failed"]), (1, 0))
        self.one(loom("k") + "// touched\n", ", unsupported: skip", name="k", targets="[gfx90a, gfx1100]")
        self.assertEqual(self.summary("build", env=self.env)["skipped"], 1)


class UsersLibrary(Loom):
    """The same with the library of whoever runs the tests; only what holds for every Loom."""

    def setUp(self):
        KcTest.setUp(self)
        if not USERS_LIBRARY:
            self.skipTest("not run: KC_LOOM_LIBRARY names no library to test")
        self.env = self.environment(KC_LOOM_LIBRARY=USERS_LIBRARY)

    test_both_generations_give_the_same_code = None
    test_a_processor_mode_changes_one_bit_where_a_library_has_it = None


class Library(KcTest):
    """Libraries that are no Loom, or none that kc works with: exit 3 with the path and the cause."""

    def refused(self, library, *words, env=None):
        self.make_loom_units(2)
        done = self.kc("build", env=env or self.environment(KC_LOOM_LIBRARY=library), expect=3)
        self.assertIn(str(library), done.err)
        for word in words:
            self.assertRegex(done.err, word)
        self.assertFalse((self.work / "kernels.kcb").exists())
        self.assertEqual(done.err.count("error:"), 1, done.err)
        self.assert_no_temporaries()

    def test_one_that_is_not_there(self):
        self.refused(self.root / "nowhere" / "libloomc.so", "no such file")

    def test_none_at_all_tells_where_it_was_looked_for(self):
        self.make_loom_units(1)
        done = self.kc("build", expect=None)
        if done.returncode == 0:
            self.skipTest("not run: this machine has a Loom of its own")
        self.assertEqual(done.returncode, 3)
        self.assertIn("KC_LOOM_LIBRARY", done.err)

    def test_one_that_is_not_elf(self):
        self.refused(self.write("libloomc.so", "GROUP ( libloomc.so.0 )\n"), "ELF")

    def test_one_that_is_cut_short(self):
        data = (HOSTILE / "g4" / "libloomc.so").read_bytes()
        for size in (0, 40, 64, 4096, len(data) // 2):
            with self.subTest(size=size):
                self.refused(self.write("libloomc.so", data[:size]))

    def test_one_of_another_machine(self):
        data = bytearray((HOSTILE / "g4" / "libloomc.so").read_bytes())
        struct.pack_into("<H", data, 18, 183)  # EM_AARCH64
        self.refused(self.write("libloomc.so", bytes(data)), "aarch64|AArch64|machine")

    def test_one_that_lacks_a_function(self):
        self.refused(HOSTILE / "partial" / "libloomc.so", "loomc_link_module")

    def make_library(self, path, text):
        """A shared object out of C++ text, made by the compiler that made kc."""
        cache = (BUILD / "CMakeCache.txt").read_text()
        compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        source = self.write(f"{path.stem}.cpp", text)
        subprocess.run([compiler, "-shared", "-fPIC", source, "-o", path, "-ldl"], check=True)
        return path

    def test_one_that_maps_another_object_when_it_is_loaded_is_refused_with_its_name(self):
        part = self.make_library(self.root / "parts" / "libpart.so", "extern const int part = 1;\n")
        library = self.make_library(self.root / "loads" / "libloomc.so", f"""\
#include <dlfcn.h>
__attribute__((constructor)) static void load() {{ dlopen("{part}", RTLD_NOW); }}
""")
        self.make_loom_units(2)
        done = self.kc("build", env=self.environment(KC_LOOM_LIBRARY=library), expect=3)
        self.assertIn(f"has loaded {part}, which does not belong to the compiler", done.err)
        self.assertEqual(done.err.count("error:"), 1, done.err)
        self.assertEqual(self.store_files("e/*/*.kce"), [])
        # Called as a part of Loom and beside the library it belongs to the identity: then this is only no Loom.
        beside = part.rename(library.parent / "libloom_part.so")
        self.make_library(library, f"""\
#include <dlfcn.h>
__attribute__((constructor)) static void load() {{ dlopen("{beside}", RTLD_NOW); }}
""")
        self.refused(library, "no generation of Loom's ABI")

    def test_one_that_maps_another_object_late_ends_the_build_and_leaves_no_result(self):
        part = self.make_library(self.root / "parts" / "libpart.so", "extern const int part = 1;\n")
        for stage in ("index", "link", "compile"):
            with self.subTest(stage):
                self.make_loom_units(3, {0: f"@dlopen:{stage}={part}"})
                done = self.kc("build", "-j1", env=self.with_hostile(), expect=3)
                self.assertIn(f"has loaded {part}, which does not belong to the compiler", done.err)
                self.assertFalse((self.work / "kernels.kcb").exists())
                self.assertEqual(done.err.count("error:"), 1, done.err)
                # Nothing that came after it is kept, nor the unit's own; the mended sources build.
                self.make_loom_units(3)
                summary = self.summary("build", env=self.with_hostile())
                self.assertEqual((summary["hits"] + summary["compiled"], summary["failed"]), (3, 0))
                self.assertGreater(summary["compiled"], 0)
                self.kc("store", "verify")
                (self.work / "kernels.kcb").unlink()
                shutil.rmtree(self.store)

    def test_one_that_dies_while_it_is_loaded_ends_the_build_with_its_last_words(self):
        library = self.make_library(self.root / "dies" / "libloomc.so", """\
#include <cstdio>
#include <cstdlib>
__attribute__((constructor)) static void die() {
  std::fputs("the constructor gives up\\n", stderr);
  std::abort();
}
""")
        self.make_loom_units(3)
        done = self.kc("build", "-j2", env=self.environment(KC_LOOM_LIBRARY=library), expect=3)
        self.assertEqual(done.err.count("the constructor gives up"), 1, done.err)
        self.assertRegex(done.err, "SIGABRT|signal 6")
        self.assertEqual(done.err.count("error:"), 1, done.err)
        self.assertFalse((self.work / "kernels.kcb").exists())
        self.assert_no_temporaries()

    def test_generations_without_an_adapter_are_refused_by_name(self):
        self.refused(HOSTILE / "g1" / "libloomc.so", r"\bG1\b", "G3|G4")
        self.refused(HOSTILE / "g2" / "libloomc.so", r"\bG2\b", "G3|G4")

    def test_a_real_one_in_the_shape_of_g2_is_refused_by_name(self):
        library = real_loom("g2")
        if library is None:
            self.skipTest("not run: there is no Loom (packaging/bootstrap test makes one)")
        self.refused(library.resolve(), r"\bG2\b")

    def test_k07_one_that_is_replaced_while_it_is_loaded(self):
        library = self.install_hostile()
        self.install_hostile("other", variant="2").rename(f"{library}.next")
        self.refused(library, "changed during the build")
        self.assertEqual(self.store_files("e/*/*.kce"), [])
        # The one that is there now is right.
        self.assertEqual(self.summary("build", env=self.with_hostile())["compiled"], 2)

    def test_k07_one_that_is_replaced_between_planning_and_loading(self):
        self.install_hostile()
        self.make_loom_units(2)
        log = self.root / "trace"
        # The engine's start is held back, between kc's look at the library's files and the engine's.
        hold = "inject=execve:delay_enter=1500000:when=1"
        process = subprocess.Popen(
            ["strace", "-f", "-o", log, "-e", "trace=execve", "-e", hold, KC, "build"], cwd=self.work,
            env={**self.with_hostile(), "ASAN_OPTIONS": "detect_leaks=0"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.wait_until(lambda: len(self.descendants(process.pid)) >= 2)
        self.install_hostile(variant="2")
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, out + err)
        self.assertRegex(log.read_text(), r"kc-engine\".*DELAYED")
        self.assertIn("changed during the build", err)
        self.assertEqual(self.store_files("e/*/*.kce"), [])


if __name__ == "__main__":
    main()
