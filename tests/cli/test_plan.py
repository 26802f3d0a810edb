"""kc plan: units, hits and misses, and how long the misses will take by what earlier builds took."""

import shutil

from kc_test import KcTest, main, tile


class Plan(KcTest):
    def slow(self, name, milliseconds=300):
        """A source that no build has seen, which takes a while to compile."""
        self.write(name, tile(f"@entry=kernel {name} {milliseconds} @sleep={milliseconds}"))

    def make(self):
        """Kernels a and b, each for two targets."""
        self.slow("a.tilebc")
        self.slow("b.tilebc", 600)
        self.write(
            "kernels.yaml",
            "version: 1\ntargets: [sm_80, sm_90]\nkernels:\n"
            "  - { name: a, sources: a.tilebc, entry: kernel }\n"
            "  - { name: b, sources: b.tilebc, entry: kernel, targets: [sm_90] }\n",
        )
        return self.with_fake()

    def test_nothing_known_is_nothing_expected(self):
        env = self.make()
        events = self.kc_json("plan", env=env)
        self.assertEqual([e["expected_seconds"] for e in events], [None] * 4)
        done = self.kc("plan", env=env)
        self.assertEqual(done.out.splitlines()[-1], "kc: 3 units, 0 hits, 3 misses")
        self.assertRegex(done.out.splitlines()[0], r"^miss  [0-9a-f]{16}  a@sm_80$")

    def test_misses_are_expected_to_take_what_they_took_before(self):
        env = self.make()
        built = {e["unit"]: e["seconds"] for e in self.kc_json("build", env=env)[:-1]}
        self.write("a.tilebc", tile("@entry=kernel a changed @sleep=1"))
        events = self.kc_json("plan", env=env)
        self.assertEqual([e["state"] for e in events[:-1]], ["miss", "miss", "hit"])
        self.assertEqual(
            [e["expected_seconds"] for e in events[:-1]], [built["a@sm_80"], built["a@sm_90"], None]
        )
        total = events[-1]["expected_seconds"]
        self.assertAlmostEqual(total, built["a@sm_80"] + built["a@sm_90"])
        self.assertGreater(total, 0.6)
        last = self.kc("plan", env=env).out.splitlines()[-1]
        self.assertRegex(last, r"^kc: 3 units, 1 hit, 2 misses \((about \d+|under 1) s of compiling\)$")

    def test_units_that_no_build_had_count_as_the_median_of_the_known(self):
        env = self.make()
        built = sorted(e["seconds"] for e in self.kc_json("build", env=env)[:-1])
        self.slow("c.tilebc")
        with open(self.work / "kernels.yaml", "a") as manifest:
            manifest.write("  - { name: c, sources: c.tilebc, entry: kernel }\n")
            manifest.write("  - { name: same, sources: c.tilebc, entry: kernel }\n")
        events = self.kc_json("plan", env=env)
        self.assertEqual([e["expected_seconds"] for e in events[3:-1]], [None] * 4)
        # Two jobs, since two kernels share their keys.
        self.assertAlmostEqual(events[-1]["expected_seconds"], 2 * built[1])

    def test_a_job_takes_what_any_of_its_units_took(self):
        env = self.make()
        built = {e["unit"]: e["seconds"] for e in self.kc_json("build", env=env)[:-1]}
        self.write("a.tilebc", tile("@entry=kernel a changed"))
        manifest = (self.work / "kernels.yaml").read_text()
        new = "kernels:\n  - { name: new, sources: a.tilebc, entry: kernel }\n"
        self.write("kernels.yaml", manifest.replace("kernels:\n", new))
        summary = self.summary("plan", env=env)
        self.assertEqual((summary["units"], summary["misses"]), (5, 4))
        self.assertAlmostEqual(summary["expected_seconds"], built["a@sm_80"] + built["a@sm_90"])

    def test_a_part_of_a_manifest_knows_what_the_whole_took(self):
        env = self.make()
        self.kc("build", env=env)
        self.write("a.tilebc", tile("@entry=kernel a changed"))
        (event, summary) = self.kc_json("plan", "a@sm_90", env=env)
        self.assertGreater(event["expected_seconds"], 0.3)
        self.assertEqual(summary["expected_seconds"], event["expected_seconds"])

    def test_a_summary_is_a_table_of_kernels(self):
        env = self.make()
        self.kc("build", env=env)
        self.write("a.tilebc", tile("@entry=kernel a changed"))
        done = self.kc("plan", "--summary", env=env)
        lines = done.out.splitlines()
        self.assertEqual(lines[0].split(), ["KERNEL", "UNITS", "HITS", "MISSES", "TARGETS", "EXPECTED"])
        self.assertRegex(lines[1], r"^a +2 +0 +2  sm_80,sm_90  (about \d+|under 1) s$")
        self.assertRegex(lines[2], r"^b +1 +1 +0  sm_90 +-$")
        self.assertRegex(lines[3], r"^kc: 3 units, 1 hit, 2 misses \((about \d+|under 1) s of compiling\)$")
        self.assertEqual(len(lines), 4)

    def test_a_summary_as_json_has_a_line_a_kernel(self):
        env = self.make()
        self.kc("build", env=env)
        self.write("a.tilebc", tile("@entry=kernel a changed"))
        a, b, summary = self.kc_json("plan", "--summary", env=env)
        self.assertEqual(
            list(a),
            ["event", "kernel", "units", "hits", "misses", "skipped", "failed", "targets", "expected_seconds"],
        )
        self.assertEqual((a["event"], a["kernel"], a["units"], a["misses"]), ("kernel", "a", 2, 2))
        self.assertEqual(a["targets"], ["sm_80", "sm_90"])
        self.assertEqual((b["hits"], b["expected_seconds"]), (1, None))
        self.assertEqual(summary["expected_seconds"], a["expected_seconds"])

    def test_a_unit_that_cannot_be_compiled_is_shown_as_failed(self):
        env = self.make()
        self.write("b.tilebc", "")
        events = self.kc_json("plan", env=env, expect=1)
        self.assertEqual([e["state"] for e in events[:-1]], ["miss", "miss", "failed"])
        self.assertIn("the file is empty", events[2]["error"])
        self.assertEqual((events[-1]["misses"], events[-1]["failed"]), (2, 1))
        done = self.kc("plan", env=env, expect=1)
        self.assertRegex(done.out, r"fail  [0-9a-f]{16}  b@sm_90  the file is empty")
        self.assertIn("2 misses, 1 failed", done.out)
        self.assertEqual(done.err, "")
        rows = self.kc("plan", "--summary", env=env, expect=1).out.splitlines()
        self.assertEqual(rows[0].split(), ["KERNEL", "UNITS", "HITS", "MISSES", "FAILED", "TARGETS", "EXPECTED"])
        self.assertRegex(rows[2], r"^b +1 +0 +0 +1  sm_90 +-$")

    def test_a_lost_store_forgets_its_times(self):
        env = self.make()
        self.kc("build", env=env)
        shutil.rmtree(self.store)
        self.assertIsNone(self.summary("plan", env=env)["expected_seconds"])


