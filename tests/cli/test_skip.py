"""`unsupported: skip`: units that a compiler has no code for are left out, and that answer is kept."""

import os
import shutil

from kc_test import KcTest, main, tile

MANIFEST = (
    "version: 1\ntargets: [{targets}]\nkernels:\n"
    "  - {{ name: a, sources: a.tilebc, entry: kernel, unsupported: {a} }}\n"
    "  - {{ name: b, sources: {source}, entry: kernel, unsupported: {b} }}\n"
)


class Skip(KcTest):
    def make(self, a="skip", b="skip", targets="sm_75, sm_90", source="b.tilebc"):
        for name in "ab":
            self.write(f"{name}.tilebc", tile(f"@entry=kernel {name}"))
        self.write("kernels.yaml", MANIFEST.format(a=a, b=b, targets=targets, source=source))
        return self.with_fake()

    def states(self, *arguments, **options):
        return {e["unit"]: e["state"] for e in self.kc_json(*arguments, **options) if e["event"] == "unit"}

    def test_a_target_that_the_compiler_lacks_is_left_out_and_the_bundle_is_whole(self):
        env = self.make()
        done = self.kc("build", env=env)
        self.assertRegex(done.err, r"skipped: a@sm_75: tileiras 13\.4\S* has no sm_75; it has sm_80")
        self.assertRegex(done.err, r"skipped: b@sm_75: ")
        self.assertEqual(len(done.err.splitlines()), 2, done.err)
        self.assertIn("4 units: 2 compiled, 0 hits, 2 skipped in", done.out)
        self.assertNotIn("partial", done.out)
        bundle = self.kc_json("show", "kernels.kcb")
        self.assertFalse(bundle[0]["partial"])
        self.assertEqual([r["unit"] for r in bundle[1:]], ["a@sm_90", "b@sm_90"])
        self.kc("verify", "kernels.kcb")
        self.kc("store", "verify", env=env)

    def test_the_answer_is_kept_so_that_nothing_is_asked_again(self):
        env = self.make()
        self.kc("build", env=env)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 4)
        self.assertIn("is up to date (4 units, 2 skipped)", self.kc("build", env=env).out)
        summary = self.summary("build", env=env)
        self.assertEqual((summary["units"], summary["hits"], summary["skipped"]), (4, 2, 2))
        whole = self.digest(self.work / "kernels.kcb")
        for command in (["build", "--require-cached"], ["pack"]):
            os.unlink(self.work / "kernels.kcb")
            events = self.kc_json(*command, env=env)
            self.assertEqual([e["state"] for e in events[:-1]], ["skipped", "hit", "skipped", "hit"])
            self.assertIn("has no sm_75", events[0]["error"])
            self.assertEqual(events[0]["facts"], {})
            self.assertEqual((events[-1]["compiled"], events[-1]["skipped"]), (0, 2))
            self.assertEqual(self.digest(self.work / "kernels.kcb"), whole)
        self.assertEqual(
            self.states("plan", env=env), {"a@sm_75": "skipped", "a@sm_90": "hit", "b@sm_75": "skipped", "b@sm_90": "hit"}
        )
        self.assertIn("kc: 4 units, 2 hits, 0 misses, 2 skipped", self.kc("plan", env=env).out)
        self.assertIn("0 of 4 units would be compiled", self.kc("build", "-n", env=env).out)

    def test_another_compiler_is_asked_again(self):
        env = self.make()
        self.kc("build", env=env)
        env["KC_TILEIRAS"] = str(self.install_fake("newer", variant="2"))
        summary = self.summary("build", env=env)
        self.assertEqual((summary["hits"], summary["compiled"], summary["skipped"]), (0, 2, 2))
        self.assertEqual(len(self.store_files("e/*/*.kce")), 8)

    def test_without_it_a_kept_answer_is_no_hit_and_the_unit_fails_with_its_reason(self):
        env = self.make()
        self.kc("build", env=env)
        self.make(a="error")
        self.assertEqual(
            self.states("plan", env=env), {"a@sm_75": "miss", "a@sm_90": "hit", "b@sm_75": "skipped", "b@sm_90": "hit"}
        )
        done = self.kc("build", env=env, expect=1)
        self.assertRegex(done.err, r"error: kernels\.yaml:4:13: a@sm_75: tileiras 13\.4\S* has no sm_75")
        self.assertIn("4 units: 0 compiled, 2 hits, 1 skipped, 1 failed in", done.out)
        done = self.kc("pack", env=env, expect=1)
        self.assertRegex(done.err, r"a@sm_75 has no code in the store: tileiras 13\.4\S* has no sm_75")
        self.assertNotIn("b@sm_75 has no code", done.err)

    def test_a_failed_answer_is_not_kept_when_no_kernel_allows_it(self):
        env = self.make(a="error", b="error")
        self.kc("build", env=env, expect=1)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 2)

    def test_units_that_share_a_key_each_follow_their_own_kernel(self):
        for a, b in (("skip", "error"), ("error", "skip")):
            with self.subTest(a=a, b=b):
                shutil.rmtree(self.store, ignore_errors=True)
                env = self.make(a=a, b=b, source="a.tilebc")
                failing, skipping = ("b", "a") if a == "skip" else ("a", "b")
                for _ in range(2):  # the first asks the compiler, the second finds the answer
                    states = self.states("build", env=env, expect=1)
                    self.assertEqual((states[f"{failing}@sm_75"], states[f"{skipping}@sm_75"]), ("failed", "skipped"))
                    self.assertEqual(len(self.store_files("e/*/*.kce")), 2)
                # With both allowing it, the same answer is good for both.
                env = self.make(a="skip", b="skip", source="a.tilebc")
                self.assertEqual(self.states("build", "--require-cached", env=env)[f"{failing}@sm_75"], "skipped")
                os.unlink(self.work / "kernels.kcb")

    def test_a_type_that_the_target_lacks_is_skipped_and_other_failures_are_not(self):
        env = self.make(targets="sm_80, sm_90")
        self.write("a.tilebc", tile("@entry=kernel @incompatible=sm_80"))
        done = self.kc("build", env=env)
        self.assertRegex(done.err, r"skipped: a@sm_80: .*rchitecture")
        self.assertIn("3 compiled, 0 hits, 1 skipped", done.out)
        self.write("a.tilebc", tile("@entry=kernel @exit=5"))
        done = self.kc("build", env=env, expect=1)
        self.assertIn("2 failed", done.out)

    def test_when_all_units_are_skipped_nothing_is_packed(self):
        env = self.make()
        self.kc("build", env=env)
        before = self.digest(self.work / "kernels.kcb")
        self.make(targets="sm_75")
        for command in (["build"], ["build"], ["pack"], ["build", "--allow-partial"]):
            done = self.kc(*command, env=env, expect=1)
            self.assertIn("every unit was skipped, so there is nothing to pack", done.err)
            self.assertIn("2 skipped", done.out)
            self.assertEqual(self.digest(self.work / "kernels.kcb"), before)

    def test_a_failure_beside_skipped_units_is_still_one(self):
        env = self.make()
        self.write("b.tilebc", tile("@entry=kernel @exit=5"))
        done = self.kc("build", env=env, expect=1)
        self.assertIn("1 compiled, 0 hits, 2 skipped, 1 failed", done.out)
        done = self.kc("build", "--allow-partial", "-o", "p.kcb", env=env, expect=1)
        self.assertTrue(self.kc_json("show", "p.kcb")[0]["partial"])

    def test_many_skipped_units_of_a_kernel_are_one_line(self):
        for t in range(5):
            self.write(f"k_{t}.tilebc", tile(f"@entry=kernel {t}"))
        self.write(
            "kernels.yaml",
            "version: 1\ntargets: [sm_70, sm_75, sm_90]\nkernels:\n  - name: k\n    sources: k_{T}.tilebc\n"
            "    entry: kernel\n    unsupported: skip\n    specializations: { matrix: { T: [0, 1, 2, 3, 4] } }\n",
        )
        done = self.kc("build", env=self.with_fake())
        self.assertEqual(len(done.err.splitlines()), 2, done.err)
        self.assertRegex(done.err, r"skipped: k \(5 units\): .* has no sm_70")
        self.assertRegex(done.err, r"skipped: k \(5 units\): .* has no sm_75")
        self.assertEqual(self.kc("build", "-q", "-o", "quiet.kcb", env=self.with_fake()).err, "")

    def test_more_kernels_than_fit_a_screen_are_counted(self):
        names = [f"k{i:03}" for i in range(30)]
        for name in names:
            self.write(f"{name}.tilebc", tile(f"@entry=kernel {name}"))
        kernels = [f"  - {{ name: {name}, sources: {name}.tilebc, entry: kernel, unsupported: skip }}\n" for name in names]
        self.write("kernels.yaml", "version: 1\ntargets: [sm_75, sm_90]\nkernels:\n" + "".join(kernels))
        done = self.kc("build", env=self.with_fake())
        self.assertEqual(len(done.err.splitlines()), 21, done.err)
        self.assertIn("skipped: 10 more units", done.err)


if __name__ == "__main__":
    main()
