"""That the benchmarks can be run: figures are for quiet machines, but what makes them must not rot."""

import json
import os
import subprocess
import sys
import unittest

from kc_test import BUILD, SOURCE, KcTest, main

BENCH = SOURCE / "tests" / "bench"
sys.path.insert(0, str(BENCH))

from kcbench import case, measure  # noqa: E402
from kcbench.cases import ALL  # noqa: E402


class Bench(KcTest):
    def bench(self, *arguments, build=BUILD, expect=0, path=None):
        done = subprocess.run(
            [sys.executable, "-B", BENCH / "bench.py", "--build", build, *arguments],
            env=self.environment(PATH=path or os.environ["PATH"]), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=300,
        )
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def make(self, *arguments):
        subprocess.run([sys.executable, "-B", BENCH / "make_units.py", *arguments, self.work], check=True)

    # -- the runner -----------------------------------------------------------------------------------------

    def test_the_list_has_every_case_with_goal_and_needs(self):
        listed = self.bench("--list").stdout
        for each in ALL:
            self.assertIn(f"\n{each.name} ", "\n" + listed)
        self.assertEqual(listed.count("goal "), len(ALL))

    def test_names_of_cases_are_unique(self):
        self.assertEqual(len({each.name for each in ALL}), len(ALL))

    def test_the_page_on_performance_has_a_row_for_every_case(self):
        figures = (SOURCE / "docs" / "performance.md").read_text().partition("## Figures")[2]
        for each in ALL:
            self.assertIn(f"\n| `{each.name}` | {each.ours} | {each.rival} |", figures)

    def test_a_run_is_reported_as_text_and_json(self):
        report = self.root / "report.json"
        out = self.bench("--runs", "1", "--json", report, "hostile-matrix", "memory-noop-none", expect=2).stderr
        self.assertIn("no case memory-noop-none", out)
        out = self.bench("--runs", "2", "--json", report, "hostile-matrix*").stdout
        self.assertEqual(len(out.splitlines()), 2)
        facts = json.loads(report.read_text())
        first, second = facts["results"]
        self.assertEqual((first["case"], second["case"]), ("hostile-matrix", "hostile-matrix-mem"))
        self.assertEqual(first["kc_figures"]["runs"], 2)
        self.assertGreater(second["kc_figures"]["median"], 1e6)
        self.assertEqual(second["reached"], second["ratio"] <= 1)
        self.assertIn("kc", facts["versions"])

    def test_the_markdown_table_has_a_row_a_case(self):
        rows = self.bench("--runs", "1", "--markdown", "hostile-deep").stdout.splitlines()
        self.assertTrue(rows[2].startswith("| `hostile-deep` |"), rows)
        self.assertRegex(rows[-1], r"^Measured with kc \d.* on \d+ CPUs\.$")

    def test_what_is_missing_is_said_and_the_case_is_not_run(self):
        report = self.root / "report.json"
        out = self.bench("--json", report, "start", path=str(self.root)).stdout
        self.assertIn("not run: ninja is not installed", out)
        self.assertIn("ninja is not installed", json.loads(report.read_text())["results"][0]["not_run"])

    def test_a_case_that_cannot_be_measured_fails_and_the_next_one_runs(self):
        program = self.root / "broken" / "bin" / "kc"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\necho 'kernels.yaml:1:1: no' >&2\n"
                           "case $* in *version*) echo 0.0.1;; *) exit 2;; esac\n")
        program.chmod(0o755)
        out = self.bench("--runs", "1", "hostile-matrix", "hostile-deep", build=self.root / "broken", expect=1).stdout
        self.assertRegex(out, r"hostile-matrix +FAILED: .*not for '1000000000'")
        self.assertRegex(out, r"hostile-deep +ratio")

    # -- what it measures with ------------------------------------------------------------------------------

    def test_peak_memory_is_that_of_the_command_alone(self):
        ballast = bytearray(64 << 20)
        log = self.root / "log"
        env = self.environment()
        self.assertLess(measure.peak_memory(["/bin/true"], env, self.root, log), 16 << 20)
        size = 40 << 20
        taken = measure.peak_memory([sys.executable, "-c", f"bytearray({size})"], env, self.root, log)
        self.assertGreater(taken, size)
        self.assertLess(taken, size + (32 << 20))
        self.assertEqual(len(ballast), 64 << 20)

    def test_a_command_that_ends_otherwise_than_expected_is_no_figure(self):
        for function in (measure.seconds, measure.peak_memory):
            with self.assertRaisesRegex(measure.CommandFailed, "ended with 3 instead of 0: why"):
                function(["/bin/sh", "-c", "echo why >&2; exit 3"], self.environment(), self.root, self.root / "log")

    def test_a_ratio_is_the_median_of_the_pairs_ratios(self):
        figures = case.Measured([1.0, 4.0, 3.0], [2.0, 2.0, 4.0])
        slower = case.Outcome(case.Case("a", "", "", case.at_most(0.7), (), None), figures)
        self.assertEqual((slower.ratio, slower.is_reached), (0.75, False))
        faster = case.Outcome(case.Case("a", "", "", case.at_least(1.3), (), None), figures)
        self.assertAlmostEqual(faster.ratio, 4 / 3)
        self.assertTrue(faster.is_reached)

    # -- the generator --------------------------------------------------------------------------------------

    def test_the_plan_of_a_generated_manifest_has_its_units(self):
        self.make("--units", "6")
        events = self.kc_json("plan", env=self.with_fake())
        self.assertEqual([event["unit"] for event in events[:-1]], [f"k{i:05}@sm_90" for i in range(6)])

    def test_a_table_gives_the_same_units_as_a_matrix(self):
        self.make("--units", "6", "--kernels", "2")
        matrix = self.kc("plan", env=self.with_fake()).out
        self.assertEqual(matrix.count("V="), 6)
        self.make("--units", "6", "--kernels", "2", "--table")
        self.assertIn("table: tables/k00001.csv", (self.work / "kernels.yaml").read_text())
        self.assertEqual(self.kc("plan", env=self.with_fake()).out, matrix)

    def test_generated_code_comes_through_the_compiler_as_it_is(self):
        self.make("--units", "4", "--kernels", "2", "--code", "4096")
        self.kc("build", env=self.with_fake())
        self.kc("extract", "units.kcb", "--all", self.root / "objects")
        for source in sorted((self.work / "sources").iterdir()):
            kernel, value = source.stem.split("_")
            code = (self.root / "objects" / kernel / "sm_90" / f"V={value}.cubin").read_bytes()
            self.assertIn(source.read_bytes()[-4096:], code)

    def test_the_rivals_have_an_edge_a_unit(self):
        self.make("--units", "6", "--kernels", "2")
        for tool, said in (("ninja", "ninja: no work to do."), ("make", "make: Nothing to be done for 'all'.")):
            with self.subTest(tool):
                env = self.environment(PATH=os.environ["PATH"])
                try:
                    subprocess.run([tool], cwd=self.work, env=env, check=True, capture_output=True)
                except FileNotFoundError:
                    raise unittest.SkipTest(f"not run: {tool} is not installed") from None
                self.assertEqual(len(list((self.work / "out").iterdir())), 6)
                again = subprocess.run([tool], cwd=self.work, env=env, check=True, capture_output=True, text=True)
                self.assertIn(said, again.stdout)
                for path in (self.work / "out").iterdir():
                    path.unlink()


if __name__ == "__main__":
    main()
