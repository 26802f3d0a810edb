"""kc.lock: which compilers a folder's kernels are built with, and `--locked`."""

import os
import platform
import re

from locks import LockTest
from kc_test import main


class Lock(LockTest):
    def test_it_names_both_compilers_without_any_path_and_is_not_touched_again(self):
        env = self.make()
        done = self.kc("lock", env=env)
        self.assertRegex(done.out, r"^[0-9a-f]{12}  loom \(new\)\n[0-9a-f]{12}  tileiras \(new\)\nkc: wrote kc.lock\n$")
        text = self.lock().read_text()
        self.assertNotIn(str(self.root), text)
        self.assertNotIn("/", text.replace("version control", ""))
        for word in ("role: tileiras", "role: ptxas", "role: libloomc", "role: libm", f"host: {platform.machine()}"):
            self.assertIn(word, text)
        before = os.stat(self.lock())
        self.assertIn("kc: kc.lock is up to date", self.kc("lock", env=env).out)
        self.assertEqual(os.stat(self.lock()), before)
        self.kc("lock", "--check", env=env)
        # What people add to it stays while nothing else is to be said.
        self.lock().write_text(text + "# a remark\n")
        self.kc("lock", env=env)
        self.assertTrue(self.lock().read_text().endswith("# a remark\n"))
        self.assert_no_temporaries()

    def test_the_version_is_that_of_what_the_compiler_made(self):
        env = self.make()
        self.kc("lock", env=env)
        self.assertNotIn("compiler:", self.lock().read_text())
        self.kc("build", env=env)
        self.kc("lock", env=env)
        records = self.kc_json("show", "kernels.kcb")[1:]
        versions = {r["compiler_version"] for r in records}
        for version in versions:
            self.assertIn(f'    compiler: "{version}"\n', self.lock().read_text())
        text = self.lock().read_text()
        # It stays when the bundle is gone, and goes when the compiler does.
        os.unlink(self.work / "kernels.kcb")
        self.kc("lock", env=env)
        self.assertEqual(self.lock().read_text(), text)
        self.install_fake(variant="2")
        done = self.kc("lock", env=env)
        self.assertRegex(done.out, r"tileiras \(changed: tileiras [0-9a-f]{12} -> [0-9a-f]{12}\)")
        self.assertEqual(self.lock().read_text().count("compiler: "), 1)

    def test_check_says_whether_it_is_up_to_date_and_writes_nothing(self):
        env = self.make()
        done = self.kc("lock", "--check", env=env, expect=1)
        self.assertIn("kc.lock: does not name the compilers", done.err)
        self.assertFalse(self.lock().exists())
        self.kc("lock", env=env)
        text = self.lock().read_text()
        events = self.kc_json("lock", "--check", env=env)
        self.assertEqual([e.get("backend") for e in events], ["loom", "tileiras", None])
        self.assertEqual([e["state"] for e in events], ["same", "same", "unchanged"])
        self.assertEqual({f["role"] for f in events[1]["files"]} >= {"tileiras", "ptxas"}, True)
        self.install_hostile(variant="2")
        events = self.kc_json("lock", "--check", env=env, expect=1)
        self.assertEqual([e["state"] for e in events], ["changed", "same", "outdated"])
        self.assertEqual(self.lock().read_text(), text)
        # The keys of another kc.
        self.install_hostile(variant="1")
        self.lock().write_text(text.replace("kc-request-v1", "kc-request-v0"))
        self.assertIn("keys of another format", self.kc("lock", "--check", env=env, expect=1).out)

    def test_what_it_says_of_other_machines_and_other_manifests_stays(self):
        env = self.make()
        self.kc("lock", env=env)
        text = self.lock().read_text()
        host = platform.machine()
        other = {"x86_64": "aarch64", "aarch64": "x86_64"}[host]
        elsewhere = text.replace(f"host: {host}", f"host: {other}")
        entries = elsewhere[elsewhere.index("  - backend: loom"):]
        self.lock().write_text(text + entries)
        self.write("loom.yaml", "version: 1\nkernels:\n  - { name: k000, sources: k000.loom, targets: [gfx1100] }\n")
        self.install_hostile(variant="2")
        self.kc("lock", "-f", "loom.yaml", env=env)
        now = self.lock().read_text()
        self.assertEqual(now.count("backend: "), 4)
        self.assertEqual(now.count(f"host: {other}"), 2)
        tileiras = text[text.index("  - backend: tileiras"):]
        self.assertIn(tileiras, now)
        self.assertNotEqual(now, text)

    def test_a_lock_file_that_cannot_be_read_is_never_replaced(self):
        env = self.make()
        self.kc("lock", env=env)
        good = self.lock().read_text()
        for bad, message in [
            ("<<<<<<< ours\n" + good, "kc.lock:3:1: not YAML"),
            (good.replace("version: 1", "version: 2"), "is of version 2"),
            (re.sub(r"(role: ptxas, digest: )\w", r"\g<1>0", good.replace("digest: 0", "digest: 1")), "edited, or merged"),
        ]:
            with self.subTest(message):
                self.lock().write_text(bad)
                for arguments in (["lock"], ["lock", "--check"], ["build", "--locked"]):
                    self.assertIn(message, self.kc(*arguments, env=env, expect=2).err)
                self.assertEqual(self.lock().read_text(), bad)
                # A build that does not need it says so and goes on.
                done = self.kc("build", "--store-mode=refresh", env=env)
                self.assertEqual(done.err.count("kc: warning: "), 1, done.err)
                self.assertIn(message, done.err)
        self.lock().unlink()
        self.lock().mkdir()
        self.kc("lock", env=env, expect=2)
        self.assertIn("kc: warning:", self.kc("build", "--store-mode=refresh", env=env).err)

    def test_no_compiler_and_a_folder_that_cannot_be_written_are_told(self):
        env = self.make()
        done = self.bare("lock", expect=3)
        self.assertIn("no tileiras found; looked in:", done.err)
        self.assertIn("no Loom library found; looked in:", done.err)
        self.assertFalse(self.lock().exists())
        if os.getuid() != 0:
            self.work.chmod(0o555)
            self.addCleanup(self.work.chmod, 0o755)
            self.kc("lock", env=env, expect=3)
        self.kc("lock", "-f", "missing.yaml", env=env, expect=2)

    # -- --locked -------------------------------------------------------------------------------------------

    def test_locked_wants_exactly_the_compilers_of_the_lock(self):
        env = self.make()
        for command in (["build"], ["plan"], ["pack"]):
            done = self.kc(*command, "--locked", env=env, expect=3)
            self.assertIn("there is no kc.lock", done.err)
            self.assertEqual(done.err.count("error"), 1, done.err)
        self.kc("lock", env=env)
        self.kc("build", "--locked", env=env)
        self.install_fake(variant="2")
        for command in (["build"], ["plan"], ["pack"]):
            done = self.kc(*command, "--locked", env=env, expect=3)
            self.assertRegex(done.err, r"kc.lock: names another tileiras: tileiras [0-9a-f]{12} -> [0-9a-f]{12}\n")
            self.assertNotIn("loom", done.err)
            self.assertEqual(done.out, "")
        # Without --locked it is a note, once.
        done = self.kc("build", env=env)
        self.assertEqual(done.err.count("kc.lock names another tileiras (tileiras "), 1, done.err)
        self.assertIn("1 compiled", done.out)
        # And the state of that build does not let --locked off.
        self.assertIn("is up to date", self.kc("build", env=env).out)
        self.kc("build", "--locked", env=env, expect=3)
        self.kc("lock", env=env)
        self.kc("build", "--locked", env=env)
        self.assertIn("is up to date", self.kc("build", "--locked", env=env).out)

    def test_locked_refuses_a_lock_of_other_keys_or_without_a_compiler(self):
        env = self.make()
        self.kc("lock", env=env)
        good = self.lock().read_text()
        self.lock().write_text(re.sub(r"adapter: (\d+)", r"adapter: 9\1", good))
        done = self.kc("build", "--locked", env=env, expect=3)
        self.assertEqual(done.err.count("keys of another format"), 2, done.err)
        done = self.kc("build", env=env)
        self.assertEqual(done.err.count("keys of another format"), 2, done.err)
        self.lock().write_text(good[:good.index("  - backend: tileiras")])
        done = self.kc("build", "--locked", env=env, expect=3)
        self.assertIn("says nothing of tileiras", done.err)
        self.assertNotIn("kc.lock", self.kc("plan", env=env).err)

    def test_a_no_op_looks_at_the_lock_file(self):
        env = self.make()
        self.kc("lock", env=env)
        self.settle()
        self.kc("build", env=env)
        self.assertIn("is up to date", self.kc("build", "--locked", env=env).out)
        os.utime(self.lock())  # touched: its bytes are compared
        self.assertIn("is up to date", self.kc("build", "--locked", env=env).out)
        text = self.lock().read_text()
        self.lock().write_text(text.replace("role: ptxas", "role: ptxaz"))
        self.kc("build", "--locked", env=env, expect=2)
        self.assertIn("kc: warning: kc.lock", self.kc("build", env=env).err)
        self.lock().unlink()
        self.kc("build", "--locked", env=env, expect=3)
        self.kc("build", env=env)
        self.assertIn("is up to date", self.kc("build", env=env).out)
        self.lock().write_text(text)  # one that appears is an input from then on
        self.assertNotIn("is up to date", self.kc("build", "--locked", env=env).out)
        self.assertIn("is up to date", self.kc("build", "--locked", env=env).out)

if __name__ == "__main__":
    main()
