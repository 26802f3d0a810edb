"""Places where a store or a bundle may lie that are not as usual: what docs/store.md says of each is what happens.

Other users, mounts and full disks need root; without it those say `not run: ...`.
"""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

from kc_test import BUILD, KC, KcTest, events, main

IS_ROOT = os.geteuid() == 0


def nameless_user():
    """The number of a user that has no name here."""
    names = {user.pw_uid for user in pwd.getpwall()}
    return next(number for number in range(54321, 60000) if number not in names)


class OddPlaces(KcTest):
    def setUp(self):
        super().setUp()
        self.env = self.with_fake()
        self.make_units(2)

    def assert_builds(self, env, *arguments, hits=0, cwd=None, warns=None):
        """A build that succeeds; with `warns` it says something like that, else nothing on stderr."""
        done = self.kc("build", "--format=json", *arguments, env=env, cwd=cwd)
        summary = events(done.out)[-1]
        self.assertEqual((summary["units"], summary["hits"], summary["failed"]), (2, hits, 0))
        if warns:
            self.assertRegex(done.err, warns)
            self.assertEqual(done.err.count("warning"), 1, done.err)
        else:
            self.assertEqual(done.err, "")
        return summary

    def as_nobody(self, *command, env):
        """Runs a command as a user without a name, who owns all that this test has made, from a copy of kc that he can
        reach. Gives the finished process."""
        if not IS_ROOT:
            self.skipTest("not run: only root can become another user")
        uid = nameless_user()
        programs = self.root / "programs"
        if not programs.exists():
            for name in ("bin/kc", "libexec/kc/kc-engine"):
                (programs / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(BUILD / name, programs / name)
        for path in [self.root, *self.root.rglob("*")]:
            os.chown(path, uid, uid, follow_symlinks=False)
        return subprocess.run([programs / "bin/kc", *command], cwd=self.work, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, user=uid, group=uid, extra_groups=[], timeout=60)

    def as_bound_by_modes(self, *command, env):
        """The same as a user whom modes of files bind: this one, or where that is root the one without a name."""
        if IS_ROOT:
            return self.as_nobody(*command, env=env)
        return subprocess.run([KC, *command], cwd=self.work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60)

    def full_disk(self, size, inodes=1000):
        """A file system of its own of this size. It goes with the test."""
        if not IS_ROOT:
            self.skipTest("not run: only root can mount")
        folder = self.root / "disk"
        folder.mkdir()
        options = f"size={size},nr_inodes={inodes},mode=0700"
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "kc-test", folder], capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"not run: nothing can be mounted here ({done.stderr.strip()})")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    # -- the store ------------------------------------------------------------------------------------------

    def test_without_a_home_a_temporary_store_serves_the_build_and_goes_with_it(self):
        for changes in ({"HOME": None}, {"HOME": ""}, {"HOME": "/proc/none"}):
            with self.subTest(**changes):
                env = self.with_fake(KC_STORE_DIR=None, **changes)
                self.assert_builds(env, warns="a temporary store serves this build alone")
                self.assertEqual(list(self.root.glob("kc-*")), [])
                os.unlink(self.work / "kernels.kcb")

    def test_without_any_place_for_files_the_environment_is_at_fault(self):
        env = self.with_fake(KC_STORE_DIR=None, HOME=None, TMPDIR="/proc/none")
        done = self.kc("build", env=env, expect=None)
        # The compiler's own files need a folder: that is the environment's fault, and told as such.
        self.assertEqual(done.returncode, 3, done.err)
        self.assertIn("/proc/none", done.err)

    def test_a_store_that_cannot_be_written_is_replaced_for_the_build_and_gives_hits_when_read(self):
        env = self.with_fake()
        self.kc("build", env=env)
        os.unlink(self.work / "kernels.kcb")
        self.set_modes(self.store, 0o555, 0o444)
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+w", self.root], check=True)
        before = sorted(self.store.rglob("*"))
        done = self.as_bound_by_modes("build", "--store-mode=ro", "--format=json", env=env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(events(done.stdout)[-1]["hits"], 2)
        os.unlink(self.work / "kernels.kcb")
        done = self.as_bound_by_modes("build", "--format=json", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a temporary store serves this build alone", done.stderr)
        self.assertEqual(sorted(self.store.rglob("*")), before)

    def test_a_store_of_another_user_is_refused(self):
        self.kc("build", env=self.env)
        if not IS_ROOT:
            self.skipTest("not run: only root can give a folder away")
        uid = nameless_user()
        os.chown(self.store, uid, uid)
        done = self.kc("build", "-o", "new.kcb", env=self.env, expect=3)
        self.assertIn(f"belongs to user {uid}", done.err)
        self.assertIn("--store", done.err)
        self.assertFalse((self.work / "new.kcb").exists())
        self.kc("build", "--store-mode=off", "-o", "new.kcb", env=self.env)

    def test_a_store_behind_a_symbolic_link_is_used(self):
        real = self.root / "real"
        self.store.symlink_to(real)
        real.mkdir(mode=0o700)
        self.assert_builds(self.env)
        os.unlink(self.work / "kernels.kcb")
        self.assert_builds(self.env, hits=2)
        self.assertEqual(len(list(real.glob("v1/e/*/*.kce"))), 2)
        self.assertTrue(self.store.is_symlink())

    def test_a_symbolic_link_inside_a_store_is_refused(self):
        self.kc("build", env=self.env)
        shutil.move(self.store / "v1" / "e", self.root / "elsewhere")
        (self.store / "v1" / "e").symlink_to(self.root / "elsewhere")
        done = self.kc("build", "-o", "new.kcb", env=self.env, expect=3)
        self.assertIn("symbolic link", done.err)

    def test_store_and_output_on_two_file_systems(self):
        other = pathlib.Path("/dev/shm")
        if not os.access(other, os.W_OK) or os.stat(other).st_dev == os.stat(self.root).st_dev:
            self.skipTest("not run: there is no second file system")
        store = pathlib.Path(tempfile.mkdtemp(prefix="kc-test-", dir=other))
        self.addCleanup(shutil.rmtree, store)
        env = self.with_fake(KC_STORE_DIR=store / "s", TMPDIR=store)
        self.assert_builds(env)
        first = self.digest(self.work / "kernels.kcb")
        os.unlink(self.work / "kernels.kcb")
        self.assert_builds(env, hits=2)
        self.assertEqual(self.digest(self.work / "kernels.kcb"), first)
        self.assertEqual(os.listdir(store / "s" / "v1" / "tmp"), [])

    def test_paths_as_long_as_the_system_takes_them(self):
        # The store, its work folders and the bundle need some more than the folder itself.
        deep = self.root / "/".join(["d" * 200] * 18)
        deep = deep / ("e" * (3800 - len(str(deep))))
        deep.mkdir(parents=True)
        self.assertGreater(len(str(deep)), 3790)
        self.assert_builds(self.with_fake(KC_STORE_DIR=deep / "s"), "-o", deep / "out.kcb")
        os.unlink(deep / "out.kcb")
        self.assert_builds(self.with_fake(KC_STORE_DIR=deep / "s"), "-o", deep / "out.kcb", hits=2)
        self.assertEqual(os.listdir(deep / "s" / "v1" / "tmp"), [])
        # Too long for any file in it: said, not cut.
        longer = f"{deep}/{'f' * 200}/{'g' * 200}"
        done = self.kc("build", "-o", longer + "/out.kcb", env=self.env, expect=3)
        self.assertIn("File name too long", done.err)
        self.assert_builds(self.with_fake(KC_STORE_DIR=longer), warns="File name too long")

    def test_a_store_whose_path_leaves_no_room_for_those_of_jobs(self):
        deep = self.root / "/".join(["d" * 200] * 19)
        deep.mkdir(parents=True)
        deep = deep / ("e" * (4040 - len(str(deep))))
        env = self.with_fake(KC_STORE_DIR=deep)
        self.assert_builds(env)
        os.unlink(self.work / "kernels.kcb")
        self.assert_builds(env, hits=2)
        self.assertEqual(list(self.root.glob("kc-*")), [])

    def test_names_that_are_not_utf8(self):
        odd = os.fsdecode(os.fsencode(str(self.root)) + b"/st\xffore\n\x1b[31m")
        env = dict(self.env, KC_STORE_DIR=odd)
        output = os.fsdecode(os.fsencode(str(self.work)) + b"/b\xfe.kcb")
        summary = self.assert_builds(env, "-o", output)
        self.assertIn("\ufffd", summary["output"])
        os.unlink(output)
        self.assert_builds(env, "-o", output, hits=2)
        os.chmod(odd, 0o777)
        done = self.kc("build", "-o", output, env=env, expect=3)
        self.assertIn(r"/st\xffore\x0a\x1b[31m: can be written by others", done.err)

    def test_a_user_without_a_name(self):
        done = self.as_nobody("build", "--format=json", env=self.env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        entries = self.store_files("e/*/*.kce")
        self.assertEqual(len(entries), 2)
        self.assertEqual(entries[0].stat().st_uid, nameless_user())
        self.assertIn(str(nameless_user()).encode(), entries[0].read_bytes())  # its origin

    # -- disks that are full --------------------------------------------------------------------------------

    def test_a_store_on_a_full_disk_costs_hits_and_no_build(self):
        disk = self.full_disk("256k")
        (disk / "filler").write_bytes(bytes(216 << 10))
        self.make_units(2, "@size=30000 {i}")
        env = self.with_fake(KC_STORE_DIR=disk / "s")
        done = self.kc("build", env=env)
        self.assertIn("No space left on device", done.err)
        self.assertEqual(done.err.count("warning"), 1, done.err)
        self.kc("verify", "kernels.kcb")
        self.assertEqual([p.name for p in (disk / "s/v1/tmp").iterdir()], [])
        self.kc("build", "-o", "strict.kcb", "--strict-store", env=env, expect=3)
        (disk / "filler").unlink()
        self.kc("build", "-o", "again.kcb", "--strict-store", env=env)
        self.assertEqual(self.digest(self.work / "again.kcb"), self.digest(self.work / "kernels.kcb"))

    def test_a_store_without_room_for_one_more_file_costs_hits_and_no_build(self):
        disk = self.full_disk("1m", inodes=60)
        env = self.with_fake(KC_STORE_DIR=disk / "s")
        self.kc("build", env=env)
        self.make_units(3, "changed {i}")
        number = 0
        try:
            while True:
                (disk / f"filler{number}").touch()
                number += 1
        except OSError:
            pass
        self.assertIn("No space left on device", self.kc("build", env=env).err)
        self.kc("verify", "kernels.kcb")
        for filler in disk.glob("filler*"):
            filler.unlink()
        self.kc("build", "-o", "again.kcb", env=env)
        self.assertEqual(self.digest(self.work / "again.kcb"), self.digest(self.work / "kernels.kcb"))

    def test_an_output_on_a_full_disk_keeps_the_old_bundle(self):
        disk = self.full_disk("64k")
        output = disk / "out.kcb"
        self.kc("build", "-o", output, env=self.env)
        old = self.digest(output)
        (disk / "filler").write_bytes(bytes(48 << 10))
        self.make_units(4, "@size=30000 {i}")
        done = self.kc("build", "-o", output, env=self.env, expect=3)
        self.assertIn("No space left on device", done.err)
        self.assertEqual(self.digest(output), old)
        self.assertEqual(sorted(os.listdir(disk)), ["filler", "out.kcb"])
        # What was compiled is kept: with room it is packed from hits.
        (disk / "filler").unlink()
        summary = self.summary("build", env=self.env)
        self.assertEqual((summary["compiled"], summary["failed"]), (0, 0))

    def test_a_folder_that_cannot_be_written_is_told_before_anything_is_compiled(self):
        out = self.work / "out"
        out.mkdir()
        out.chmod(0o555)
        done = self.as_bound_by_modes("build", "-o", "out/k.kcb", env=self.env)
        self.assertEqual(done.returncode, 3)
        self.assertIn("Permission denied", done.stderr)
        self.assertEqual(self.store_files("e/*/*"), [])


if __name__ == "__main__":
    main()
