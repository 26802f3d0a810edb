#!/usr/bin/env python3
"""kc warm: a store that is filled by compiling, or from a bundle without any compiler."""

import shutil

from kc_test import KcTest, main, tile


class Warm(KcTest):
    """By compiling."""

    def setUp(self):
        super().setUp()
        self.env = self.with_fake()
        self.make_units(3)

    def test_warm_compiles_and_packs_nothing(self):
        summary = self.summary("warm", env=self.env)
        self.assertEqual((summary["compiled"], summary["hits"], summary["output"]), (3, 0, None))
        self.assertEqual(len(self.store_files("e/*/*.kce")), 3)
        self.assertEqual(list(self.work.glob("*.kcb")), [])
        done = self.kc("warm", env=self.env)
        self.assertIn("0 compiled, 3 hits", done.out)
        self.assertIn("the store has what was compiled", done.out)
        self.assertEqual(self.summary("build", env=self.env)["hits"], 3)

    def test_named_units_and_targets_alone_are_compiled(self):
        done = self.kc("warm", "k00[12]", env=self.env)
        self.assertIn("2 compiled", done.out)
        self.assertIn("k001@sm_90: ", done.out)
        self.assertEqual(self.summary("warm", "-n", env=self.env)["not_tried"], 1)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 2)
        self.assertIn("no unit or kernel", self.kc("warm", "nothing", env=self.env, expect=2).err)

    def test_a_build_knows_nothing_of_a_warm_that_came_between(self):
        self.settle()
        self.kc("build", env=self.env)
        self.kc("warm", env=self.env)
        self.assertIn("is up to date", self.kc("build", env=self.env).out)

    def test_a_unit_that_fails_is_a_failure(self):
        self.write("k001.tilebc", tile("@entry=kernel @exit=5"))
        done = self.kc("warm", env=self.env, expect=1)
        self.assertIn("k001@sm_90", done.err)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 2)

    def test_a_store_that_takes_nothing_cannot_be_warmed(self):
        for mode in ("ro", "off"):
            self.assertIn("nothing to warm", self.kc("warm", "--store-mode", mode, env=self.env, expect=2).err)
        self.kc("warm", env={**self.env, "KC_STORE_MODE": "ro"}, expect=2)
        self.kc("warm", "-o", "b.kcb", env=self.env, expect=2)
        self.kc("warm", "--key", "a.pub", env=self.env, expect=2)


