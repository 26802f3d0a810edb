"""--require-cached: every unit must be in the store; what is not is listed, all of it, before anything is compiled."""

import os
import shutil
import subprocess

from kc_test import KC, KcTest, main, tile


class RequireCached(KcTest):
    def missing(self, *arguments, env, expect=1):
        """Runs a build that must start nothing; the units that it lists, in its order."""
        log = self.root / "execs"
        done = subprocess.run(
            [shutil.which("strace"), "-f", "-e", "trace=execve", "-o", log, KC, "build", "--require-cached", *arguments],
            cwd=self.work, env={**env, "ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, text=True,
        )
        self.assertEqual(done.returncode, expect, done.stderr)
        self.assertEqual(log.read_text().count("execve("), 1)
        self.err = done.stderr
        return [line.split()[2] for line in done.stderr.splitlines() if " in the store" in line]

    def test_a_narrowed_build_asks_for_its_own_units_alone(self):
        self.make_units(3, targets="[sm_80, sm_90]")
        env = self.with_fake()
        self.kc("build", "k001", env=env)
        self.assertEqual(self.missing("k001", env=env, expect=0), [])
        self.assertEqual(self.missing("k00[12]", "--target", "sm_90", "-o", "p.kcb", env=env), ["k002@sm_90"])
        self.assertEqual(self.missing("k000", "k001", env=env), ["k000@sm_80", "k000@sm_90"])
        all_missing = [f"k00{i}@{t}" for i in (0, 2) for t in ("sm_80", "sm_90")]
        for more in ([], ["-n"], ["--allow-partial"], ["-k1"]):
            self.assertEqual(self.missing(*more, env=env), all_missing)
            self.assertEqual(self.err.count("`kc build` compiles what is missing"), 1)
        self.assertEqual(list(self.work.glob("*.kcb")), [])
        # A store that nothing is read of has nothing.
        for mode in ("off", "refresh"):
            self.assertEqual(len(self.missing("--store-mode", mode, env=env)), 6)

    def test_a_dry_run_asks_as_the_build_would(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", env=env)
        self.assertEqual(self.missing("-n", env=env, expect=0), [])
        self.write("k001.tilebc", tile("@entry=kernel another"))
        self.assertEqual(self.missing("-n", env=env), ["k001@sm_90"])

    def test_loom_units_without_a_record_are_missing_since_nobody_links_them(self):
        self.make_loom_units(3)
        env = self.with_hostile()
        self.kc("build", env=env)
        records = self.store_files("r/*/*.kcr")
        os.unlink(records[1])
        self.assertEqual(len(self.missing(env=env)), 1)
        shutil.rmtree(self.store / "v1" / "r")
        self.assertEqual(self.missing(env=env), [f"k00{i}@gfx1100" for i in range(3)])
        # A build links them, and finds their code.
        self.assertIn("0 compiled, 3 hits", self.kc("build", "-o", "b.kcb", env=env).out)
        self.assertEqual(self.missing(env=env, expect=0), [])
        # A record whose entry is gone leads nowhere.
        os.unlink(self.store_files("e/*/*.kce")[0])
        self.assertEqual(len(self.missing(env=env)), 1)

    def test_an_answer_that_there_is_no_code_counts_where_the_manifest_allows_it(self):
        self.write("a.tilebc", tile("@entry=kernel a"))
        manifest = "version: 1\ntargets: [sm_75, sm_90]\nkernels:\n  - { name: a, sources: a.tilebc, entry: kernel, unsupported: skip }\n"
        self.write("kernels.yaml", manifest)
        env = self.with_fake()
        self.kc("build", env=env)
        self.assertEqual(self.missing(env=env, expect=0), [])
        self.write("kernels.yaml", manifest.replace("skip", "error"))
        self.assertEqual(self.missing(env=env), ["a@sm_75"])
        self.assertRegex(self.err, r"a@sm_75 has no code in the store: tileiras 13\.4\S* has no sm_75")

    def test_units_that_cannot_be_compiled_at_all_are_told_beside_what_is_missing(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", env=env)
        self.write("k000.tilebc", tile("@entry=kernel another"))
        self.write("k002.tilebc", b"no bytecode")
        self.assertEqual(self.missing(env=env), ["k000@sm_90"])
        self.assertIn("k002@sm_90", self.err)


if __name__ == "__main__":
    main()
