"""What is kept of a unit whose compiler crashed, hung or spoiled its process, and that it shows the same again."""

import re
import shlex
import subprocess

from kc_test import KC, KcTest, loom, main, tile


class Repro(KcTest):
    def run_again(self, done, env):
        """Runs the command that the hint names, as a shell would; gives what it said."""
        (command,) = re.findall(r"`(kc build -f [^`]+)` compiles it again", done.err)
        again = subprocess.run(["sh", "-c", command.replace("kc ", f"{shlex.quote(str(KC))} ", 1)], cwd=self.root,
                               env=env, capture_output=True, text=True, timeout=60)
        return again

    def folder(self):
        (folder,) = self.store_files("repro/*")
        return folder

    def make_loom(self, directives, timeout="60s"):
        """A unit of a source that misbehaves in the folder above the manifest, and a library, and others that are fine."""
        self.write("sub/kernels.yaml", f"""version: 1
targets: [gfx1100, gfx942]
kernels:
  - name: bad
    sources: [../common/bad.loom]
    libraries: [lib/a b.loom]
    symbol: bad
    timeout: {timeout}
    options: {{ report: summary }}
    specializations: {{ matrix: {{ tuner.workgroup_size: [64] }} }}
  - {{ name: good, sources: good.loom }}
""")
        self.write("common/bad.loom", loom("bad", directives))
        self.write("sub/lib/a b.loom", "func.def inline @unused() {\n  func.return\n}\n")
        self.write("sub/good.loom", loom("good"))
        return self.with_hostile()

    def test_a_crash_can_be_seen_again_with_one_command(self):
        env = self.make_loom("@only=gfx942 @stderr=about%20to%20fall @segfault")
        done = self.kc("build", cwd=self.work / "sub", env=env, expect=1)
        self.assertIn("bad:tuner.workgroup_size=64@gfx942: ", done.err)
        self.assertRegex(done.err, "SIGSEGV|signal 11")
        self.assertIn("3 compiled, 0 hits, 1 failed", done.out)
        folder = self.folder()
        self.assertIn("about to fall", (folder / "output.txt").read_text())
        self.assertIn(str(folder / "output.txt"), done.err)  # named again at the end
        self.assertEqual((folder / "inputs/%2E%2E/common/bad.loom").read_bytes(),
                         (self.work / "common/bad.loom").read_bytes())
        self.assertEqual((folder / "inputs/lib/a%20b.loom").read_bytes(),
                         (self.work / "sub/lib/a b.loom").read_bytes())
        self.assertRegex((folder / "command.txt").read_text(), r"^kc build -f kernels\.yaml --store-mode=off\n")
        self.assertIn(env["KC_LOOM_LIBRARY"], (folder / "command.txt").read_text())
        again = self.run_again(done, env)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertRegex(again.stderr, "SIGSEGV|signal 11")
        self.assertIn("bad@gfx942", again.stderr)
        # The same folder works from inside, by its command.txt.
        first = (folder / "command.txt").read_text().splitlines()[0]
        inside = subprocess.run(["sh", "-c", first.replace("kc ", f"{KC} ", 1)], cwd=folder, env=env,
                                capture_output=True, text=True)
        self.assertRegex(inside.stderr, "SIGSEGV|signal 11")

    def test_a_timeout_can_be_seen_again(self):
        env = self.make_loom("@only=gfx942 @hang", timeout="700ms")
        done = self.kc("build", cwd=self.work / "sub", env=env, expect=1)
        self.assertIn("timeout: 700ms", (self.folder() / "kernels.yaml").read_text())
        again = self.run_again(done, env)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn("bad@gfx942", again.stderr)

    def test_what_a_compiler_did_to_its_process_can_be_seen_again(self):
        env = self.make_loom("@only=gfx942 @locale")
        done = self.kc("build", cwd=self.work / "sub", env=env, expect=1)
        self.assertIn("changed the locale of the engine", done.err)
        again = self.run_again(done, env)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn("changed the locale of the engine", again.stderr)

    def test_a_program_that_is_killed_leaves_its_repro_too(self):
        self.write("k.tilebc", tile("@entry=k @sleep=60000"))
        self.write("kernels.yaml", "version: 1\ntargets: [sm_90]\nkernels:\n"
                   "  - { name: k, sources: k.tilebc, timeout: 300ms, options: { opt: 2 } }\n")
        env = self.with_fake()
        done = self.kc("build", env=env, expect=1)
        self.assertEqual((self.folder() / "inputs/k.tilebc").read_bytes(), (self.work / "k.tilebc").read_bytes())
        self.assertIn('"opt": "2"', (self.folder() / "kernels.yaml").read_text())
        self.assertEqual(self.run_again(done, env).returncode, 1)

    def test_a_compiler_that_just_says_no_leaves_its_output_alone(self):
        env = self.make_loom("@only=gfx942 @stderr=said @fail=TYPE/003:no")
        done = self.kc("build", cwd=self.work / "sub", env=env, expect=1)
        self.assertNotIn("compiles it again", done.err)
        for folder in self.store_files("repro/*"):
            self.assertEqual([path.name for path in folder.iterdir()], ["output.txt"])

    def test_without_a_store_nothing_is_kept_and_nothing_is_said_of_it(self):
        env = self.make_loom("@only=gfx942 @segfault")
        done = self.kc("build", "--store-mode=off", cwd=self.work / "sub", env=env, expect=1)
        self.assertRegex(done.err, "SIGSEGV|signal 11")
        self.assertNotIn("compiles it again", done.err)
        self.assertNotIn("repro", done.err)
        self.assertEqual(self.store_files("repro/*"), [])


