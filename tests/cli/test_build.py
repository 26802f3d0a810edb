"""kc build from manifest to bundle, with the stand-in compiler."""

import os
import pathlib
import stat
import subprocess

from kc_test import SOURCE, KcTest, main, tile


class Build(KcTest):
    def test_a_manifest_becomes_a_bundle_that_verifies(self):
        self.make_units(3, targets="[sm_80, sm_90]")
        done = self.kc("build", env=self.with_fake())
        self.assertIn("6 units: 6 compiled, 0 hits", done.out)
        self.assertEqual(len(done.out.splitlines()), 1)
        self.kc("verify", "kernels.kcb")
        self.assert_no_temporaries()

    def test_second_build_is_one_line_and_touches_nothing(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", env=env)
        before = (self.digest(self.work / "kernels.kcb"), os.stat(self.work / "kernels.kcb").st_mtime_ns)
        done = self.kc("build", env=env)
        self.assertEqual(len(done.out.splitlines()), 1)
        self.assertIn("up to date (3 units)", done.out)
        self.assertEqual(done.err, "")
        after = (self.digest(self.work / "kernels.kcb"), os.stat(self.work / "kernels.kcb").st_mtime_ns)
        self.assertEqual(before, after)

    def test_a_lost_bundle_is_packed_again_from_hits(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", env=env)
        first = self.digest(self.work / "kernels.kcb")
        os.unlink(self.work / "kernels.kcb")
        summary = self.summary("build", env=env)
        self.assertEqual((summary["hits"], summary["compiled"]), (3, 0))
        self.assertEqual(self.digest(self.work / "kernels.kcb"), first)

    def test_an_edited_source_compiles_that_unit_alone(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", env=env)
        self.write("k001.tilebc", tile("@entry=kernel changed"))
        events = self.kc_json("build", env=env)
        self.assertEqual([e["unit"] for e in events if e.get("state") == "compiled"], ["k001@sm_90"])
        self.assertEqual(events[-1]["output_state"], "written")

    def test_a_touched_source_with_equal_bytes_is_no_change(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", env=env)
        os.utime(self.work / "k001.tilebc")
        self.assertIn("up to date", self.kc("build", env=env).out)

    def test_a_bundle_whose_bytes_would_not_change_is_not_touched(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", env=env)
        before = os.stat(self.work / "kernels.kcb")
        manifest = self.work / "kernels.yaml"
        manifest.write_text(manifest.read_text() + "# a comment\n")
        summary = self.summary("build", env=env)
        self.assertEqual((summary["hits"], summary["output_state"]), (2, "unchanged"))
        after = os.stat(self.work / "kernels.kcb")
        self.assertEqual((before.st_ino, before.st_mtime_ns), (after.st_ino, after.st_mtime_ns))

    def test_units_with_equal_keys_are_one_job(self):
        self.write("same.tilebc", tile("@entry=kernel"))
        self.write(
            "kernels.yaml",
            "version: 1\ntargets: [sm_90]\nkernels:\n"
            "  - { name: a, sources: same.tilebc, entry: kernel }\n"
            "  - { name: b, sources: same.tilebc, entry: kernel }\n",
        )
        events = self.kc_json("build", env=self.with_fake())
        self.assertEqual(events[0]["key"], events[1]["key"])
        self.assertEqual(len(self.store_files("e/*/*.kce")), 1)

    def test_units_are_told_in_plan_order_whatever_ends_first(self):
        self.make_units(6, directives="@sleep={i}0")
        self.write("k000.tilebc", tile("@entry=kernel @sleep=400"))
        events = self.kc_json("build", "-j4", env=self.with_fake())
        self.assertEqual([e["unit"] for e in events[:-1]], [f"k{i:03}@sm_90" for i in range(6)])

    def test_named_units_without_output_are_stored_and_nothing_is_packed(self):
        self.make_units(3)
        done = self.kc("build", "k001", env=self.with_fake())
        self.assertIn("k001@sm_90", done.out)
        self.assertIn("nothing is packed without -o", done.out)
        self.assertFalse((self.work / "kernels.kcb").exists())
        self.assertEqual(len(self.store_files("e/*/*.kce")), 1)

    def test_named_units_with_output_make_a_subset(self):
        self.make_units(3, targets="[sm_80, sm_90]")
        self.kc("build", "k00[12]", "--target", "sm_80", "-o", "part.kcb", env=self.with_fake())
        bundle = self.kc_json("show", "part.kcb")
        self.assertTrue(bundle[0]["subset"])
        self.assertEqual([r["unit"] for r in bundle[1:]], ["k001@sm_80", "k002@sm_80"])

    def test_a_name_without_target_stands_for_all_targets(self):
        self.write("m_1.tilebc", tile("@entry=kernel"))
        self.write("m_2.tilebc", tile("@entry=kernel 2"))
        self.write(
            "kernels.yaml",
            "version: 1\ntargets: [sm_80, sm_90]\nkernels:\n  - name: m\n    sources: 'm_{N}.tilebc'\n    entry: kernel\n"
            "    specializations: { matrix: { N: [1, 2] } }\n",
        )
        events = self.kc_json("build", "m:N=2", env=self.with_fake())
        self.assertEqual([e["unit"] for e in events[:-1]], ["m:N=2@sm_80", "m:N=2@sm_90"])

    def test_a_unit_after_a_target_is_a_unit(self):
        self.make_units(3, targets="[sm_80, sm_90]")
        env = self.with_fake()
        for command in ("build", "plan"):
            events = self.kc_json(command, "--target", "sm_90", "k001", "k002", env=env)
            self.assertEqual([e["unit"] for e in events[:-1]], ["k001@sm_90", "k002@sm_90"])
        several = self.kc_json("plan", "--target", "sm_90", "k001", "--target=sm_80", env=env)
        self.assertEqual([e["unit"] for e in several[:-1]], ["k001@sm_80", "k001@sm_90"])
        self.assertEqual(len(self.kc_json("plan", "k001", "--target", "sm_90,sm_80", env=env)), 3)

    def test_a_filter_that_matches_nothing_names_the_nearest(self):
        self.make_units(3)
        done = self.kc("build", "k01", env=self.with_fake(), expect=2)
        self.assertIn('no unit or kernel is named "k01"', done.err)
        self.assertIn('did you mean "k0', done.err)
        done = self.kc("build", "--target", "sm_120", env=self.with_fake(), expect=2)
        self.assertIn("its targets are sm_90", done.err)

    def test_dry_run_lists_what_would_be_compiled_and_does_nothing(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", "k001", env=env)
        done = self.kc("build", "-n", env=env)
        self.assertNotIn("k001@", done.out)
        self.assertIn("k000@sm_90", done.out)
        self.assertIn("2 of 3 units would be compiled", done.out)
        self.assertFalse((self.work / "kernels.kcb").exists())
        self.assertEqual(len(self.store_files("e/*/*.kce")), 1)

    def test_plan_shows_hits_and_misses_and_no_output_is_made(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", "k001", env=env)
        events = self.kc_json("plan", env=env)
        self.assertEqual([e["state"] for e in events[:-1]], ["miss", "hit", "miss"])
        self.assertEqual(events[0]["sources"], ["k000.tilebc"])
        self.assertIsNone(events[0]["request_key"])

    def test_the_output_is_never_an_input(self):
        manifest = self.make_units(1)
        env = self.with_fake()
        self.write("note.txt", "no bundle, and no input")
        for name in ("kernels.yaml", "k000.tilebc"):
            before = (self.work / name).read_bytes()
            done = self.kc("build", "-o", name, env=env, expect=2)
            self.assertIn(f"{name}: is an input of this build, so it is not replaced", done.err)
            self.assertEqual((self.work / name).read_bytes(), before)
        self.assertEqual(self.summary("build", "-o", "note.txt", env=env)["output_state"], "written")
        self.assertTrue(manifest.exists())

    def test_require_cached_lists_all_that_is_missing_and_compiles_nothing(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", "k001", env=env)
        done = self.kc("build", "--require-cached", env=env, expect=1)
        self.assertIn("k000@sm_90 is not in the store", done.err)
        self.assertIn("k002@sm_90 is not in the store", done.err)
        self.assertNotIn("k001@sm_90 is not", done.err)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 1)
        self.assertFalse((self.work / "kernels.kcb").exists())

    def test_store_off_builds_and_keeps_nothing(self):
        self.make_units(2)
        self.kc("build", "--store-mode=off", env=self.with_fake())
        self.kc("verify", "kernels.kcb")
        self.assertFalse(self.store.exists())

    def test_a_read_only_store_gives_hits_and_takes_nothing(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", "k000", env=env)
        summary = self.summary("build", "--store-mode=ro", env=env)
        self.assertEqual((summary["hits"], summary["compiled"]), (1, 1))
        self.assertEqual(len(self.store_files("e/*/*.kce")), 1)

    def test_refresh_compiles_again_and_puts(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", env=env)
        summary = self.summary("build", "--store-mode=refresh", env=env)
        self.assertEqual((summary["hits"], summary["compiled"]), (0, 2))

    def test_a_missing_output_folder_is_made(self):
        self.make_units(1)
        self.kc("build", "-o", "a/b/c.kcb", env=self.with_fake())
        self.kc("verify", "a/b/c.kcb")

    def test_without_home_a_temporary_store_serves(self):
        self.make_units(1)
        done = self.kc("build", env=self.with_fake(HOME=None, KC_STORE_DIR=None))
        self.assertIn("temporary store", done.err)
        self.kc("verify", "kernels.kcb")
        self.assert_no_temporaries()

    def test_the_compiler_sees_a_built_environment(self):
        self.write("env.tilebc", tile("@entry=kernel @env @exit=5"))
        self.write("kernels.yaml", "version: 1\ntargets: [sm_90]\nkernels:\n  - { name: env, sources: env.tilebc, entry: kernel }\n")
        done = self.kc("build", "-v", env=self.with_fake(CUDA_HOME="/opt/other", MAKEFLAGS="-j", TILEIR_X="1"), expect=1)
        names = {line.split("env ", 1)[1].split("=")[0] for line in done.err.splitlines() if "env " in line and "=" in line}
        self.assertEqual(names, {"TMPDIR", "HOME", "PATH", "LC_ALL"})

    def test_extract_gives_back_each_code_object(self):
        self.make_units(2, targets="[sm_80, sm_90]")
        self.kc("build", env=self.with_fake())
        self.kc("extract", "kernels.kcb", "--all", "out")
        files = sorted(str(p.relative_to(self.work / "out")) for p in (self.work / "out").rglob("*") if p.is_file())
        self.assertEqual(
            files,
            ["k000/sm_80/default.cubin", "k000/sm_90/default.cubin", "k001/sm_80/default.cubin", "k001/sm_90/default.cubin"],
        )
        self.kc("extract", "kernels.kcb", "k001@sm_90", "-o", "one.cubin")
        self.assertEqual(self.digest(self.work / "one.cubin"), self.digest(self.work / "out/k001/sm_90/default.cubin"))

    def test_limits_are_checked_on_hits_and_compiles(self):
        self.write("k.tilebc", tile("@entry=kernel @registers=128 @local=48"))
        manifest = (
            "version: 1\ntargets: [sm_90]\nkernels:\n  - name: k\n    sources: k.tilebc\n    entry: kernel\n"
            "    limits: {{ registers: {}, local_memory: 0 }}\n"
        )
        self.write("kernels.yaml", manifest.format(96))
        env = self.with_fake()
        for _ in range(2):
            done = self.kc("build", env=env, expect=1)
            self.assertIn("registers 128, at most 96; local memory 48 bytes, at most 0", done.err)
            self.assertIn("kernels.yaml:", done.err)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 1)

    def test_json_has_every_field_of_a_unit(self):
        self.make_units(1)
        unit, summary = self.kc_json("build", env=self.with_fake())
        self.assertEqual(
            list(unit),
            ["event", "unit", "kernel", "target", "config", "request_key", "key", "state", "seconds", "peak_bytes",
             "code_bytes", "facts", "changes", "diagnostics", "signers"],
        )
        self.assertGreater(unit["code_bytes"], 0)
        self.assertEqual(summary["output_state"], "written")


class Readme(KcTest):
    def test_its_manifest_builds_and_has_the_units_that_it_says(self):
        text = (SOURCE / "README.md").read_text()
        self.write("kernels.yaml", text.split("```yaml\n")[1].split("```")[0])
        self.write("kernels/vec_add.tilebc", tile("@entry=vec_add"))
        for tm in (64, 128):
            for tn in (64, 128):
                self.write(f"kernels/matmul_{tm}x{tn}.tilebc", tile(f"@entry=matmul {tm} {tn}"))
        self.assertIn("fifteen units", text)
        events = self.kc_json("build", env=self.with_fake())
        units = [event["unit"] for event in events[:-1]]
        self.assertEqual((len(units), units[0], units[-1]), (15, "vec_add@sm_80", "matmul:TM=128,TN=128@sm_100"))
        self.assertTrue((self.work / "demo.kcb").exists())


class Failures(KcTest):
    def test_one_broken_unit_leaves_the_others_stored_and_the_old_bundle(self):
        self.make_units(5)
        env = self.with_fake()
        self.kc("build", env=env)
        old = self.digest(self.work / "kernels.kcb")
        for i in range(5):
            self.write(f"k{i:03}.tilebc", tile(f"@entry=kernel second={i}"))
        self.write("k002.tilebc", tile('@entry=kernel @exit=5 @stderr=loc("k.py":7:3):%20error:%20no%20such%20layout'))
        done = self.kc("build", env=env, expect=1)
        self.assertIn("k002@sm_90", done.err)
        self.assertIn("no such layout", done.err)
        self.assertIn("4 compiled", done.out)
        self.assertIn("1 failed", done.out)
        self.assertEqual(self.digest(self.work / "kernels.kcb"), old)
        # The last lines name it again, with the file that holds all of its output.
        tail = done.err.splitlines()[-1]
        self.assertIn("k002@sm_90", tail)
        output = tail.split("(")[1].rstrip(")")
        self.assertIn("no such layout", pathlib.Path(output).read_text())
        self.write("k002.tilebc", tile("@entry=kernel mended"))
        summary = self.summary("build", env=env)
        self.assertEqual((summary["hits"], summary["compiled"]), (4, 1))

    def test_keep_going_stops_after_so_many_failures(self):
        self.make_units(6, directives="@exit=5")
        done = self.kc("build", "-j1", "-k2", env=self.with_fake(), expect=1)
        self.assertIn("2 failed, 4 not tried", done.out)
        self.assertIn("stopped after 2 failures", done.err)
        done = self.kc("build", "-j1", env=self.with_fake(), expect=1)
        self.assertIn("6 failed", done.out)

    def test_allow_partial_packs_the_rest_and_marks_it(self):
        self.make_units(3)
        self.write("k001.tilebc", tile("@entry=kernel @exit=5"))
        self.kc("build", "--allow-partial", "-o", "p.kcb", env=self.with_fake(), expect=1)
        bundle = self.kc_json("show", "p.kcb")
        self.assertTrue(bundle[0]["partial"])
        self.assertEqual(len(bundle), 3)

    def test_a_compiler_that_hangs_is_ended_with_its_group(self):
        self.make_units(2)
        self.write("k001.tilebc", tile("@entry=kernel @spawn-grandchild @hang"))
        done = self.kc("build", "--timeout", "1s", env=self.with_fake(), expect=1)
        self.assertIn("k001@sm_90", done.err)
        self.assertIn("time", done.err)
        running = subprocess.run(["pgrep", "-f", str(self.root / "compiler")], capture_output=True, text=True).stdout
        self.assertEqual(running, "")
        self.assert_no_temporaries()

    def test_a_compiler_that_dies_by_a_signal_fails_its_unit(self):
        self.make_units(3)
        self.write("k001.tilebc", tile("@entry=kernel @signal=11"))
        done = self.kc("build", env=self.with_fake(), expect=1)
        self.assertIn("k001@sm_90", done.err)
        self.assertIn("SEGV", done.err)
        self.assertIn("2 compiled", done.out)

    def test_code_that_is_not_what_was_asked_fails_its_unit(self):
        for directive, word in [
            ("@entry=other", "kernel"),
            ("@entry=kernel @arch=sm_100a", "sm_100a"),
            ("@entry=kernel @output=garbage", ""),
            ("@entry=kernel @output=truncated", ""),
            ("@entry=kernel @output=empty", ""),
            ("@entry=kernel @output=none", ""),
        ]:
            with self.subTest(directive):
                self.make_units(1)
                self.write("k000.tilebc", tile(directive))
                done = self.kc("build", env=self.with_fake(), expect=1)
                self.assertIn("k000@sm_90", done.err)
                self.assertIn(word, done.err)
                self.assertEqual(self.store_files("e/*/*.kce"), [])

    def test_an_unknown_gpu_fails_with_what_the_compiler_has(self):
        self.make_units(1, targets="[sm_75]")
        done = self.kc("build", env=self.with_fake(), expect=1)
        self.assertIn("sm_75", done.err)
        self.assertIn("sm_90", done.err)


class Files(KcTest):
    def test_an_output_that_is_no_bundle_is_kept_unless_named(self):
        self.make_units(1)
        self.write("kernels.kcb", "my notes\n")
        done = self.kc("build", env=self.with_fake(), expect=2)
        self.assertIn("kernels.kcb", done.err)
        self.assertIn("is no bundle", done.err)
        self.assertEqual((self.work / "kernels.kcb").read_text(), "my notes\n")
        self.kc("build", "-o", "kernels.kcb", env=self.with_fake())
        self.kc("verify", "kernels.kcb")

    def test_an_output_that_is_a_directory_is_refused(self):
        self.make_units(1)
        (self.work / "kernels.kcb").mkdir()
        self.assertIn("is a directory", self.kc("build", env=self.with_fake(), expect=2).err)

    def test_an_output_below_a_file_is_exit_3_and_nothing_is_compiled(self):
        self.make_units(1)
        self.write("file", "x")
        self.kc("build", "-o", "file/out.kcb", env=self.with_fake(), expect=3)
        self.assertEqual(self.store_files("e/*/*.kce"), [])

    def test_a_store_that_cannot_be_made_does_not_fail_a_build(self):
        self.make_units(1)
        self.write("file", "x")
        env = self.with_fake(KC_STORE_DIR=self.work / "file" / "store")
        done = self.kc("build", env=env)
        self.assertIn("warning", done.err)
        self.kc("verify", "kernels.kcb")
        os.unlink(self.work / "kernels.kcb")
        self.kc("build", "--strict-store", env=env, expect=3)

    def test_a_store_that_others_can_write_is_refused(self):
        self.make_units(1)
        self.store.mkdir()
        os.chmod(self.store, 0o777)
        done = self.kc("build", env=self.with_fake(), expect=3)
        self.assertIn(str(self.store), done.err)

    def test_the_bundle_obeys_umask(self):
        self.make_units(1)
        self.kc("build", env=self.with_fake())
        mode = stat.S_IMODE(os.stat(self.work / "kernels.kcb").st_mode)
        umask = os.umask(0)
        os.umask(umask)
        self.assertEqual(mode, 0o666 & ~umask)


if __name__ == "__main__":
    main()
