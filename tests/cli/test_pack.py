"""kc pack: a bundle from what the store holds, without a compile."""

import os
import re
import shutil
import subprocess

from kc_test import KC, KcTest, main, tile


class Pack(KcTest):
    def fill(self, count=3, **options):
        """Units of which the store holds all; no bundle is there."""
        self.make_units(count, **options)
        env = self.with_fake()
        self.kc("build", env=env)
        self.whole = self.digest(self.work / "kernels.kcb")
        os.unlink(self.work / "kernels.kcb")
        return env

    def test_it_makes_the_bundle_of_a_build_and_starts_nothing(self):
        env = self.fill(4, targets="[sm_80, sm_90]")
        log = self.root / "execs"
        done = subprocess.run(
            ["strace", "-f", "-e", "trace=execve", "-o", log, KC, "pack"],
            cwd=self.work, env={**env, "ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^kc: 8 units: 8 hits in .*; wrote .*/kernels.kcb\n$")
        self.assertEqual(len(re.findall(r"execve\(", log.read_text())), 1)
        self.assertEqual(self.digest(self.work / "kernels.kcb"), self.whole)
        self.assert_no_temporaries()

    def test_build_after_pack_and_pack_after_build_have_nothing_to_do(self):
        env = self.fill()
        self.kc("pack", env=env)
        self.assertIn("is up to date (3 units)", self.kc("build", env=env).out)
        self.assertIn("is up to date (3 units)", self.kc("pack", env=env).out)
        self.kc("build", "--level", "7", "-o", "seven.kcb", env=env)
        self.assertIn("is up to date", self.kc("pack", "--level", "7", "-o", "seven.kcb", env=env).out)
        self.assertNotIn("is up to date", self.kc("pack", "--level", "8", "-o", "seven.kcb", env=env).out)

    def test_all_that_is_missing_is_listed_and_the_old_bundle_stays(self):
        env = self.fill(4)
        self.kc("pack", env=env)
        for i in (1, 3):
            self.write(f"k{i:03}.tilebc", tile(f"@entry=kernel another {i}"))
        done = self.kc("pack", env=env, expect=1)
        for i in range(4):
            assertion = self.assertIn if i in (1, 3) else self.assertNotIn
            assertion(f"k{i:03}@sm_90 is not in the store", done.err)
        self.assertIn("4 units: 2 hits, 2 missing in", done.out)
        self.assertIn("no bundle was written", done.out)
        self.assertEqual(self.digest(self.work / "kernels.kcb"), self.whole)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 4)
        events = self.kc_json("pack", env=env, expect=1)
        self.assertEqual([e["state"] for e in events[:-1]], ["hit", "miss", "hit", "miss"])
        # What a failed pack remembers costs the next build nothing.
        self.assertEqual(self.summary("build", env=env)["compiled"], 2)

    def test_allow_partial_packs_the_rest_and_marks_it(self):
        env = self.fill()
        self.write("k001.tilebc", tile("@entry=kernel another"))
        done = self.kc("pack", "--allow-partial", "-o", "p.kcb", env=env, expect=1)
        self.assertIn("k001@sm_90 is not in the store", done.err)
        self.assertIn("(partial)", done.out)
        bundle = self.kc_json("show", "p.kcb")
        self.assertTrue(bundle[0]["partial"])
        self.assertEqual([r["unit"] for r in bundle[1:]], ["k000@sm_90", "k002@sm_90"])
        # Nothing at all makes no bundle.
        shutil.rmtree(self.store)
        self.kc("pack", "--allow-partial", "-o", "q.kcb", env=env, expect=1)
        self.assertFalse((self.work / "q.kcb").exists())

    def test_named_units_need_an_output_and_make_a_subset(self):
        env = self.fill(3, targets="[sm_80, sm_90]")
        self.assertIn("-o", self.kc("pack", "k001", env=env, expect=2).err)
        self.assertIn("-o", self.kc("pack", "--target", "sm_90", env=env, expect=2).err)
        self.assertFalse((self.work / "kernels.kcb").exists())
        self.kc("pack", "k00[12]", "--target", "sm_90", "-o", "part.kcb", env=env)
        bundle = self.kc_json("show", "part.kcb")
        self.assertTrue(bundle[0]["subset"])
        self.assertEqual([r["unit"] for r in bundle[1:]], ["k001@sm_90", "k002@sm_90"])
        self.kc("build", "k00[12]", "--target", "sm_90", "-o", "built.kcb", env=env)
        self.assertEqual(self.digest(self.work / "part.kcb"), self.digest(self.work / "built.kcb"))

    def test_release_level_and_frame_size_are_those_asked_for(self):
        env = self.fill()
        arguments = ["--release", "7", "--level", "19", "--frame-size", "4KiB"]
        self.kc("pack", *arguments, "-o", "packed.kcb", env=env)
        self.kc("build", *arguments, "-o", "built.kcb", env=env)
        self.assertEqual(self.digest(self.work / "packed.kcb"), self.digest(self.work / "built.kcb"))
        self.assertEqual(self.kc_json("show", "packed.kcb")[0]["release"], 7)

    def test_limits_and_faulty_sources_fail_as_in_a_build(self):
        self.write("a.tilebc", tile("@entry=kernel @registers=100"))
        self.write("b.tilebc", tile("@entry=kernel"))
        manifest = (
            "version: 1\ntargets: [sm_90]\nkernels:\n"
            "  - {{ name: a, sources: a.tilebc, entry: kernel, limits: {{ registers: {} }} }}\n"
            "  - {{ name: b, sources: b.tilebc, entry: kernel }}\n"
        )
        self.write("kernels.yaml", manifest.format(128))
        env = self.with_fake()
        self.kc("build", env=env)
        self.write("kernels.yaml", manifest.format(96))
        self.assertIn("registers 100, at most 96", self.kc("pack", env=env, expect=1).err)
        self.write("b.tilebc", "")
        done = self.kc("pack", env=env, expect=1)
        self.assertIn("the file is empty", done.err)
        self.assertNotIn("b@sm_90 is not in the store", done.err)

    def test_a_damaged_entry_is_missing_and_no_store_is_as_good_as_an_empty_one(self):
        env = self.fill(2)
        entry = self.store_files("e/*/*.kce")[0]
        os.chmod(entry, 0o644)
        content = bytearray(entry.read_bytes())
        content[-1] ^= 1
        entry.write_bytes(content)
        done = self.kc("pack", env=env, expect=1)
        self.assertEqual(done.err.count("is not in the store"), 1)
        done = self.kc("pack", env={**env, "KC_STORE_MODE": "off"}, expect=1)
        self.assertEqual(done.err.count("is not in the store"), 2)
        done = self.kc("build", env=env)
        self.assertIn("1 compiled, 1 hit", done.out)
        os.unlink(self.work / "kernels.kcb")
        # "Compile all anew" is nothing that a pack could do.
        self.kc("pack", env={**env, "KC_STORE_MODE": "refresh"})

    def test_an_output_that_is_no_bundle_is_kept_unless_named(self):
        env = self.fill(1)
        self.write("kernels.kcb", "my notes\n")
        self.assertIn("is no bundle", self.kc("pack", env=env, expect=2).err)
        self.assertEqual((self.work / "kernels.kcb").read_text(), "my notes\n")


if __name__ == "__main__":
    main()