class Look(KcTest):
    """What a look at Loom sources says before anything is compiled, and what it leaves to the compiler."""

    def build(self, *sources, entry="k", env=None):
        names = []
        for i, text in enumerate(sources):
            names.append(self.write(f"s{i}.loom", text).name)
        self.write("kernels.yaml", "version: 1\ntargets: [gfx1100]\nkernels:\n"
                   f"  - {{ name: k, sources: [{', '.join(names)}], entry: {entry} }}\n")
        return self.kc("build", env=env or self.with_hostile(), expect=1).err

    def test_an_entry_that_no_source_has_is_named_with_the_nearest(self):
        told = self.build(loom("scale_i32"), entry="scale_i23")
        self.assertIn('s0.loom has no entry "scale_i23"; it has scale_i32', told)
        self.assertIn('did you mean "scale_i32"?', told)
        told = self.build(loom("scale_i32"), loom("other"), entry="third")
        self.assertIn('none of the 2 sources of k has an entry "third"; they have scale_i32 and other', told)

    def test_a_kernel_without_an_export_is_told_so(self):
        told = self.build(loom("k").replace('export("k") ', ""))
        self.assertIn('s0.loom does not export the kernel "k"', told)
        self.assertIn("export(", told)
        told = self.build(loom("k").replace('export("k") ', ""), loom("other"))
        self.assertIn('none of the 2 sources of k exports the kernel "k"', told)

    def test_a_syntax_error_is_the_compilers_to_say(self):
        env = self.with_loom()
        broken = loom("k").replace('kernel.def export("k") @k', 'kernel.dfe export("k") @k')
        for sources in ((broken,), (broken, loom("other"))):
            told = self.build(*sources, env=env)
            self.assertIn("PARSE/", told)
            self.assertNotIn("has no entry", told)
            self.assertIn("s0.loom:", told)

    def test_a_library_that_is_no_text_is_refused_before_anything_is_compiled(self):
        self.write("lib.loom", b"func \xff\xfe")
        self.write("k.loom", loom("k"))
        self.write("kernels.yaml", "version: 1\ntargets: [gfx1100]\nkernels:\n"
                   "  - { name: k, sources: k.loom, libraries: lib.loom }\n")
        env = self.with_hostile()
        self.assertEqual([e["state"] for e in self.kc_json("plan", env=env, expect=1)[:-1]], ["failed"])
        self.assertRegex(self.kc("build", env=env, expect=1).err, r"lib\.loom:1:6: .*UTF-8")


if __name__ == "__main__":
    main()
