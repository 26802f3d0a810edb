"""Builds where no compiler is: identities from kc.lock or a bundle, code from the store."""

import os
import platform
import shutil
import subprocess

from locks import LockTest
from kc_test import main, tile


class NoCompiler(LockTest):
    def filled(self):
        """A store that has everything, kc.lock, and the digest of the bundle, which is gone."""
        env = self.make()
        self.kc("build", env=env)
        self.kc("lock", env=env)
        digest = self.digest(self.work / "kernels.kcb")
        os.rename(self.work / "kernels.kcb", self.root / "made.kcb")
        return env, digest

    def test_without_a_compiler_everything_comes_out_of_the_store(self):
        env, digest = self.filled()
        planned = self.bare_json("plan")
        self.assertEqual(set(self.states(planned).values()), {"hit", "skipped"})
        keys = {e["unit"]: (e["request_key"], e["key"]) for e in planned[:-1]}
        self.assertEqual({e["unit"]: (e["request_key"], e["key"]) for e in self.kc_json("plan", env=env)[:-1]}, keys)
        for command in (["build"], ["build", "--locked", "--require-cached"], ["pack"], ["pack", "--locked"]):
            with self.subTest(command):
                (self.work / "kernels.kcb").unlink(missing_ok=True)
                log = self.root / "execs"
                done = subprocess.run(
                    [shutil.which("strace"), "-f", "-e", "trace=execve", "-o", log, self.install_bare(), *command],
                    cwd=self.work, capture_output=True, text=True,
                    env=self.environment(PATH="", ASAN_OPTIONS="detect_leaks=0"),
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(log.read_text().count("execve("), 1, "no engine, no compiler")
                self.assertEqual(done.stderr.count("of the one that kc.lock names"), 2, done.stderr)
                self.assertEqual(self.digest(self.work / "kernels.kcb"), digest)
        self.assertIn("3 hits, 1 skipped", self.bare("warm", "--locked").out)
        done = self.bare("build")
        self.assertIn("is up to date (4 units, 1 skipped)", done.out)
        self.assertEqual(done.err, "")

    def test_a_read_only_store_is_enough(self):
        env, digest = self.filled()
        before = {path: os.stat(path).st_mtime_ns for path in self.store.rglob("*")}
        self.bare("build", "--locked", "--require-cached", "--store-mode=ro")
        self.assertEqual(self.digest(self.work / "kernels.kcb"), digest)
        self.assertEqual({path: os.stat(path).st_mtime_ns for path in self.store.rglob("*")}, before)

    def test_what_is_missing_is_listed_whole_and_nothing_is_tried(self):
        env, digest = self.filled()
        self.write("a.tilebc", tile("@entry=kernel another"))
        self.write("k000.loom", (self.work / "k000.loom").read_text().replace("constant 2", "constant 3"))
        missing = ["a@sm_75", "a@sm_90", "k000@gfx1100", "k000@gfx1201"]
        done = self.bare("build", expect=3)
        for unit in missing:
            self.assertIn(f"kc: error: {unit} is not in the store\n", done.err)
        self.assertRegex(done.err, r"2 units cannot be compiled here: no tileiras found; looked in: ")
        self.assertRegex(done.err, r"2 units cannot be compiled here: no Loom library found; looked in: ")
        self.assertIn("4 not tried", done.out)
        self.assertFalse((self.work / "kernels.kcb").exists())
        for command in (["build", "--require-cached"], ["pack"], ["build", "--require-cached", "-n"]):
            done = self.bare(*command, expect=1)
            for unit in missing:
                self.assertEqual(done.err.count(f"error: {unit} is not in the store"), 1, done.err)
            self.assertEqual(done.err.count("where there is a compiler"), 1)
        for command in (["build", "-n"], ["warm"], ["warm", "--locked"]):
            self.assertEqual(self.bare(*command, expect=3).err.count("is not in the store"), 4)
        # A plan only tells; a narrowed build asks for its own units alone.
        self.assertEqual(self.states(self.bare_json("plan")), dict.fromkeys(missing, "miss"))
        done = self.bare("build", "k000", "--target", "gfx1201", "-o", "part.kcb", expect=3)
        self.assertEqual(done.err.count("is not in the store"), 1, done.err)
        self.assertNotIn("tileiras", done.err)

    def test_one_compiler_missing_does_not_stop_the_other(self):
        env, digest = self.filled()
        without_loom = {**env}
        del without_loom["KC_LOOM_LIBRARY"]
        self.write("a.tilebc", tile("@entry=kernel another"))
        done = self.bare("build", env=without_loom)
        self.assertIn("4 units: 1 compiled, 2 hits, 1 skipped", done.out)
        # Where a unit of the missing one is missing, nothing is compiled of the other either.
        self.write("a.tilebc", tile("@entry=kernel third"))
        self.write("k000.loom", (self.work / "k000.loom").read_text().replace("constant 2", "constant 3"))
        done = self.bare("build", env=without_loom, expect=3)
        self.assertNotIn("a@sm_90", done.err)
        self.assertIn("0 compiled", done.out)

    def test_a_variable_that_names_a_compiler_is_obeyed_or_an_error(self):
        env, digest = self.filled()
        for name in ("KC_TILEIRAS", "CUTILE_TILEIRAS_PATH", "KC_LOOM_LIBRARY", "HRX_LOOM_LIBRARY"):
            with self.subTest(name):
                done = self.bare("build", env=self.environment(PATH="", **{name: "/nowhere/it"}), expect=3)
                self.assertIn(f"{name}=/nowhere/it: no such file", done.err)
        self.bare("build")
        self.bare("build", env=self.environment(PATH="", KC_TILEIRAS="/nowhere/it"), expect=3)

    def test_a_compiler_that_appears_is_used_by_the_next_build(self):
        env, digest = self.filled()
        self.bare("build")
        self.assertIn("is up to date", self.bare("build").out)
        done = self.bare("build", env=env)
        self.assertNotIn("is up to date", done.out)
        self.assertIn("3 hits", done.out)
        self.assertIn("is up to date", self.bare("build", env=env).out)
        # In a place that is searched, without any variable; another one than the lock's.
        self.install_fake("found", variant="2")
        path = self.environment(PATH=self.root / "found" / "bin")
        self.bare("build")
        done = self.bare("build", env=path)
        self.assertIn("kc.lock names another tileiras", done.err)
        self.assertIn("1 compiled", done.out)

    def test_the_identity_of_a_bundle_stands_in(self):
        env, digest = self.filled()
        self.lock().unlink()
        done = self.bare("build", expect=3)
        self.assertEqual(done.err.count("kc.lock (`kc lock`) or --identity-from"), 2, done.err)
        made = self.root / "made.kcb"
        self.settle()  # the bundle is not hashed, so only a tuple that has settled proves anything
        for command in (["build"], ["pack"], ["build", "--require-cached"]):
            (self.work / "kernels.kcb").unlink(missing_ok=True)
            self.bare(*command, "--identity-from", made)
            self.assertEqual(self.digest(self.work / "kernels.kcb"), digest)
        self.assertIn("is up to date", self.bare("build", "--identity-from", made).out)
        self.bare("build", expect=3)
        self.assertEqual(self.bare_json("plan", "--identity-from", made)[-1]["hits"], 3)
        # The bundle is an input; so is the kc.lock that appears and says something else.
        os.utime(made)
        self.assertNotIn("is up to date", self.bare("build", "--identity-from", made).out)
        self.install_fake(variant="2")
        self.kc("lock", env=env)
        done = self.bare("build", "--identity-from", made, expect=3)
        self.assertIn("a@sm_90 is not in the store", done.err)
        # --locked looks at the lock alone.
        self.lock().unlink()
        self.assertIn("there is no kc.lock", self.bare("build", "--locked", "--identity-from", made, expect=3).err)

    def test_a_bundle_that_does_not_tell_is_refused(self):
        env, digest = self.filled()
        self.lock().unlink()
        record = {"kernel": "a", "target": "sm_90", "backend": "tileiras", "compiler_identity": "11" * 32}
        two = self.make_bundle("two.kcb", record, record | {"kernel": "b", "compiler_identity": "22" * 32})
        done = self.bare("build", "--identity-from", two, expect=2)
        self.assertIn("11" * 32, done.err)
        self.assertIn("22" * 32, done.err)
        one = self.make_bundle("one.kcb", record)
        done = self.bare("build", "--identity-from", one, expect=3)
        self.assertIn("no Loom library found", done.err)
        self.assertNotIn("error: no tileiras found", done.err)
        self.bare("build", "--identity-from", "missing.kcb", expect=2)
        self.write("text.kcb", "no bundle")
        self.assertIn("text.kcb", self.bare("build", "--identity-from", "text.kcb", expect=1).err)
        # Where there is a compiler nobody looks at it.
        self.kc("build", "--identity-from", "missing.kcb", env=env)

    def test_a_lock_of_another_kind_of_machine_does_not_count(self):
        env, digest = self.filled()
        host = platform.machine()
        text = self.lock().read_text()
        self.lock().write_text(text.replace(host, {"x86_64": "aarch64", "aarch64": "x86_64"}[host]))
        self.assertIn("no tileiras found", self.bare("build", expect=3).err)

    def test_a_lock_file_is_never_replaced_by_a_bundle(self):
        env, digest = self.filled()
        self.assertIn("is an input", self.kc("build", "-o", "kc.lock", env=env, expect=2).err)


if __name__ == "__main__":
    main()
