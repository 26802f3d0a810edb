#!/usr/bin/env python3
"""kc doctor: what is found on a machine and where it was looked for."""

from kc_test import KcTest, main


class Doctor(KcTest):
    def events(self, env, expect=0):
        out = {}
        for event in self.kc_json("doctor", env=env, expect=expect):
            out.setdefault(event["event"], []).append(event)
        return out

    def test_it_names_what_there_is(self):
        env = self.with_stub("device 9.0 NVIDIA H200; device 12.1 NVIDIA GB10", KC_TILEIRAS=self.with_fake()["KC_TILEIRAS"])
        found = self.events(env)
        self.assertTrue(found["engine"][0]["ok"])
        compilers = {event["backend"]: event for event in found["compiler"]}
        self.assertEqual(set(compilers), {"tileiras", "loom"})
        self.assertEqual(len(compilers["tileiras"]["identity"]), 64)
        self.assertIsNone(compilers["tileiras"]["hint"])
        self.assertIn({"where": f"KC_TILEIRAS={env['KC_TILEIRAS']}", "outcome": "found"}, compilers["tileiras"]["searched"])
        self.assertEqual([event["device"] for event in found["device"]], ["cuda:0", "cuda:1"])
        self.assertEqual([event["target"] for event in found["device"]], ["sm_90", "sm_121"])
        drivers = {event["api"]: event for event in found["driver"]}
        self.assertEqual((drivers["cuda"]["devices"], drivers["cuda"]["message"]), (2, None))
        self.assertEqual(drivers["hip"]["devices"], 0)
        self.assertIn("libamdhip64.so.6", drivers["hip"]["message"])
        self.assertGreater(found["limits"][0]["cpus"], 0)
        text = self.kc("doctor", env=env).out
        for part in ("kc-engine", "tileiras", "loom", "store", "limits", "cuda:1", "NVIDIA GB10, sm_121", "libamdhip64.so.6"):
            self.assertIn(part, text)

    def test_it_tells_where_it_looked_for_a_compiler_that_is_not_there(self):
        found = self.events(self.environment(KC_TILEIRAS=self.work / "missing"))
        tileiras = next(event for event in found["compiler"] if event["backend"] == "tileiras")
        self.assertIsNone(tileiras["program"])
        self.assertIn("the variable must name the tileiras program", tileiras["hint"])
        self.assertIn({"where": f"KC_TILEIRAS={self.work / 'missing'}", "outcome": "no such file"}, tileiras["searched"])
        self.assertIn({"where": "CUTILE_TILEIRAS_PATH", "outcome": "not set"}, tileiras["searched"])

    def test_a_store_that_cannot_be_used_is_exit_3(self):
        store = self.work / "s"
        store.mkdir()
        store.chmod(0o777)
        env = self.environment(KC_STORE_DIR=store)
        found = self.events(env, expect=3)
        self.assertFalse(found["store"][0]["ok"])
        self.assertIn("limits", found)  # the rest is told all the same
        self.assertIn(str(store), self.kc("doctor", env=env, expect=3).err)

    def test_a_store_that_others_can_read_is_used_and_told(self):
        store = self.work / "s"
        store.mkdir()
        env = self.environment(KC_STORE_DIR=store)
        for mode, is_told in (0o700, False), (0o755, True):
            store.chmod(mode)
            self.assertEqual(self.events(env)["store"][0]["readable_by_others"], is_told)
            self.assertEqual("others can read it" in self.kc("doctor", env=env).out, is_told)

    def test_an_engine_that_does_not_start_is_exit_3(self):
        kc = self.install_bare()
        (kc.parent.parent / "libexec" / "kc" / "kc-engine").unlink()
        found = {event["event"]: event for event in self.kc_json("doctor", env=self.environment(), program=kc, expect=3)}
        self.assertFalse(found["engine"]["ok"])
        self.assertIn("install both again", self.kc("doctor", env=self.environment(), program=kc, expect=3).err)
        self.assertIn("limits", found)

    def test_it_leaves_nothing_behind(self):
        before = sorted(path for path in self.root.rglob("*"))
        self.kc("doctor", env=self.environment())
        self.assertEqual(sorted(path for path in self.root.rglob("*")), before)


if __name__ == "__main__":
    main()
