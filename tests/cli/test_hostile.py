"""Compilers that misbehave: each fault costs the unit that it belongs to and nothing else.

The stand-ins are tests/support/hostile_loom (a library in the engine) and tests/support/fake_tileiras (a program).
KC_TEST_LONG=1, or KC_TEST_LONG_ENGINE=1 for these alone, runs the tests at random moments as often as a release wants:
50 deaths of the engine and 20 interrupts instead of a few.
"""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time

from kc_test import BUILD, KC, KcTest, main, tile

LONG = bool(os.environ.get("KC_TEST_LONG") or os.environ.get("KC_TEST_LONG_ENGINE"))
SANITIZED = re.search(r"^KC_SANITIZE:\w+=\w", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE) is not None
COUNT = 30
POSITIONS = (0, COUNT // 2, COUNT - 1)
TIMEOUT = 1  # second, of a unit that hangs
# What a build with a fault may take; a sanitizer makes everything several times slower.
LIMIT = 15.0 if SANITIZED else 5.0


class Faults(KcTest):
    """What is the same for both compilers."""

    def check(self, directive, words, position, expected_text=""):
        """One build of 30 units of which one is told to misbehave, and one after it was mended."""
        shutil.rmtree(self.store, ignore_errors=True)
        self.make({position: directive})
        name = f"k{position:03}@{self.target}"
        started = time.monotonic()
        events = self.kc_json("build", "-j2", "--timeout", f"{TIMEOUT}s", env=self.env, expect=1)
        seconds = time.monotonic() - started
        units, summary = events[:-1], events[-1]
        self.assertEqual([e["unit"] for e in units if e["state"] != "compiled"], [name])
        guilty = units[position]
        self.assertEqual(guilty["state"], "failed")
        told = guilty["error"] + " ".join(d["message"] for d in guilty["diagnostics"])
        self.assertRegex(told, words)
        self.assertEqual((summary["compiled"], summary["failed"], summary["output_state"]), (COUNT - 1, 1, "none"))
        self.assertLess(seconds, LIMIT + (2 * TIMEOUT if "hang" in directive else 0))
        self.assert_no_temporaries()
        # The others are in the store, and right: with the mended unit they make the bundle of a build without faults.
        self.kc("store", "verify")
        self.make({})
        summary = self.summary("build", "-j2", env=self.env)
        self.assertEqual((summary["hits"], summary["compiled"]), (COUNT - 1, 1))
        self.assertEqual(self.digest(self.work / "kernels.kcb"), self.reference())
        return guilty

    def reference(self):
        """Digest of the bundle that a build without faults makes, by another store."""
        if self._reference is None:
            self.kc("build", "-j2", "-o", "reference.kcb", "--store-mode=off", env=self.env)
            type(self)._reference = self.digest(self.work / "reference.kcb")
        return self._reference


class LoomFaults(Faults):
    _reference = None
    target = "gfx1100"

    def setUp(self):
        super().setUp()
        self.env = self.with_hostile()

    def make(self, directives):
        self.make_loom_units(COUNT, directives)


class TileirasFaults(Faults):
    _reference = None
    target = "sm_90"

    def setUp(self):
        super().setUp()
        self.env = self.with_fake()

    def make(self, directives):
        self.make_units(COUNT)
        for i, directive in directives.items():
            self.write(f"k{i:03}.tilebc", tile(f"@entry=kernel n={i} {directive}"))


# name: what the source says, what kc says of the unit
IN_PROCESS = {
    "a_segmentation_fault": ("@segfault", "SIGSEGV"),
    "a_segmentation_fault_of_the_linker": ("@segfault:link", "SIGSEGV"),
    "a_segmentation_fault_of_the_parser": ("@segfault:index", "SIGSEGV"),
    "an_abort": ("@abort", "SIGABRT"),
    "an_exit_with_code_0": ("@exit=0", "exit code"),
    "a_hang": ("@hang", "took longer than 1s"),
    "a_stack_overflow": ("@overflow", "SIGSEGV"),
    "a_kill": ("@kill=9", "SIGKILL"),
    "garbage": ("@output=garbage", "not a whole AMD code object"),
    "a_truncated_code_object": ("@output=truncated", "not a whole AMD code object"),
    "an_empty_code_object": ("@output=empty", "not a whole AMD code object"),
    "no_code_object": ("@output=none", "no code object"),
    "a_wrong_processor": ("@processor=gfx1201", "gfx1201"),
    "another_directory": ("@chdir", "working directory"),
    "another_locale": ("@locale", "locale"),
    "another_signal_mask": ("@sigmask", "signal mask"),
    "another_rounding_mode": ("@rounding", "rounding mode"),
    "an_exception": ("@throw", "the hostile library throws"),
    "an_exception_of_the_linker": ("@throw:link", "the hostile library throws"),
    "a_corrupted_neighbour_and_a_crash": ("@corrupt=60", "SIGSEGV"),
    "an_error": ("@fail=MY/001:no%20such%20luck", "no such luck"),
    "an_error_of_the_library": ("@status=13:broken%20inside", "broken inside"),
    "no_memory": ("@status=8:none%20left", "memory"),
}
AS_CHILD = {
    "a_segmentation_fault": ("@signal=11", "SIGSEGV"),
    "an_abort": ("@signal=6", "SIGABRT"),
    "an_exit_with_code_0_and_no_output": ("@exit=0", "output"),
    "an_exit_with_another_code": ("@exit=77", "77"),
    "a_hang": ("@hang", "after 1.00 s"),
    "a_stack_overflow": ("@overflow", "SIGSEGV"),
    "a_kill": ("@signal=9", "SIGKILL"),
    "an_exception": ("@throw", "SIGABRT"),
    "garbage": ("@output=garbage", "cubin"),
    "a_truncated_cubin": ("@output=truncated", "cubin"),
    "an_empty_cubin": ("@output=empty", "cubin|output"),
    "no_cubin": ("@output=none", "output"),
    "a_wrong_architecture": ("@arch=sm_80", "sm_80"),
}


def add_tests(case, faults):
    for name, (directive, words) in faults.items():
        def test(self, directive=directive, words=words):
            for position in POSITIONS:
                with self.subTest(position=position):
                    self.check(directive, words, position)
        setattr(case, f"test_{name}_costs_only_its_own_unit", test)


add_tests(LoomFaults, IN_PROCESS)
add_tests(TileirasFaults, AS_CHILD)


class Hostile(KcTest):
    def test_what_a_compiler_prints_never_reaches_kcs_own_stdout(self):
        said = "@stdout=on%20stdout%0a @stderr=on%20stderr%0a"
        self.make_loom_units(4, {i: said for i in range(4)})
        done = self.kc("build", "-j2", env=self.with_hostile())
        self.assertNotIn("on stdout", done.out)
        self.assertEqual(len(done.out.splitlines()), 1)
        self.kc("verify", "kernels.kcb")

    def test_a_warning_is_told_with_its_code_and_place(self):
        self.make_loom_units(1, {0: "@warn=MY/007:careful"})
        done = self.kc("build", env=self.with_hostile())
        self.assertIn("kc: warning: k000.loom:1:1: k000@gfx1100: MY/007: careful\n", done.err)

    def test_no_more_units_are_said_to_run_than_there_are_slots(self):
        # What ends beside the slow one is held back until that one has ended, too. The others take
        # their time as well: the line on the terminal is redrawn now and then, not at every change.
        self.make_loom_units(8, {0: "@sleep=2500", **{i: "@sleep=200" for i in range(1, 8)}})
        told = self.kc_on_terminal("build", "-j2", env=self.with_hostile(TERM="xterm"), with_stderr=True)
        running = {int(count) for count in re.findall(r"(\d+) running", told)}
        self.assertEqual(max(running), 2, told)

    def test_a_fault_that_does_not_come_back_costs_nothing_but_time(self):
        mark = self.root / "mark"
        env = self.with_hostile()
        for directive in ("@segfault", "@exit=0", "@locale", "@throw", "@corrupt=60"):
            with self.subTest(directive):
                mark.unlink(missing_ok=True)
                shutil.rmtree(self.store, ignore_errors=True)
                self.make_loom_units(12, {5: f"@once={mark} {directive}"})
                summary = self.summary("build", "-j2", env=env)
                self.assertTrue(mark.exists())
                self.assertEqual((summary["compiled"], summary["failed"]), (12, 0))
                # Everything that ran beside it was looked at again: the same bundle comes from a store of its own.
                self.kc("build", "-o", "again.kcb", "-j2", "--store-mode=off", env=env)
                self.assertEqual(self.digest(self.work / "kernels.kcb"), self.digest(self.work / "again.kcb"))

    def test_a_compiler_that_eats_memory_fails_alone_under_a_limit_of_address_space(self):
        if SANITIZED:
            self.skipTest("not run: sanitizers reserve more address space than a limit leaves")
        env = self.with_hostile(KC_TILEIRAS=self.install_fake())

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

        self.make_loom_units(6, {2: "@eat=3GiB"})
        manifest = (self.work / "kernels.yaml").read_text().replace("[gfx1100]", "[gfx1100, sm_90]")
        self.write("eats.tilebc", tile("@entry=kernel @eat=3GiB"))
        self.write("kernels.yaml", manifest + "  - { name: eats, sources: eats.tilebc, entry: kernel }\n")
        done = subprocess.run(
            [KC, "build", "-j2"], cwd=self.work, env=env, preexec_fn=limit, capture_output=True, text=True, timeout=60,
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"k002@gfx1100: [^\n]*memory")
        self.assertRegex(done.stderr, r"eats@sm_90: [^\n]*")
        self.assertIn("5 compiled", done.stdout)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 5)

    def test_an_engine_that_dies_before_any_job_ends_the_build_with_its_last_words(self):
        program = self.root / "bin" / "kc"
        engine = self.root / "libexec" / "kc" / "kc-engine"
        for path in (program, engine):
            path.parent.mkdir(parents=True)
        try:
            os.link(KC, program)
        except OSError:
            shutil.copy2(KC, program)
        engine.write_text("#!/bin/sh\necho 'no room at all' >&2\nexit 7\n")
        engine.chmod(0o755)
        self.make_loom_units(3)
        done = subprocess.run(
            [program, "build"], cwd=self.work, env=self.with_hostile(), capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("no room at all", done.stderr)
        self.assertEqual(done.stderr.count("no room at all"), 1, "it was not started again")

    def start_slow_build(self, count=40):
        """A build of about half a second; a file `first.*` appears when a job runs."""
        self.make_loom_units(count, {i: f"@once={self.root}/first.{i} @sleep=20" for i in range(count)})
        return self.start("build", "-j2", env=self.with_hostile())

    def wait_for_first_job(self):
        self.wait_until(lambda: list(self.root.glob("first.*")))

    def forget_jobs(self):
        shutil.rmtree(self.store, ignore_errors=True)
        for mark in self.root.glob("first.*"):
            mark.unlink()

    def test_an_engine_killed_at_any_moment_after_its_first_job_costs_only_time(self):
        reference = None
        for round_ in range(50 if LONG else 6):
            with self.subTest(round=round_):
                self.forget_jobs()
                process = self.start_slow_build()
                self.wait_for_first_job()
                time.sleep(random.uniform(0, 0.35))
                if engine := self.engine_of(process):  # else it has ended by itself
                    os.kill(engine, signal.SIGKILL)
                out, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 0, out + err)
                if reference is None:
                    self.kc("build", "-o", "reference.kcb", "-j2", "--store-mode=off", env=self.with_hostile())
                    reference = self.digest(self.work / "reference.kcb")
                self.assertEqual(self.digest(self.work / "kernels.kcb"), reference)
                self.assert_no_temporaries()
                (self.work / "kernels.kcb").unlink()
        self.kc("store", "verify")

    def test_a_killed_kc_leaves_nothing_alive_a_second_later(self):
        env = self.with_hostile(KC_TILEIRAS=self.install_fake())
        self.make_loom_units(4, {i: "@hang" for i in range(4)})
        for i in range(4):
            self.write(f"t{i}.tilebc", tile(f"@entry=kernel n={i} @spawn-grandchild @hang"))
        manifest = (self.work / "kernels.yaml").read_text().replace("[gfx1100]", "[gfx1100, sm_90]")
        manifest += "".join(f"  - {{ name: t{i}, sources: t{i}.tilebc, entry: kernel }}\n" for i in range(4))
        self.write("kernels.yaml", manifest)
        process = self.start("build", "-j8", env=env)
        # kc, its engine, four programs with a child each
        running = self.wait_until(lambda: (d := self.descendants(process.pid)) and len(d) >= 9 and d)
        process.kill()
        process.communicate()
        time.sleep(1.0)
        self.assertEqual(self.alive(running), [])
        self.assertEqual(self.store_files("tmp/*"), [])

    def minds(self, process, number):
        """Whether a process has ended or does something of its own about a signal; before that the signal ends it."""
        with open(f"/proc/{process.pid}/status") as file:
            status = dict(line.split(":", 1) for line in file)
        masks = [int(status[name], 16) for name in ("SigBlk", "SigCgt") if name in status]
        return status["State"].strip().startswith("Z") or any(mask >> (number - 1) & 1 for mask in masks)

    def test_an_interrupt_at_any_moment_ends_within_a_second_and_leaves_nothing(self):
        env = self.with_hostile()
        for round_ in range(20 if LONG else 5):
            with self.subTest(round=round_):
                self.forget_jobs()
                process = self.start_slow_build()
                self.wait_until(lambda: self.minds(process, signal.SIGINT))
                time.sleep(random.uniform(0, 0.5))
                running = self.descendants(process.pid)
                process.send_signal(signal.SIGINT)
                sent = time.monotonic()
                out, err = process.communicate(timeout=20)
                self.assertLess(time.monotonic() - sent, 1.0)
                if process.returncode == 0:
                    self.assertTrue((self.work / "kernels.kcb").exists())  # it had ended before
                else:
                    self.assertEqual(process.returncode, 130, out + err)
                self.wait_until(lambda: not self.alive(running), seconds=1)
                self.assert_no_temporaries()
                summary = self.summary("build", "-j2", env=env)
                self.assertEqual(summary["failed"], 0)
                self.kc("build", "-o", "reference.kcb", "-j2", "--store-mode=off", env=env)
                self.assertEqual(self.digest(self.work / "kernels.kcb"), self.digest(self.work / "reference.kcb"))
                (self.work / "kernels.kcb").unlink()
        self.kc("store", "verify")

    def test_k07_a_library_replaced_after_it_was_loaded_mixes_nothing(self):
        self.make_loom_units(12, {i: "@sleep=100" for i in range(12)})
        env = self.with_hostile()
        self.kc("build", "k000", env=env)
        process = self.start("build", "-j2", env=env)
        self.wait_until(lambda: len(self.store_files("e/*/*.kce")) >= 4)
        self.install_hostile(variant="2")
        out, err = process.communicate(timeout=60)
        kept = len(self.store_files("e/*/*.kce"))
        # A mapped library stays what it was: its results are those of the file that was identified. If kc sees the
        # change all the same, the build ends with exit 3.
        self.assertIn(process.returncode, (0, 3), out + err)
        if process.returncode == 3:
            self.assertIn("compiler changed during the build", err)
            self.assertLess(kept, 12)
        summary = self.summary("build", "-j2", env=env)
        self.assertEqual((summary["hits"], summary["compiled"]), (0, 12))
        self.kc("build", "-o", "clean.kcb", "-j2", "--store-mode=off", env=env)
        self.assertEqual(self.digest(self.work / "kernels.kcb"), self.digest(self.work / "clean.kcb"))
        self.kc("store", "verify")


if __name__ == "__main__":
    main()
