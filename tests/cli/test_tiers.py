"""Stores that are only read, under the user's own; store modes; what `kc store stats` says of them."""

import os
import shutil

from kc_test import KcTest, loom, main


class Tiers(KcTest):
    def setUp(self):
        super().setUp()
        self.seed = self.root / "seed"
        self.other = self.root / "other"

    def listing(self, root):
        """Every name below a folder with all that a write, a touch or a link would change."""
        found = {}
        for folder, folders, files in os.walk(root):
            for name in [".", *folders, *files]:
                status = os.lstat(os.path.join(folder, name))
                found[os.path.join(folder, name)] = (status.st_ino, status.st_mode, status.st_nlink, status.st_size,
                                                     status.st_mtime_ns, status.st_ctime_ns)
        return found

    def over(self, env, *under, **changes):
        """`env` with the user's own store over others that are only read."""
        return {**env, "KC_STORE_READ_ONLY_DIRS": ":".join(map(str, under)), **changes}

    def counts(self, *arguments, **options):
        summary = self.summary("build", *arguments, **options)
        return summary["compiled"], summary["hits"]

    def stats(self, env, *arguments):
        return self.kc_json("store", "stats", *arguments, env=env)[0]

    def fresh(self):
        """Another machine: the output and the user's own store are gone."""
        for name in ("kernels.kcb",):
            (self.work / name).unlink(missing_ok=True)
        shutil.rmtree(self.store, ignore_errors=True)

    def entry_in(self, root):
        return next(iter(sorted(root.glob("v1/e/*/*.kce"))))

    # -- hits -----------------------------------------------------------------------------------------------

    def test_a_store_that_is_only_read_gives_all_hits_of_tileiras_and_is_not_written(self):
        self.make_units(4)
        env = self.with_fake()
        self.assertEqual(self.counts("--store", self.seed, env=env), (4, 0))
        whole = self.digest(self.work / "kernels.kcb")
        self.fresh()
        before = self.listing(self.seed)
        env = self.over(env, self.root / "missing", self.seed)
        plan = self.kc_json("plan", env=env)
        self.assertEqual([e["state"] for e in plan if e["event"] == "unit"], ["hit"] * 4)
        self.assertEqual(self.counts("--require-cached", env=env), (0, 4))
        self.assertEqual(self.digest(self.work / "kernels.kcb"), whole)
        self.kc("gc", "--max-size", "0", env=env)
        self.assertEqual(self.listing(self.seed), before)
        self.assertEqual(self.store_files("e/*/*"), [])  # used as it is, not copied
        # The next build knows the state, and one whose output is gone finds everything again.
        self.assertIn("is up to date", self.kc("build", env=env).out)
        (self.work / "kernels.kcb").unlink()
        self.assertEqual(self.counts(env=env), (0, 4))
        self.assertEqual(self.listing(self.seed), before)

    def test_the_same_for_loom_with_its_records(self):
        self.make_loom_units(4)
        env = self.with_hostile()
        self.assertEqual(self.counts("--store", self.seed, env=env), (4, 0))
        whole = self.digest(self.work / "kernels.kcb")
        self.fresh()
        before = self.listing(self.seed)
        env = self.over(env, self.seed)
        self.assertEqual(self.counts("--require-cached", env=env), (0, 4))
        self.assertEqual(self.digest(self.work / "kernels.kcb"), whole)
        self.assertEqual(self.listing(self.seed), before)
        self.assertEqual(self.store_files("[er]/*/*"), [])

    def make_linked(self, unused):
        """Two Loom kernels with a library file that they do not reach: its content is asked for, not compiled."""
        self.write("unused.loom", f"// {unused}\n")
        lines = ["version: 1", "targets: [gfx1100]", "kernels:"]
        for name in ("a", "b"):
            self.write(f"{name}.loom", loom(name))
            lines.append(f"  - {{ name: {name}, sources: {name}.loom, libraries: unused.loom }}")
        self.write("kernels.yaml", "\n".join(lines) + "\n")

    def test_the_engine_finds_by_content_what_nobody_asked_for_in_these_words(self):
        self.make_linked("one")
        env = self.with_hostile()
        self.assertEqual(self.counts("--store", self.seed, env=env), (2, 0))
        whole = self.digest(self.work / "kernels.kcb")
        self.fresh()
        self.make_linked("another")
        before = self.listing(self.seed)
        env = self.over(env, self.seed)
        self.assertEqual(self.counts(env=env), (0, 2))  # a link each, no compile
        self.assertEqual(self.digest(self.work / "kernels.kcb"), whole)
        self.assertEqual(self.listing(self.seed), before)
        self.assertEqual(self.store_files("e/*/*"), [])
        self.assertEqual(len(self.store_files("r/*/*.kcr")), 2)  # the way to it is new, and spares the next link
        self.assertEqual(self.counts("--require-cached", "-o", "again.kcb", env=env), (0, 2))
        stats = self.stats(env)
        self.assertEqual((stats["hits"], stats["misses"], stats["puts"]), (4, 0, 0))
        # Without the other store it is a compile.
        self.fresh()
        self.assertEqual(self.counts(env=self.with_hostile()), (2, 0))

    # -- order ----------------------------------------------------------------------------------------------

    def test_the_own_store_is_looked_into_first_and_what_is_compiled_is_put_there(self):
        self.make_units(1)
        env = self.with_fake()
        self.kc("build", "--store", self.seed, env=env)
        shutil.copytree(self.seed, self.other)
        self.damage(self.entry_in(self.seed))
        before = self.listing(self.seed)
        self.fresh()
        # Damaged in the first, right in the second.
        done = self.kc("build", env=self.over(env, self.seed, self.other))
        self.assertIn("1 hit", done.out)
        self.assertIn(f"had 1 fault (the read-only store {self.seed}: e/", done.err)
        self.assertEqual(self.store_files("e/*/*"), [])
        # Damaged in the only one: compiled, and from then on the own one serves.
        self.fresh()
        done = self.kc("build", env=self.over(env, self.seed))
        self.assertIn("1 compiled", done.out)
        self.assertIn("had 1 fault", done.err)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 1)
        self.assertEqual(self.store_files("tmp/bad-*"), [])
        (self.work / "kernels.kcb").unlink()
        done = self.kc("build", env=self.over(env, self.seed))
        self.assertIn("1 hit", done.out)
        self.assertEqual(done.err, "")
        self.assertEqual(self.listing(self.seed), before)

    def test_one_that_others_can_write_is_left_out_with_one_warning(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", "--store", self.seed, env=env)
        self.fresh()
        self.seed.chmod(0o777)
        env = self.over(env, self.seed)
        done = self.kc("build", env=env)
        self.assertIn("3 compiled", done.out)
        self.assertEqual(done.err.count("warning"), 1, done.err)
        self.assertIn(f"had 1 fault (the read-only store {self.seed} is left out: ", done.err)
        self.assertIn("can be written by others", done.err)
        (self.work / "kernels.kcb").unlink()
        self.kc("build", "--strict-store", env=env, expect=3)
        self.assertIn("can be written by others", self.kc("store", "stats", env=env).err)

    def test_what_the_variable_may_hold(self):
        self.make_units(1)
        for value in ("seed", "/a:seed", "/a::/b", ":", "/a:"):
            done = self.kc("build", env=self.with_fake(KC_STORE_READ_ONLY_DIRS=value), expect=2)
            self.assertIn("the variable KC_STORE_READ_ONLY_DIRS is", done.err)
            self.assertIn("absolute paths separated by colons", done.err)
        self.kc("build", env=self.with_fake(KC_STORE_READ_ONLY_DIRS=""))

    # -- modes ----------------------------------------------------------------------------------------------

    def test_every_mode_with_the_own_store_and_one_under_it(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", "k000", "--store", self.seed, env=env)
        self.kc("build", "k001", env=env)
        under = self.listing(self.seed)
        kept = self.root / "kept"
        shutil.copytree(self.store, kept, copy_function=shutil.copy2)
        env = self.over(env, self.seed)
        # mode: (compiled, hits), entries in the own store afterwards
        for mode, counts, entries in (("rw", (0, 2), 1), ("ro", (0, 2), 1), ("off", (2, 0), 1), ("refresh", (2, 0), 2)):
            with self.subTest(mode):
                self.fresh()
                shutil.copytree(kept, self.store, copy_function=shutil.copy2)
                before = self.listing(self.store)
                self.assertEqual(self.counts("--store-mode", mode, env=env), counts)
                self.assertEqual(len(self.store_files("e/*/*.kce")), entries)
                if mode in ("ro", "off"):
                    self.assertEqual(self.listing(self.store), before)
                self.assertEqual(self.listing(self.seed), under)
                self.assertEqual(list(self.root.glob("kc-*")), [])
                self.kc("store", "verify", env=env)

    def test_read_only_compiles_what_is_missing_and_writes_nothing(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", "k000", env=env)
        before = self.listing(self.store)
        self.assertEqual(self.counts("--store-mode=ro", env=env), (2, 1))
        self.assertEqual(self.listing(self.store), before)
        self.assertEqual(self.counts("--store-mode=ro", "-o", "b.kcb", env=env), (2, 1))
        self.assertEqual(list(self.root.glob("kc-*")), [])

    # -- places ---------------------------------------------------------------------------------------------

    def test_without_a_home_the_stores_under_it_serve_all_the_same(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", "--store", self.seed, env=env)
        before = self.listing(self.seed)
        env = {name: value for name, value in self.over(env, self.seed).items() if name not in ("HOME", "KC_STORE_DIR")}
        for mode, says in (("rw", "a temporary store serves this build alone"), ("ro", "this build keeps nothing")):
            (self.work / "kernels.kcb").unlink()
            done = self.kc("build", "--store-mode", mode, env=env)
            self.assertIn("2 hits", done.out)
            self.assertIn(says, done.err)
            self.assertEqual(list(self.root.glob("kc-*")), [])
        (self.work / "kernels.kcb").unlink()
        self.assertEqual(self.counts("--store-mode=refresh", env=env), (2, 0))
        self.assertEqual(self.listing(self.seed), before)

    # -- stats ----------------------------------------------------------------------------------------------

    def test_stats_tell_what_the_hits_saved_and_what_lies_under_the_store(self):
        self.make_units(3, directives="@sleep=60")
        env = self.with_fake()
        self.kc("build", "--store", self.seed, env=env)
        self.fresh()
        self.assertIsNone(self.stats(env)["locks"])
        env = self.over(env, self.seed, self.root / "missing")
        self.assertEqual(self.counts(env=env), (0, 3))
        self.write("k000.tilebc", (self.work / "k000.tilebc").read_bytes() + b"more\n")
        self.assertEqual(self.counts(env=env), (1, 2))
        stats = self.stats(env)
        self.assertEqual((stats["hits"], stats["misses"], stats["puts"], stats["soft_errors"]), (5, 1, 1, 0))
        self.assertGreater(stats["saved_seconds"], 5 * 0.05)
        self.assertEqual(stats["by_backend_target"], {"tileiras sm_90": 1})
        self.assertIs(stats["locks"], True)
        seed = self.stats(env, "--store", self.seed)
        self.assertEqual(
            stats["read_only"],
            [
                {"path": str(self.seed), "entries": 3, "records": 0, "bytes": seed["bytes"]},
                {"path": str(self.root / "missing"), "entries": 0, "records": 0, "bytes": 0},
            ],
        )
        self.assertEqual((seed["hits"], seed["misses"], seed["puts"]), (0, 3, 3))
        text = self.kc("store", "stats", env=env).out
        self.assertIn("5 hits, 1 misses, 1 puts", text)
        self.assertRegex(text, rf"(?m)^read-only +{self.seed}: 3 entries")
        self.assertRegex(text, r"(?m)^saved +\S.* of compiling, by the hits$")
        self.assertNotIn("locks", text)


if __name__ == "__main__":
    main()
