#!/usr/bin/env python3
"""Whose code is believed: the user's settings, trusted keys, what --sign refuses."""

import shutil

from kc_test import KcTest, main, tile


class Settings(KcTest):
    """`$HOME/.config/kc/config.yaml`."""

    def setUp(self):
        super().setUp()
        self.env = self.with_fake()
        self.file = self.root / "home" / ".config" / "kc" / "config.yaml"
        self.file.parent.mkdir(parents=True)
        self.file.parent.chmod(0o755)

    def settings(self, text, mode=0o644):
        self.file.write_text(text)
        self.file.chmod(mode)

    def level(self, *arguments, **changes):
        """The compression level that a build used."""
        self.kc("build", "-o", "b.kcb", *arguments, env={**self.env, **changes})
        return int(self.kc_json("show", "b.kcb", env=self.environment(HOME="/none"))[0]["metadata"]["level"])

    def test_settings_come_behind_flag_variable_and_manifest(self):
        self.make_units(1)
        manifest = self.work / "kernels.yaml"
        plain = manifest.read_text()
        self.assertEqual(self.level(), 3)
        self.settings("level: 5\n")
        self.assertEqual(self.level(), 5)
        manifest.write_text(plain + "settings: { level: 6 }\n")
        self.assertEqual(self.level(), 6)
        self.assertEqual(self.level(KC_LEVEL="7"), 7)
        self.assertEqual(self.level("--level", "8", KC_LEVEL="7"), 8)
        # Not a no-op where the settings have changed.
        manifest.write_text(plain)
        self.assertEqual(self.level(), 5)
        self.settings("level: 9\n")
        self.assertEqual(self.level(), 9)

    def test_the_store_and_timeouts_can_be_settings(self):
        self.settings("store_dir: ../store\n")
        env = self.environment(KC_STORE_DIR=None)
        self.assertEqual(self.kc("store", "path", env=env).out.strip(), str(self.file.parent.parent / "store"))
        self.assertEqual(self.kc("store", "path").out.strip(), str(self.store))
        self.settings("timeout: 300ms\nkeep_going: 1\n")
        self.make_units(2, "@sleep=20000")
        done = self.kc("build", "-j1", env=self.env, expect=1)
        self.assertIn("1 failed, 1 not tried", done.out)
        manifest = self.work / "kernels.yaml"
        self.make_units(2, "@sleep=500")
        manifest.write_text(manifest.read_text() + "settings: { timeout: 60s }\n")
        self.kc("build", env=self.env)

    def test_a_setting_that_is_not_known_stops_every_command_with_its_place(self):
        self.settings("trusted_key: [a.pub]\n")
        error = self.kc("store", "path", expect=2).err
        self.assertIn(f"{self.file}:1:1: unknown setting \"trusted_key\"", error)
        self.assertIn("trusted_keys", error)
        self.kc("--version")
        # Another home has none.
        self.kc("store", "path", env=self.environment(HOME=None))

    def test_settings_that_others_can_write_are_refused(self):
        self.settings("level: 3\n", 0o666)
        self.assertIn("can be written by others", self.kc("store", "path", expect=2).err)
        self.settings("level: 3\n")
        self.file.parent.chmod(0o777)
        self.assertIn("can be written by others", self.kc("store", "path", expect=2).err)


