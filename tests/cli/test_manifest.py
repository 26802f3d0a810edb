"""What a manifest takes from other files, from manifest to bundle, and what the next build notices of them."""

import os
import re
import shutil
import subprocess

from kc_test import KC, SOURCE, KcTest, main, tile

BYTECODE = SOURCE / "manifests" / "demo" / "bytecode"


class Inputs(KcTest):
    """Builds that read more than a manifest and its sources: which changes they see, and which they may not."""

    def assert_up_to_date(self, env, *arguments):
        self.assertIn("is up to date", self.kc("build", *arguments, env=env).out)

    def assert_not_up_to_date(self, env, *arguments):
        done = self.kc("build", *arguments, env=env)
        self.assertNotIn("is up to date", done.out)
        return done

    def test_an_include_is_an_input(self):
        self.write("sub/part.yaml", "version: 1\nkernels:\n  - { name: a, sources: a.tilebc, entry: kernel }\n")
        self.write("sub/a.tilebc", tile("@entry=kernel a"))
        self.write("b.tilebc", tile("@entry=kernel b"))
        self.write(
            "kernels.yaml",
            "version: 1\ninclude: [sub/part.yaml]\ntargets: [sm_90]\n"
            "kernels:\n  - { name: b, sources: b.tilebc, entry: kernel }\n",
        )
        env = self.with_fake()
        units = [event["unit"] for event in self.kc_json("build", env=env)[:-1]]
        self.assertEqual(units, ["a@sm_90", "b@sm_90"])
        self.assert_up_to_date(env)
        part = self.work / "sub" / "part.yaml"
        part.write_text(part.read_text().replace("name: a,", "name: c,"))
        events = self.kc_json("build", env=env)
        self.assertEqual([(e["unit"], e["state"]) for e in events[:-1]], [("c@sm_90", "hit"), ("b@sm_90", "hit")])
        self.assert_up_to_date(env)
        os.unlink(part)
        self.kc("build", env=env, expect=2)

    def test_a_table_is_an_input_and_its_when_columns_reach_the_bundle(self):
        for t in (64, 128, 256):
            self.write(f"k_{t}.tilebc", tile(f"@entry=kernel {t}"))
        self.write("tuned.csv", "T,target,when.m\n64,,1\n128,sm_90,2\n64,,3\n")
        self.write(
            "kernels.yaml",
            "version: 1\ntargets: [sm_80, sm_90]\nkernels:\n  - name: k\n    sources: k_{T}.tilebc\n"
            "    entry: kernel\n    metadata: { owner: me }\n    specializations: { table: tuned.csv }\n",
        )
        env = self.with_fake()
        self.kc("build", env=env)
        records = {e["unit"]: e["metadata"] for e in self.kc_json("show", "kernels.kcb")[1:]}
        self.assertEqual(
            records,
            {
                "k:T=64@sm_80": {"owner": "me", "when": "m=1;m=3"},
                "k:T=64@sm_90": {"owner": "me", "when": "m=1;m=3"},
                "k:T=128@sm_90": {"owner": "me", "when": "m=2"},
            },
        )
        self.assert_up_to_date(env)
        # A row more is a unit more; another word about when to take one is no compile but another bundle.
        with open(self.work / "tuned.csv", "a") as table:
            table.write("256,sm_80,4\n")
        summary = self.summary("build", env=env)
        self.assertEqual((summary["units"], summary["compiled"], summary["output_state"]), (4, 1, "written"))
        table = self.work / "tuned.csv"
        table.write_text(table.read_text().replace("sm_90,2", "sm_90,9"))
        summary = self.summary("build", env=env)
        self.assertEqual((summary["compiled"], summary["output_state"]), (0, "written"))
        self.assert_up_to_date(env)

    def pattern_manifest(self):
        """One kernel whose sources a pattern finds in a folder. The bundle goes into the same folder."""
        self.write("k/a.tilebc", tile("@entry=kernel a"))
        return self.write(
            "kernels.yaml",
            "version: 1\ntargets: [sm_90]\noutput: k/out.kcb\n"
            'kernels:\n  - { name: k, sources: "k/*.tilebc", entry: kernel }\n',
        )

    def test_an_unrelated_file_in_a_listed_folder_is_no_change_and_neither_is_the_bundle(self):
        self.pattern_manifest()
        env = self.with_fake()
        self.kc("build", env=env)
        self.assert_up_to_date(env)
        self.write("k/notes.txt", "x")
        (self.work / "k" / "more").mkdir()
        self.assert_up_to_date(env)
        os.unlink(self.work / "k" / "notes.txt")
        self.assert_up_to_date(env)

    def test_a_file_that_a_pattern_finds_more_or_less_is_seen(self):
        self.pattern_manifest()
        env = self.with_fake()
        self.kc("build", env=env)
        self.write("k/b.tilebc", tile("@entry=kernel b"))
        self.assertIn("this has 2", self.kc("build", env=env, expect=2).err)  # one too many for its compiler
        os.unlink(self.work / "k" / "b.tilebc")
        self.kc("build", env=env)
        os.rename(self.work / "k" / "a.tilebc", self.work / "k" / "c.tilebc")
        done = self.assert_not_up_to_date(env)
        self.assertIn("0 compiled, 1 hit", done.out)
        os.unlink(self.work / "k" / "c.tilebc")
        self.assertIn("k/*.tilebc", self.kc("build", env=env, expect=2).err)

    def test_a_folder_is_listed_at_most_once_more_and_then_not(self):
        self.pattern_manifest()
        env = self.with_fake()
        self.kc("build", env=env)
        self.settle()

        def listed():
            log = self.root / "trace"
            done = subprocess.run(
                ["strace", "-f", "-o", log, "-e", "trace=getdents64,openat", KC, "build"],
                cwd=self.work, env={**env, "ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, text=True,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("up to date", done.stdout)
            return len(re.findall(r"getdents64\(", log.read_text()))

        self.assertGreater(listed(), 0)  # the bundle was written into it
        self.assertEqual(listed(), 0)

    def test_a_list_is_an_input(self):
        self.write("a.tilebc", tile("@entry=kernel a"))
        self.write("b.tilebc", tile("@entry=kernel b"))
        self.write("list.txt", "# the one that counts\na.tilebc\n")
        self.write(
            "kernels.yaml",
            'version: 1\ntargets: [sm_90]\nkernels:\n  - { name: k, sources: "@list.txt", entry: kernel }\n',
        )
        env = self.with_fake()
        self.kc("build", env=env)
        self.assert_up_to_date(env)
        self.write("list.txt", "# the other one counts\nb.tilebc\n")
        self.assertEqual(self.summary("build", env=env)["compiled"], 1)
        self.assert_up_to_date(env)

    def test_what_only_planning_reads_is_an_input_of_a_part_too(self):
        """The entries of a kernel that is not built decide what a pattern of names means."""
        shutil.copy(BYTECODE / "vec_add_f32_256.tilebc", self.work / "v.tilebc")
        self.write("other.tilebc", tile("@entry=kernel"))
        self.write(
            "kernels.yaml",
            'version: 1\ntargets: [sm_90]\nkernels:\n  - { name: "v.{entry}", sources: v.tilebc, entries: exported }\n'
            "  - { name: other, sources: other.tilebc, entry: kernel }\n",
        )
        env = self.with_fake()
        self.kc("build", "other", "-o", "part.kcb", env=env)
        self.assert_up_to_date(env, "other", "-o", "part.kcb")
        shutil.copy(BYTECODE / "matmul_f16_64x64x32.tilebc", self.work / "v.tilebc")
        self.assert_not_up_to_date(env, "other", "-o", "part.kcb")


class Expansion(KcTest):
    def test_exported_entries_of_real_bytecode_are_kernels(self):
        shutil.copy(BYTECODE / "vec_add_f32_256.tilebc", self.work / "v.tilebc")
        self.write(
            "kernels.yaml",
            'version: 1\ntargets: [sm_90]\nkernels:\n  - { name: "v.{entry}", sources: v.tilebc, entries: exported }\n',
        )
        events = self.kc_json("build", env=self.with_fake())
        self.assertEqual([e["unit"] for e in events[:-1]], ["v.vec_add@sm_90"])

    def test_options_that_vary_are_part_of_the_name_and_of_the_configuration(self):
        self.write("k.tilebc", tile("@entry=kernel"))
        self.write(
            "kernels.yaml",
            "version: 1\ntargets: [sm_90]\nkernels:\n  - name: k\n    sources: k.tilebc\n    entry: kernel\n"
            "    specializations: { matrix: { option.opt: [2, 3] } }\n",
        )
        events = self.kc_json("build", env=self.with_fake())
        self.assertEqual(
            [(e["unit"], e["config"]) for e in events[:-1]],
            [("k:option.opt=2@sm_90", {"option.opt": "2"}), ("k:option.opt=3@sm_90", {"option.opt": "3"})],
        )
        self.assertNotEqual(events[0]["key"], events[1]["key"])

    def test_overrides_change_options_limits_and_timeouts_of_the_units_that_they_name(self):
        self.write("k.tilebc", tile("@entry=kernel @registers=100"))
        self.write("slow.tilebc", tile("@entry=kernel @sleep=1500"))
        self.write(
            "kernels.yaml",
            "version: 1\ntargets: [sm_80, sm_90]\nkernels:\n  - name: k\n    sources: k.tilebc\n    entry: kernel\n"
            "    limits: { registers: 128 }\n    overrides:\n"
            "      - { when: { target: sm_90 }, limits: { registers: 96 }, options: { opt: 1 } }\n"
            "  - name: slow\n    sources: slow.tilebc\n    entry: kernel\n"
            "    overrides:\n      - { when: { target: sm_80 }, timeout: 100ms }\n",
        )
        env = self.with_fake()
        done = self.kc("build", env=env, expect=1)
        self.assertIn("k@sm_90: exceeds its limits: registers 100, at most 96", done.err)
        self.assertIn("slow@sm_80: tileiras was still running after 0.10 s", done.err)
        self.assertNotIn("k@sm_80:", done.err)
        self.assertNotIn("slow@sm_90:", done.err)

    def test_skipped_by_an_override_is_no_unit_at_all(self):
        self.write("k.tilebc", tile("@entry=kernel"))
        self.write(
            "kernels.yaml",
            "version: 1\ntargets: [sm_80, sm_90]\nkernels:\n  - name: k\n    sources: k.tilebc\n    entry: kernel\n"
            "    overrides:\n      - { when: { target: sm_80 }, skip: true }\n",
        )
        summary = self.summary("build", env=self.with_fake())
        self.assertEqual((summary["units"], summary["compiled"], summary["skipped"]), (1, 1, 0))


if __name__ == "__main__":
    main()
