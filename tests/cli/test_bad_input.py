"""Bad input: one clear message that names the file and the cause, the documented exit code, nothing lost."""

import os
import resource
import stat
import subprocess

from kc_test import KC, KcTest, main, tile


class Manifests(KcTest):
    def build(self, content, expect=2, name="kernels.yaml"):
        if content is not None:
            self.write(name, content)
        return self.kc("build", "-f", name, env=self.with_fake(), expect=expect)

    def test_a_manifest_that_cannot_be_read_says_why(self):
        self.assertIn("kernels.yaml", self.build(None).err)
        self.assertIn("does not exist", self.build(None).err)
        (self.work / "dir.yaml").mkdir()
        self.assertIn("dir.yaml", self.build(None, name="dir.yaml").err)
        self.assertIn("directory", self.build(None, name="dir.yaml").err)
        self.assertIn("empty", self.build("").err)
        self.assertIn("empty", self.build("# only a comment\n").err)
        done = self.build(b"version: 1\nname: \xff\xfe\n")
        self.assertIn("kernels.yaml:2:", done.err)
        self.assertIn("UTF-8", done.err)
        done = self.build("version: 1\nkernels: [ {\n")
        self.assertIn("kernels.yaml:", done.err)
        self.assertIn("9437184", self.build(b"#" * (9 << 20)).err)

    def test_hostile_yaml_is_refused_in_bounded_time_and_memory(self):
        ones = "version: 1\nkernels: [" + "1," * (2 << 20) + "1]\n"
        nested = "version: 1\nkernels: " + "[" * (1 << 20) + "\n"
        cycle = "version: 1\nkernels: &a [ *a ]\n"
        laughs = "version: 1\nx-0: &l0 [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
            f"x-{i}: &l{i} [{','.join([f'*l{i - 1}'] * 10)}]\n" for i in range(1, 9)
        )
        for name, content in [("ones", ones), ("nested", nested), ("cycle", cycle), ("laughs", laughs)]:
            with self.subTest(name):
                path = self.write(f"{name}.yaml", content)
                read, write = os.pipe()
                pid = os.fork()
                if pid == 0:
                    os.dup2(write, 2)
                    os.dup2(write, 1)
                    os.chdir(self.work)
                    os.execve(KC, [str(KC), "build", "-f", str(path)], self.with_fake())
                os.close(write)
                with os.fdopen(read, errors="replace") as pipe:
                    text = pipe.read()
                _, status, usage = os.wait4(pid, 0)
                self.assertEqual(os.waitstatus_to_exitcode(status), 2, text)
                self.assertIn(f"{name}.yaml", text)
                if not os.environ.get("ASAN_OPTIONS"):
                    self.assertLess(usage.ru_maxrss, 64 << 10, "KiB")

    def test_a_matrix_of_a_thousand_million_is_refused_before_it_is_expanded(self):
        values = "[" + ",".join(str(i) for i in range(1000)) + "]"
        done = self.build(
            "version: 1\ntargets: [sm_90]\nkernels:\n  - name: k\n    sources: 'k{A}{B}{C}.tilebc'\n    entry: kernel\n"
            f"    specializations: {{ matrix: {{ A: {values}, B: {values}, C: {values} }} }}\n"
        )
        self.assertIn("1000000000", done.err.replace(",", "").replace("'", ""))
        self.assertIn("kernels.yaml:", done.err)

    def test_unknown_keys_and_missing_sources_are_told_all_at_once_with_their_places(self):
        done = self.build(
            "version: 1\ntargets: [sm_90]\nkernals: []\nkernels:\n  - name: a\n    source: a.tilebc\n"
            "  - name: b\n    sources: missing.tilebc\n    target: [sm_90]\n"
        )
        for word in ["kernels.yaml:3:1", '"kernels"', "kernels.yaml:6:5", "sources", "missing.tilebc", "kernels.yaml:9:5", "targets"]:
            self.assertIn(word, done.err)

    def test_a_kernel_of_a_backend_that_is_not_there_yet_is_exit_3(self):
        self.write("s.py", "def x(): pass\n")
        done = self.build(
            "version: 1\nkernels:\n  - { name: s, sources: s.py, entry: x, targets: [sm_90],"
            " parameters: { A: { dtype: float16, ndim: 1 } } }\n", expect=3
        )
        self.assertIn("cutile is not part of this version of kc", done.err)
        self.assertIn("s@sm_90", done.err)

    def test_where_a_loom_library_was_looked_for_is_told(self):
        self.write("s.loom", 'kernel.def export("x") @x() {\n} launch() {\n}\n')
        manifest = "version: 1\nkernels:\n  - { name: s, sources: s.loom, entry: x, targets: [gfx1100] }\n"
        done = self.build(manifest, expect=3)
        for word in ("no Loom library found", "KC_LOOM_LIBRARY (not set)", "LD_LIBRARY_PATH", "hrx_loom"):
            self.assertIn(word, done.err)

    def test_names_with_escape_bytes_reach_the_terminal_escaped(self):
        done = self.build('version: 1\n"ker\\e[31mnels": 1\n')
        self.assertNotIn("\x1b", done.err)
        self.assertIn("\\x1b", done.err)
        name = "evil\x1b[2J.yaml"
        self.write(name, "version: 2\n")
        done = self.build(None, name=name)
        self.assertNotIn("\x1b", done.err)
        done = self.kc("show", name, expect=1)
        self.assertNotIn("\x1b", done.err)
        done = self.kc("build", "\x1b[31m", env=self.with_fake(), expect=2)
        self.assertNotIn("\x1b", done.err)