class Trust(KcTest):
    def setUp(self):
        super().setUp()
        self.env = self.with_fake()
        self.kc("keygen", "maker")
        self.kc("keygen", "other")
        self.make_units(3)
        self.kc("build", "-o", "signed.kcb", "--sign", "maker.key", env=self.env)
        self.kc("build", "-o", "plain.kcb", env=self.env)
        shutil.rmtree(self.store)

    def key(self, name):
        """The id of a key; `maker` has signed the bundle already."""
        return self.kc_json("sign", "signed.kcb", "--key", f"{name}.key")[-1]["key"]

    def origins(self):
        """What a build says of its hits: unit -> signers."""
        events = self.kc_json("build", "-o", "o.kcb", "--require-cached", env=self.env)  # never a no-op
        return {event["unit"]: event["signers"] for event in events if event["event"] == "unit"}

    def test_a_bundle_without_a_trusted_signature_is_not_taken(self):
        maker = self.key("maker")
        done = self.kc("warm", "--from", "plain.kcb", "--key", "maker.pub", expect=1)
        self.assertIn("it is not signed", done.err)
        self.assertIn("--trust-unsigned", done.err)
        done = self.kc("warm", "--from", "signed.kcb", expect=1)
        self.assertIn(f"it is signed by {maker}, and trusted is nobody", done.err)
        done = self.kc("warm", "--from", "signed.kcb", "--key", "other.pub", expect=1)
        self.assertIn(f"it is signed by {maker}", done.err)
        self.assertEqual(done.out, "")
        self.assertEqual(self.store_files("e/*/*.kce"), [])

    def test_trusted_keys_of_the_user_count_unless_others_can_write_them(self):
        maker = self.key("maker")
        folder = self.root / "home" / ".config" / "kc"
        (folder / "keys").mkdir(parents=True)
        folder.chmod(0o755)
        shutil.copy(self.work / "maker.pub", folder / "keys" / "maker.pub")
        (folder / "config.yaml").write_text("trusted_keys: [keys/maker.pub]\n")
        self.assertEqual(self.kc_json("warm", "--from", "signed.kcb", env=self.env)[-1]["signer"], maker)
        self.assertEqual(set(map(tuple, self.origins().values())), {(maker,)})
        self.kc("build", "-o", "o.kcb", "--sign", "other.key", env=self.env)
        (folder / "keys" / "maker.pub").chmod(0o666)
        self.assertIn("a trusted key can be written by others",
                      self.kc("warm", "--from", "signed.kcb", env=self.env, expect=2).err)
        (folder / "keys" / "maker.pub").unlink()
        self.kc("warm", "--from", "signed.kcb", env=self.env, expect=2)

    def test_what_came_from_a_trusted_key_may_be_signed_as_long_as_it_is_trusted(self):
        maker = self.key("maker")
        self.kc("warm", "--from", "signed.kcb", "--key", "maker.pub", env=self.env)
        done = self.kc("build", "-o", "o.kcb", "--sign", "other.key", env=self.env, expect=1)
        self.assertIn(f"k000@sm_90 was imported, signed by {maker}, which is not trusted here", done.err)
        self.assertFalse((self.work / "o.kcb").exists())
        self.settle()
        self.kc("build", "-o", "o.kcb", "--sign", "other.key", "--key", "maker.pub", env=self.env)
        # Who signs trusts himself.
        self.kc("build", "-o", "m.kcb", "--sign", "maker.key", env=self.env)
        # A build with nothing to do asks again when other keys are trusted than were.
        self.kc("build", "-o", "o.kcb", "--sign", "other.key", env=self.env, expect=1)
        self.assertIn("up to date",
                      self.kc("build", "-o", "o.kcb", "--sign", "other.key", "--key", "maker.pub", env=self.env).out)

    def test_unsigned_code_is_used_on_demand_and_never_signed(self):
        self.kc("warm", "--from", "plain.kcb", "--trust-unsigned", env=self.env)
        self.assertEqual(set(map(tuple, self.origins().values())), {(None,)})
        before = (self.work / "o.kcb").read_bytes()
        done = self.kc("build", "-o", "o.kcb", "--sign", "maker.key", env=self.env, expect=1)
        for unit in ("k000@sm_90", "k001@sm_90", "k002@sm_90"):
            self.assertIn(f"{unit} was imported without a trusted signature, so it is not signed", done.err)
        self.assertIn("--store-mode refresh", done.err)
        self.assertIn("kc store rm", done.err)
        self.assertEqual((self.work / "o.kcb").read_bytes(), before)
        self.kc("pack", "-o", "o.kcb", "--sign", "maker.key", env=self.env, expect=1)
        # Nor as a part of something.
        self.kc("build", "-o", "o.kcb", "--sign", "maker.key", "--allow-partial", env=self.env, expect=1)
        self.assertEqual((self.work / "o.kcb").read_bytes(), before)
        self.kc("build", "-o", "o.kcb", "--sign", "maker.key", "--store-mode", "refresh", env=self.env)
        self.kc("verify", "o.kcb", "--key", "maker.pub")
        # From then on they are of here.
        self.assertEqual(set(map(tuple, self.origins().values())), {()})
        self.kc("build", "-o", "again.kcb", "--sign", "maker.key", env=self.env)

    def test_a_mix_names_only_what_was_imported(self):
        self.kc("build", "k001", env=self.env)
        self.kc("warm", "--from", "plain.kcb", "--trust-unsigned", env=self.env)
        done = self.kc("build", "-o", "o.kcb", "--sign", "maker.key", env=self.env, expect=1)
        self.assertIn("k000@sm_90 was imported", done.err)
        self.assertNotIn("k001@sm_90 was imported", done.err)
        self.assertIn("k002@sm_90 was imported", done.err)

    def test_a_signed_bundle_takes_the_place_of_what_nobody_has_signed(self):
        maker = self.key("maker")
        self.kc("warm", "--from", "plain.kcb", "--trust-unsigned", env=self.env)
        summary = self.kc_json("warm", "--from", "signed.kcb", "--key", "maker.pub", env=self.env)[-1]
        self.assertEqual(summary["stored"], 3)
        self.assertEqual(set(map(tuple, self.origins().values())), {(maker,)})
        self.kc("warm", "--from", "plain.kcb", "--trust-unsigned", env=self.env)
        self.assertEqual(set(map(tuple, self.origins().values())), {(maker,)})

    def hostile(self, unit="k000"):
        """A bundle with other code under the right key of a unit."""
        records = [event for event in self.kc_json("show", "plain.kcb") if event["event"] == "record"]
        right = next(record for record in records if record["kernel"] == unit)
        self.make_bundle("hostile.kcb", {
            "kernel": unit, "entry": "kernel", "key": right["key"], "compiler_identity": right["compiler_identity"],
            "code": "\x7fELF what they want", "registers": 1,
        })
        return right

    def test_a_hostile_bundle_with_other_code_under_a_right_key(self):
        right = self.hostile()
        self.kc("warm", "--from", "hostile.kcb", env=self.env, expect=1)
        # Somebody's signature is not a trusted one.
        self.kc("sign", "hostile.kcb", "--key", "other.key")
        self.kc("warm", "--from", "hostile.kcb", "--key", "maker.pub", env=self.env, expect=1)
        self.assertEqual(self.store_files("e/*/*.kce"), [])
        self.kc("warm", "--from", "hostile.kcb", "--trust-unsigned", env=self.env)
        done = self.kc("build", "-o", "o.kcb", "--sign", "maker.key", env=self.env, expect=1)
        self.assertIn("k000@sm_90 was imported without a trusted signature", done.err)
        self.assertFalse((self.work / "o.kcb").exists())
        # The first refusal comes before the others are compiled.
        self.assertEqual(len(self.store_files("e/*/*.kce")), 1)
        self.kc("build", "-o", "o.kcb", "--sign", "maker.key", "--store-mode", "refresh", env=self.env)
        records = [event for event in self.kc_json("show", "o.kcb") if event["event"] == "record"]
        self.assertEqual(next(r for r in records if r["kernel"] == "k000")["code_digest"], right["code_digest"])

    def test_code_that_was_compiled_here_is_not_replaced_by_a_bundles(self):
        self.kc("build", "-o", "o.kcb", env=self.env)
        self.hostile()
        done = self.kc("warm", "--from", "hostile.kcb", "--trust-unsigned", env=self.env)
        self.assertIn("the store has other code than hostile.kcb for 1 unit; its own is kept", done.err)
        self.assertIn("1 with other code", done.out)
        self.assertEqual(set(map(tuple, self.origins().values())), {()})

    def test_what_only_the_engine_finds_is_refused_too(self):
        env = self.with_hostile()
        self.make_loom_units(2, folder="loom")
        self.kc("build", "-f", "loom/kernels.yaml", "-o", "loom.kcb", env=env)
        shutil.rmtree(self.store)
        # Entries without records: only a link tells their keys.
        self.kc("warm", "--from", "loom.kcb", "--trust-unsigned", env=env)
        build = ["build", "-f", "loom/kernels.yaml", "-o", "o.kcb"]
        done = self.kc(*build, "--sign", "maker.key", env=env, expect=1)
        self.assertIn("k000@gfx1100 was imported without a trusted signature", done.err)
        self.assertFalse((self.work / "o.kcb").exists())
        events = self.kc_json(*build, env=env)
        self.assertEqual([(e["state"], e["signers"]) for e in events[:-1]], [("hit", [None])] * 2)


if __name__ == "__main__":
    main()
