"""Files of a newer kc in the store that this one shares with it: never read, never damaged, never in the way."""

import os
import struct

from kc_test import KcTest, main, sealed


class Skew(KcTest):
    def newer(self, path, unknown=b""):
        """Makes the sealed file one of version 2, whole and right as far as an older kc can tell; its time is long ago.
        Returns what must not change of it."""
        data = path.read_bytes()
        (size,) = struct.unpack_from("<Q", data, 16)
        head, payload = bytearray(data[:size]) + unknown, data[size:]
        struct.pack_into("<II", head, 8, 2, 0x80)  # the version, and a flag that means something to it
        struct.pack_into("<Q", head, 16, len(head))
        mode = path.stat().st_mode
        self.replace(path, sealed(head + payload))
        path.chmod(mode)
        os.utime(path, (1_600_000_000, 1_600_000_000))
        return self.seen(path)

    def seen(self, path):
        status = path.stat()
        return path.read_bytes(), status.st_mtime_ns, status.st_ino, status.st_mode

    def count(self, name):
        """The counter over all processes so far, as stats.d keeps it."""
        total = 0
        for path in self.store_files("stats.d/*"):
            for line in path.read_text().splitlines():
                words = line.split()
                if words[0] == name:
                    total += int(words[1])
        return total

    def test_r14_a_newer_entry_is_a_miss_that_is_left_alone_and_the_unit_still_builds(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", env=env)
        whole = self.digest(self.work / "kernels.kcb")
        entries = self.store_files("e/*/*.kce")
        before = {path: self.newer(path, unknown=b"a field of version 2") for path in entries[:2]}
        self.assertEqual([e["state"] for e in self.kc_json("plan", env=env)[:-1]].count("miss"), 2)
        done = self.kc("build", "--require-cached", "-o", "b.kcb", env=env, expect=1)
        self.assertEqual(done.err.count("is not in the store"), 2, done.err)
        self.assertEqual(self.count("declined"), 0)
        for times in (1, 2):
            done = self.kc("build", "-o", f"{times}.kcb", env=env)
            self.assertIn("2 compiled, 1 hit", done.out)
            self.assertEqual(done.err, "")
            self.assertEqual(self.digest(self.work / f"{times}.kcb"), whole)
            self.assertEqual(self.count("declined"), 2 * times)
            self.assertEqual({path: self.seen(path) for path in before}, before)
        self.kc("build", "--strict-store", "-o", "3.kcb", env=env)
        self.kc("build", "--store-mode=refresh", "-o", "4.kcb", env=env)
        self.kc("build", "--store-mode=ro", "-o", "5.kcb", env=env)
        summary = self.kc_json("store", "verify", env=env)[-1]
        self.assertEqual((summary["damaged"], summary["newer"]), (0, 2))
        self.assertEqual({path: self.seen(path) for path in before}, before)
        self.assertEqual((self.count("corrupt"), self.count("soft_errors")), (0, 0))
        self.assertEqual([p for p in self.store_files("tmp/*") if p.name.startswith("bad-")], [])

    def test_r14_a_newer_record_is_a_miss_that_is_left_alone_and_the_unit_still_builds(self):
        self.make_loom_units(3)
        env = self.with_hostile()
        self.kc("build", env=env)
        whole = self.digest(self.work / "kernels.kcb")
        before = {path: self.newer(path, unknown=b"more") for path in self.store_files("r/*/*.kcr")[:2]}
        self.kc("build", "--require-cached", "-o", "b.kcb", env=env, expect=1)
        for times in (1, 2):
            done = self.kc("build", "-o", f"{times}.kcb", env=env)
            # It is linked, and then its entry is found.
            self.assertIn("0 compiled, 3 hits", done.out)
            self.assertEqual(done.err, "")
            self.assertEqual(self.digest(self.work / f"{times}.kcb"), whole)
            self.assertEqual(self.count("declined"), 2 * times)
        # The entry that it led to is of a newer version, too.
        before |= {path: self.newer(path) for path in self.store_files("e/*/*.kce")}
        self.assertIn("3 compiled, 0 hits", self.kc("build", "-o", "3.kcb", env=env).out)
        self.assertEqual(self.digest(self.work / "3.kcb"), whole)
        self.assertEqual({path: self.seen(path) for path in before}, before)
        summary = self.kc_json("store", "verify", env=env)[-1]
        self.assertEqual((summary["damaged"], summary["newer"]), (0, 5))

    def test_r14_a_newer_state_is_no_state_and_no_fault(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", env=env)
        (state,) = self.store_files("state/*")
        self.newer(state)
        for command in (["plan"], ["build", "-n"]):
            self.assertEqual(self.kc(*command, env=env).err, "")
        done = self.kc("build", "--strict-store", env=env)
        self.assertIn("2 hits", done.out)
        self.assertEqual(done.err, "")
        self.assertIn("is up to date", self.kc("build", env=env).out)
        self.assertEqual((self.count("corrupt"), self.count("soft_errors")), (0, 0))

    def test_r14_a_newer_pin_stops_collections_and_nothing_else(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", env=env)
        self.kc("store", "pin", "release", "-f", "kernels.yaml", env=env)
        (pin,) = self.store_files("roots/*")
        before = self.newer(pin)
        entries = self.store_files("e/*/*")
        done = self.kc("gc", "--max-size", "0", env=env, expect=3)
        self.assertIn("release", done.err)
        self.assertEqual(self.store_files("e/*/*"), entries)
        os.unlink(self.work / "kernels.kcb")
        self.assertEqual(self.kc("build", env=env).err, "")
        self.assertEqual(self.seen(pin), before)
        self.kc("store", "unpin", "release", env=env)
        self.kc("gc", "--max-size", "0", env=env)
        self.assertEqual(self.store_files("e/*/*"), [])

    def test_r14_a_newer_archive_is_refused_and_left_alone(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", env=env)
        archive = self.work / "store.kca"
        self.kc("store", "export", archive, env=env)
        before = self.newer(archive)
        other = self.environment(KC_STORE_DIR=self.root / "other")
        done = self.kc("store", "import", archive, "--trust-unsigned", env=other, expect=1)
        self.assertRegex(done.err, "newer")
        self.assertEqual(list((self.root / "other").glob("v1/e/*/*")), [])
        self.assertEqual(self.seen(archive), before)


if __name__ == "__main__":
    main()
