"""kc gc and pins: what is kept survives whatever is asked, and what cannot be known changes nothing."""

import shutil
import time

from kc_test import KcTest, loom, main, tile


class Gc(KcTest):
    def picture(self):
        """Every file of the store with what tells one version of it from another."""
        return {path: (path.lstat().st_size, path.lstat().st_mtime_ns)
                for path in self.store.rglob("*") if not path.is_dir()}

    def du(self):
        return sum(max(path.stat().st_size, path.stat().st_blocks * 512)
                   for path in self.store_files("[er]/*/*.kc[er]"))

    def assert_cached(self, *arguments, env):
        done = self.summary("build", "--require-cached", *arguments, env=env)
        self.assertEqual((done["hits"], done["compiled"]), (done["units"], 0))

    def assert_nothing_changes(self, *arguments, expect, env):
        before = self.picture()
        done = self.kc(*arguments, env=env, expect=expect)
        self.assertEqual(self.picture(), before)
        return done

    def everything(self):
        """All that a user can ask of a collection that takes as much as possible."""
        return ("--max-size", "0"), ("--max-age", "0s"), ("--only-keep",)

    def project(self, folder, tiles, looms):
        """A manifest of kernels of both compilers, built; kernels of equal names in two folders differ."""
        lines = ["version: 1", "kernels:"]
        for i in range(tiles):
            self.write(f"{folder}/t{i}.tilebc", tile(f"@entry=kernel of={folder} n={i}"))
            lines.append(f"  - {{ name: t{i}, sources: t{i}.tilebc, entry: kernel, targets: [sm_90] }}")
        for i in range(looms):
            self.write(f"{folder}/l{i}.loom", loom(f"l{i}", factor=i + 2 + 10 * len(folder)))
            lines.append(f"  - {{ name: l{i}, sources: l{i}.loom, targets: [gfx1100] }}")
        return self.write(f"{folder}/kernels.yaml", "\n".join(lines) + "\n")

    def two_projects(self):
        """one: two units of each compiler, two: one of tileiras and two of Loom; built into one store and last used two
        hours ago."""
        env = self.with_fake(KC_LOOM_LIBRARY=self.with_hostile()["KC_LOOM_LIBRARY"])
        self.project("one", 2, 2)
        self.project("second", 1, 2)
        for name, folder in (("one", "one"), ("two", "second")):
            self.kc("build", "-f", f"{folder}/kernels.yaml", "-o", f"{name}.kcb", env=env)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 7)
        self.assertEqual(len(self.store_files("r/*/*.kcr")), 4)
        self.age(*self.store_files("[er]/*/*"), hours=2)
        return env

    def test_what_is_pinned_survives_whatever_is_asked_and_is_then_all_hits(self):
        env = self.two_projects()
        full = self.root / "full"
        shutil.copytree(self.store, full)
        for source in ("one/kernels.yaml", "one.kcb"):
            for asked in self.everything():
                with self.subTest(source=source, asked=asked):
                    shutil.rmtree(self.store)
                    shutil.copytree(full, self.store)
                    done = self.kc("store", "pin", "release", "-f", source, env=env)
                    self.assertIn("pinned 4 entries and 2 records as release", done.out)
                    self.assertNotIn("not there", done.out)
                    done = self.summary("gc", *asked, env=env)
                    self.assertEqual((done["entries_kept"], done["records_kept"]), (4, 2))
                    self.assertEqual((done["entries_removed"], done["records_removed"]), (3, 2))
                    self.assertEqual(done["bytes_after"], self.du())
                    self.assertEqual(done["bytes_after"], done["bytes_kept"])
                    self.assert_cached("-f", "one/kernels.yaml", "-o", "one.kcb", env=env)
                    self.kc("build", "--require-cached", "-f", "second/kernels.yaml", "-o", "again.kcb", env=env, expect=1)
                    self.kc("store", "unpin", "release")
                    self.age(*self.store_files("[er]/*/*"), hours=2)
                    if asked == ("--only-keep",):
                        done = self.assert_nothing_changes("gc", "--only-keep", expect=2, env=env)
                        self.assertIn("would empty the store", done.err)
                        asked = ("--max-size", "0")
                    self.assertEqual(self.summary("gc", *asked, env=env)["bytes_after"], 0)

    def test_what_is_named_with_keep_stays_and_only_keep_leaves_nothing_else(self):
        env = self.two_projects()
        self.write("second/looms.yaml", "".join(
            line + "\n" for line in (self.work / "second/kernels.yaml").read_text().splitlines() if "t0" not in line))
        asked = ("gc", "--only-keep", "--keep", "one.kcb", "--keep", "second/looms.yaml")
        told = self.kc_json(*asked, "--dry-run", env=env)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 7)
        before = {str(path.relative_to(self.store / "v1")) for path in self.store_files("[er]/*/*.kc[er]")}
        text = self.kc(*asked, "--dry-run", env=env).out.splitlines()
        done = self.kc(*asked, "-v", env=env).out.splitlines()
        after = {str(path.relative_to(self.store / "v1")) for path in self.store_files("[er]/*/*.kc[er]")}
        gone = [event["path"] for event in told if event["event"] == "removed"]
        self.assertEqual(set(gone), before - after)
        self.assertEqual(len(gone), 1)  # the one unit of two/ that is not Loom's
        self.assertEqual(text[:-1], gone)
        self.assertEqual(done[:-1], gone)
        self.assertTrue(text[-1].startswith("kc: would remove 1 of 7 entries and 0 of 4 records"), text[-1])
        self.assertEqual(done[-1], text[-1].replace("would remove", "removed"))
        self.assertIn(" left, ", done[-1])
        self.assertEqual(told[-1]["bytes_after"], self.du())
        self.assert_cached("-f", "one/kernels.yaml", "-o", "one.kcb", env=env)
        # Without it a limit that all keep to removes nothing, kept or not.
        self.assertEqual(self.summary("gc", "--keep", "one.kcb", env=env)["bytes_removed"], 0)

    def test_when_what_is_kept_exceeds_the_limit_the_report_says_so(self):
        env = self.two_projects()
        done = self.kc("gc", "--max-size", "5000", "--keep", "one.kcb", env=env)
        self.assertIn("which is more than the limit of 4.9 KiB", done.err)
        self.assertTrue(self.summary("gc", "--max-size", "5000", "--keep", "one.kcb", env=env)["over_limit"])
        self.assertFalse(self.summary("gc", "--max-size", "5GiB", "--keep", "one.kcb", env=env)["over_limit"])

    def test_pins_are_listed_and_an_unknown_one_has_a_hint(self):
        env = self.two_projects()
        self.assertEqual(self.kc("store", "pins").out, "")
        self.kc("store", "pin", "release-1", "-f", "one.kcb", env=env)
        self.kc("store", "pin", "nightly", "-f", "one/kernels.yaml", "--target", "sm_90", env=env)
        nightly, release = self.kc_json("store", "pins")
        self.assertEqual((nightly["name"], nightly["entries"], nightly["records"]), ("nightly", 2, 0))
        self.assertEqual((release["name"], release["source"]), ("release-1", "one.kcb"))
        self.assertEqual((release["entries"], release["records"], release["missing"]), (4, 2, 0))
        self.assertLess(abs(release["time"] - time.time()), 600)
        entry = self.store_files("e/*/*.kce")[0]
        lost = entry.stat()
        entry.unlink()
        self.kc("store", "pin", "all", "-f", "two.kcb", env=env)
        told = {event["name"]: event for event in self.kc_json("store", "pins")}
        missing = told["release-1"]["missing"] + told["all"]["missing"]
        self.assertEqual(missing, 1)
        self.assertEqual(told["release-1"]["bytes"] + told["all"]["bytes"], self.du())
        self.assertGreater(lost.st_size, 0)
        lines = self.kc("store", "pins").out.splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "ENTRIES", "RECORDS", "HELD", "MISSING", "FROM"])
        self.assertEqual([line.split()[0] for line in lines[1:]], ["all", "nightly", "release-1"])
        done = self.kc("store", "unpin", "realease-1", expect=2)
        self.assertIn('no pin is named "realease-1"', done.err)
        self.assertIn('did you mean "release-1"?', done.err)
        self.kc("store", "unpin", "release-1")
        self.assertEqual([event["name"] for event in self.kc_json("store", "pins")], ["all", "nightly"])
        done = self.kc("store", "pin", "../x", "-f", "one.kcb", expect=2)
        self.assertIn("is no name for a pin", done.err)
        self.kc("store", "pin", "x", "-f", "one.kcb", "--target", "sm_90", expect=2)

    def test_what_cannot_be_keyed_or_read_changes_nothing(self):
        env = self.two_projects()
        # No compiler, and no kc.lock that tells which it was.
        bare = self.environment(KC_TILEIRAS=self.root / "none", KC_LOOM_LIBRARY=self.root / "none")
        for asked in (("gc", "--max-size", "0", "--keep", "one/kernels.yaml"),
                      ("gc", "--only-keep", "--keep", "one.kcb", "--keep", "second/kernels.yaml"),
                      ("store", "pin", "p", "-f", "one/kernels.yaml")):
            self.assert_nothing_changes(*asked, expect=3, env=bare)
        self.write("wrong.yaml", "version: 1\nkernels: 7\n")
        for file in ("wrong.yaml", "missing.yaml", "missing.kcb"):
            self.assert_nothing_changes("gc", "--max-size", "0", "--keep", file, expect=2, env=env)
            self.assert_nothing_changes("store", "pin", "p", "-f", file, expect=2, env=env)
        damaged = bytearray((self.work / "one.kcb").read_bytes())
        damaged[20] ^= 1
        self.write("damaged.kcb", bytes(damaged))
        self.assert_nothing_changes("gc", "--max-size", "0", "--keep", "damaged.kcb", expect=1, env=env)
        # A bundle needs no compiler.
        self.kc("store", "pin", "release", "-f", "one.kcb", env=bare)
        pin = self.store / "v1/roots/release"
        pin.write_bytes(pin.read_bytes()[:-1])
        done = self.assert_nothing_changes("gc", "--max-size", "0", expect=3, env=env)
        self.assertIn("v1/roots/release: the pin", done.err)
        self.assertIn("kc store unpin", done.err)
        self.kc("store", "pins", expect=3)
        self.kc("store", "verify", "--repair", expect=1)
        self.assertTrue(pin.exists())
        self.kc("store", "unpin", "release")
        self.assertEqual(self.summary("gc", "--max-size", "0", env=env)["bytes_after"], 0)

    def test_repair_moves_damage_aside_and_the_next_build_compiles_it(self):
        env = self.two_projects()
        entry, record = self.store_files("e/*/*.kce")[0], self.store_files("r/*/*.kcr")[0]
        for path in (entry, record):
            self.damage(path)
        done = self.assert_nothing_changes("store", "verify", expect=1, env=env)
        self.assertIn("7 entries and 4 records checked, 2 damaged", done.out)
        done = self.kc_json("store", "verify", "--repair")[-1]
        self.assertEqual((done["damaged"], done["repaired"], done["newer"]), (2, 2, 0))
        self.assertEqual(len(self.store_files("tmp/bad-*")), 2)
        self.kc("store", "verify")
        for name, folder in (("one", "one"), ("two", "second")):
            self.kc("build", "-f", f"{folder}/kernels.yaml", "-o", f"{name}-again.kcb", env=env)
            self.assertEqual(self.digest(self.work / f"{name}.kcb"), self.digest(self.work / f"{name}-again.kcb"))
        self.assertEqual(len(self.store_files("e/*/*.kce")), 7)


if __name__ == "__main__":
    main()