class FromBundle(KcTest):
    def setUp(self):
        super().setUp()
        self.env = self.with_fake()
        self.make_units(3)
        self.kc("keygen", "maker")
        self.kc("build", "-o", "b.kcb", "--sign", "maker.key", env=self.env)
        shutil.rmtree(self.store)
        self.warm = ["warm", "--from", "b.kcb", "--key", "maker.pub"]

    def reasons(self, *arguments, **options):
        """unit -> (state, reason) of a warm, and its summary."""
        events = self.kc_json(*self.warm, *arguments, **options)
        return {e["unit"]: (e["state"], e.get("reason")) for e in events if e["event"] == "unit"}, events[-1]

    def test_what_a_bundle_has_becomes_hits(self):
        done = self.kc(*self.warm, env=self.env)
        self.assertIn("3 units stored, 0 there before", done.out)
        self.assertIn("3 of 3 units will be hits", done.out)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 3)
        self.kc("store", "verify")
        summary = self.summary("build", "-o", "again.kcb", env=self.env)
        self.assertEqual((summary["hits"], summary["compiled"]), (3, 0))
        # The same bundle, less its signature.
        signed = (self.work / "b.kcb").read_bytes()
        self.assertEqual((self.work / "again.kcb").read_bytes(), signed[:-192])
        self.assertIn("0 units stored, 3 there before", self.kc(*self.warm, env=self.env).out)

    def test_no_compiler_is_needed(self):
        program = self.install_bare()
        env = self.environment()
        states, summary = self.reasons(env=env, program=program)
        self.assertEqual(set(states.values()), {("hit", None)})
        self.assertEqual((summary["stored"], summary["hits"], summary["misses"]), (3, 3, 0))
        self.kc("pack", "-o", "p.kcb", "--identity-from", "b.kcb", env=env, program=program)
        self.assertEqual((self.work / "p.kcb").read_bytes(), (self.work / "b.kcb").read_bytes()[:-192])

    def test_a_bundle_is_enough(self):
        empty = self.root / "empty"
        empty.mkdir()
        done = self.kc("warm", "--from", self.work / "b.kcb", "--key", self.work / "maker.pub", cwd=empty)
        self.assertIn("3 units stored", done.out)
        self.assertNotIn("will be", done.out)
        # Named, a manifest must be there.
        self.kc("warm", "--from", self.work / "b.kcb", "--key", self.work / "maker.pub", "-f", "none.yaml", cwd=empty, expect=2)
        self.kc("warm", "k000", "--from", self.work / "b.kcb", "--key", self.work / "maker.pub", cwd=empty, expect=2)

    def test_units_that_will_not_be_hits_say_why(self):
        self.write("k000.tilebc", tile("@entry=kernel n=77"))
        self.make_units(4)
        self.write("k000.tilebc", tile("@entry=kernel n=77"))
        states, summary = self.reasons(env=self.env)
        self.assertEqual(states["k000@sm_90"], ("miss", "its sources or options are others than those of the bundle"))
        self.assertEqual(states["k001@sm_90"], ("hit", None))
        self.assertEqual(states["k003@sm_90"], ("miss", "it is not in the bundle"))
        self.assertEqual((summary["units"], summary["hits"], summary["misses"]), (4, 2, 2))
        text = self.kc(*self.warm, env=self.env).out
        self.assertIn("2 of 4 units will be hits", text)
        self.assertIn("1 unit will not: it is not in the bundle: k003@sm_90", text)
        self.install_fake(variant="2")
        states, _ = self.reasons(env=self.env)
        self.assertEqual(states["k001@sm_90"][0], "miss")
        self.assertIn("made by another compiler, tileiras", states["k001@sm_90"][1])
        # Only those that are asked about.
        states, _ = self.reasons("k00[12]", env=self.env)
        self.assertEqual(sorted(states), ["k001@sm_90", "k002@sm_90"])

    def test_a_loom_unit_costs_a_link_until_a_record_leads_to_it(self):
        env = self.with_hostile()
        self.make_loom_units(2, folder="loom")
        manifest = ["-f", "loom/kernels.yaml"]
        self.kc("build", *manifest, "-o", "loom.kcb", env=env)
        shutil.rmtree(self.store)
        self.warm = ["warm", "--from", "loom.kcb", "--trust-unsigned", *manifest]
        states, summary = self.reasons(env=env)
        self.assertEqual((summary["stored"], summary["misses"]), (2, 2))
        self.assertIn("it costs a link", states["k000@gfx1100"][1])
        built = self.summary("build", *manifest, "-o", "again.kcb", env=env)
        self.assertEqual((built["hits"], built["compiled"]), (2, 0))
        self.assertEqual((self.work / "again.kcb").read_bytes(), (self.work / "loom.kcb").read_bytes())
        states, summary = self.reasons(env=env)
        self.assertEqual((summary["there"], summary["hits"]), (2, 2))

    def test_facts_of_the_bundle_are_those_of_the_hits(self):
        before = self.kc_json("show", "b.kcb")
        self.kc(*self.warm, env=self.env)
        events = self.kc_json("build", "-o", "again.kcb", env=self.env)
        facts = {e["unit"]: e["facts"] for e in events[:-1]}
        for record in before[1:]:
            self.assertEqual(facts[record["unit"]], record["facts"])
        self.assertEqual({(e["seconds"], e["peak_bytes"]) for e in events[:-1]}, {(0, 0)})

    def test_nothing_is_taken_from_a_damaged_bundle(self):
        data = bytearray((self.work / "b.kcb").read_bytes())
        frames = int.from_bytes(data[144:152], "little")
        data[frames + 20] ^= 1
        self.write("bad.kcb", bytes(data))
        done = self.kc("warm", "--from", "bad.kcb", "--key", "maker.pub", env=self.env, expect=1)
        self.assertIn("damaged", done.err)
        self.assertEqual(self.store_files("e/*/*.kce"), [])
        self.kc("warm", "--from", "missing.kcb", "--trust-unsigned", env=self.env, expect=2)
        self.kc("warm", "--from", "kernels.yaml", "--trust-unsigned", env=self.env, expect=1)

    def test_a_bundle_with_two_codes_under_one_key_is_refused(self):
        key = "ab" * 32
        self.make_bundle("two.kcb", {"kernel": "a", "key": key, "code": "one"}, {"kernel": "b", "key": key, "code": "other"})
        done = self.kc("warm", "--from", "two.kcb", "--trust-unsigned", env=self.env, expect=1)
        self.assertIn("two code objects under one key", done.err)
        self.make_bundle("one.kcb", {"kernel": "a", "key": key, "code": "one"}, {"kernel": "b", "key": key, "code": "one"})
        self.kc("warm", "--from", "one.kcb", "--trust-unsigned", env=self.env)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 1)

    def test_a_store_that_cannot_be_written_is_an_error(self):
        blocked = self.write("file", "not a folder")
        self.kc(*self.warm, "--store", blocked / "store", env=self.env, expect=3)
        self.kc(*self.warm, env=self.environment(KC_STORE_DIR=None, HOME=None), expect=3)


if __name__ == "__main__":
    main()