class Compilers(KcTest):
    def build(self, program, expect=3):
        self.make_units(1)
        return self.kc("build", env=self.environment(KC_TILEIRAS=program), expect=expect)

    def test_a_compiler_variable_that_leads_nowhere_is_named(self):
        folder = self.root / "folder"
        folder.mkdir()
        self.assertIn(str(folder), self.build(folder).err)
        self.assertIn("/no/such/program", self.build("/no/such/program").err)
        text = self.root / "notes.txt"
        text.write_text("tileiras is great\n")
        self.assertIn(str(text), self.build(text).err)

    def test_another_program_in_its_place_is_found_out(self):
        bin = self.root / "wrong" / "bin"
        bin.mkdir(parents=True)
        for name in ("tileiras", "ptxas"):
            (bin / name).write_text("#!/bin/sh\necho I am a teapot\n")
            os.chmod(bin / name, 0o755)
        done = self.build(bin / "tileiras")
        self.assertIn(str(bin / "tileiras"), done.err)
        self.assertIn("teapot", done.err)
        os.unlink(bin / "ptxas")
        self.assertIn("ptxas", self.build(bin / "tileiras").err)

    def test_no_compiler_at_all_lists_what_was_tried_and_what_to_do(self):
        self.make_units(1)
        env = self.environment(VIRTUAL_ENV=self.root / "venv", CUDA_HOME=self.root / "cuda", PATH=self.root / "bin")
        kc = self.root / "elsewhere" / "bin" / "kc"
        kc.parent.mkdir(parents=True)
        os.link(KC, kc) if os.stat(KC).st_dev == os.stat(self.root).st_dev else kc.write_bytes(KC.read_bytes())
        os.chmod(kc, 0o755)
        done = subprocess.run([kc, "build"], cwd=self.work, env=env, capture_output=True, text=True)
        if done.returncode == 0:
            self.skipTest("not run: this machine has a tileiras in a system place")
        self.assertEqual(done.returncode, 3, done.stderr)
        for word in ["KC_TILEIRAS", "VIRTUAL_ENV", "CUDA_HOME", str(self.root / "bin"), "pip install"]:
            self.assertIn(word, done.stderr)