class Facts(KcTest):
    """What a compiled unit says against the last build."""

    def make(self, first="", count=1):
        for i in range(count):
            self.write(f"k{i:03}.tilebc", tile(f"@entry=kernel {i} {first}"))
        kernels = [f"  - {{ name: k{i:03}, sources: k{i:03}.tilebc, entry: kernel }}\n" for i in range(count)]
        self.write("kernels.yaml", "version: 1\ntargets: [sm_90]\nkernels:\n" + "".join(kernels))
        return self.with_fake()

    def test_a_unit_whose_numbers_differ_says_so_once(self):
        env = self.make("@registers=96")
        self.assertEqual(self.kc("build", env=env).err, "")
        self.make("@registers=128 @local=48")
        done = self.kc("build", env=env)
        self.assertIn("k000@sm_90: registers 96 -> 128, local memory 0 -> 48", done.err)
        self.assertEqual(len(done.err.splitlines()), 1)
        # A hit compares nothing, and the same numbers say nothing.
        self.make("@registers=96")
        self.assertEqual(self.kc("build", env=env).err, "")
        self.make("@registers=96 more")
        self.assertEqual(self.kc("build", env=env).err, "")
        self.make("@registers=40")
        self.assertEqual(self.kc("build", "-q", env=env).err, "")

    def test_json_has_the_changes(self):
        env = self.make("@registers=96")
        unit = self.kc_json("build", env=env)[0]
        self.assertEqual(unit["changes"], [])
        self.make("@registers=128")
        done = self.kc("build", "--format=json", env=env)
        self.assertIn('"changes":[{"metric":"registers","before":96,"after":128}]', done.out)
        self.assertIn("registers 96 -> 128", done.err)

    def test_a_failed_build_in_between_does_not_lose_the_numbers(self):
        env = self.make("@registers=96")
        self.kc("build", env=env)
        self.make("@exit=5")
        self.kc("build", env=env, expect=1)
        self.make("@registers=97")
        self.assertIn("registers 96 -> 97", self.kc("build", env=env).err)

    def test_a_unit_built_by_name_knows_the_last_whole_build(self):
        env = self.make("@registers=96", count=2)
        self.kc("build", env=env)
        self.make("@registers=97", count=2)
        done = self.kc("build", "k001", env=env)
        self.assertIn("k001@sm_90: registers 96 -> 97", done.err)

    def test_more_units_than_fit_a_screen_are_counted(self):
        env = self.make("@registers=96", count=25)
        self.kc("build", env=env)
        self.make("@registers=97", count=25)
        done = self.kc("build", env=env)
        self.assertEqual(len(done.err.splitlines()), 21, done.err)
        self.assertIn("and 5 more units that differ from the last build", done.err)
        self.make("@registers=98", count=25)
        self.assertEqual(self.kc("build", "-v", env=env).err.count("registers 97 -> 98"), 25)


if __name__ == "__main__":
    main()