class Bundles(KcTest):
    def test_files_that_are_no_whole_bundle_are_told_apart(self):
        self.make_units(2)
        self.kc("build", env=self.with_fake())
        whole = (self.work / "kernels.kcb").read_bytes()
        foreign = b"\x7fELF" + os.urandom(5000)
        newer = bytearray(whole)
        newer[8] = 9
        flipped = bytearray(whole)
        flipped[-70] ^= 1
        for name, content, word in [
            ("cut", whole[: len(whole) // 2], ""),
            ("empty", b"", ""),
            ("foreign", foreign, "bundle"),
            ("newer", bytes(newer), "newer"),
            ("flipped", bytes(flipped), ""),
        ]:
            with self.subTest(name):
                path = self.write(f"{name}.kcb", content)
                commands = [["verify", path], ["extract", path, "--all", self.work / f"out-{name}"]]
                # A byte that no code object needs is verify's to find.
                for command in commands[:1] if name == "flipped" else commands:
                    done = self.kc(*command, expect=1)
                    self.assertIn(f"{name}.kcb", done.err)
                    self.assertIn(word, done.err)
        self.assertIn("No such file", self.kc("show", "missing.kcb", expect=2).err)
        self.assertIn("directory", self.kc("show", ".", expect=2).err)

    def test_extract_names_the_nearest_unit(self):
        self.make_units(2)
        self.kc("build", env=self.with_fake())
        done = self.kc("extract", "kernels.kcb", "k000@sm_9", "-o", "x", expect=2)
        self.assertIn("k000@sm_90", done.err)
        self.assertFalse((self.work / "x").exists())


class Usage(KcTest):
    def test_usage_errors_are_exit_2_and_help_is_not(self):
        for arguments in (["biuld"], ["build", "--jbos", "2"], ["build", "-j", "0"], ["build", "-j", "many"],
                          ["build", "--level", "99"], ["build", "--timeout", "soon"], ["gc", "--max-size", "big"], []):
            with self.subTest(arguments):
                done = self.kc(*arguments, expect=2)
                self.assertEqual(done.out, "")
                self.assertNotEqual(done.err, "")
        self.assertIn('did you mean "build"', self.kc("biuld", expect=2).err)
        self.assertIn('did you mean "--jobs"', self.kc("build", "--jbos", "2", expect=2).err)
        for arguments, text in ((["frobnicate"], 'kc has no command "frobnicate"'),
                                (["-C", ".", "store", "frob"], 'kc store has no command "frob"'),
                                (["store"], "A subcommand is required"), (["--format=xml", "plan"], "--format: xml"),
                                (["plan", "--color=pink"], "--color: pink"), (["-C"], "-C: ")):
            with self.subTest(arguments):
                self.assertIn("kc: error: " + text, self.kc(*arguments, expect=2).err)
        for command in ([], ["build"], ["warm"], ["plan"], ["pack"], ["lock"], ["show"], ["verify"], ["extract"], ["keygen"], ["sign"],
                        ["gc"], ["store"], ["store", "stats"], ["store", "ls"], ["store", "import"], ["store", "export"],
                        ["store", "pin"]):
            with self.subTest(command):
                done = self.kc(*command, "--help")
                self.assertLessEqual(len(done.out.splitlines()), 40)
                self.assertIn("Exit codes", done.out)
                self.assertIn("Examples", done.out)
        self.assertRegex(self.kc("--version").out, r"^kc \d+\.\d+\.\d+")

    def test_variables_with_nonsense_are_errors_that_name_them(self):
        for name, value in [("KC_JOBS", "0"), ("KC_TIMEOUT", "soon"), ("KC_STORE_LIMIT", "-1"), ("KC_STORE_MODE", "rx"), ("KC_LEVEL", "20")]:
            done = self.kc("build", env=self.with_fake(**{name: value}), expect=2)
            self.assertIn(name, done.err)

    def test_a_folder_that_is_not_there(self):
        self.assertIn("/no/such", self.kc("build", "-C", "/no/such", expect=2).err)


class Stores(KcTest):
    def test_a_full_disk_is_exit_3_and_the_old_bundle_stays(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", env=env)
        old = self.digest(self.work / "kernels.kcb")
        self.write("k001.tilebc", tile("@entry=kernel @size=600000"))
        self.kc("build", "k001", env=env)  # into the store, so that only kc itself writes under the limit

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

        done = subprocess.run([KC, "build"], cwd=self.work, env=env, capture_output=True, text=True, preexec_fn=limit)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(self.digest(self.work / "kernels.kcb"), old)
        self.assert_no_temporaries()

    def test_every_damaged_entry_is_found_moved_aside_and_compiled_again(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", env=env)
        good = self.digest(self.work / "kernels.kcb")
        victim = self.store_files("e/*/*.kce")[1]
        self.damage(victim, at=victim.stat().st_size // 2)
        done = self.kc("store", "verify", expect=1)
        self.assertIn(victim.name, done.err)
        os.unlink(self.work / "kernels.kcb")
        done = self.kc("build", env=env)
        self.assertIn("1 compiled, 2 hits", done.out)
        self.assertIn("warning", done.err)
        self.assertEqual(self.digest(self.work / "kernels.kcb"), good)
        self.kc("store", "verify")

    def test_gc_removes_oldest_first_and_says_what_it_did(self):
        self.make_units(4)
        env = self.with_fake()
        self.kc("build", env=env)
        entries = self.store_files("e/*/*.kce")
        for days, entry in enumerate(entries, 1):
            self.age(entry, hours=24 * days)
        size = os.stat(entries[0]).st_blocks * 512
        done = self.kc("gc", "--max-size", str(2 * size), "--dry-run")
        self.assertIn("would remove 2 of 4 entries", done.out)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 4)
        self.assertIn("removed 2 of 4 entries", self.kc("gc", "--max-size", str(2 * size)).out)
        self.assertEqual(self.store_files("e/*/*.kce"), sorted(entries[:2]))
        self.kc("gc", "--max-age", "36h")
        self.assertEqual(self.store_files("e/*/*.kce"), [entries[0]])

    def test_stats_and_path(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", env=env)
        self.assertEqual(self.kc("store", "path").out.strip(), str(self.store))
        (stats,) = self.kc_json("store", "stats")
        self.assertEqual(stats["entries"], 2)
        self.assertEqual(stats["by_backend_target"], {"tileiras sm_90": 2})
        self.assertGreater(stats["bytes"], 0)
        mode = stat.S_IMODE(os.stat(self.store).st_mode)
        self.assertEqual(mode, 0o700)


if __name__ == "__main__":
    main()
