#!/usr/bin/env python3
"""Keys and signatures: kc keygen, sign, verify --key, build --sign; the same with OpenSSL's own program."""

import json
import os
import pty
import select
import shutil
import subprocess
import time

from kc_test import KC, KcTest, main, tile


class Sign(KcTest):
    def setUp(self):
        super().setUp()
        self.env = self.with_fake()

    def build(self, *arguments, units=2, **options):
        self.make_units(units)
        self.kc("build", "-o", "b.kcb", *arguments, env=self.env, **options)
        return self.work / "b.kcb"

    def keygen(self, name):
        """A new key; returns its id."""
        return self.kc_json("keygen", name)[-1]["key"]

    def signers(self, bundle="b.kcb"):
        return [signer["key"] for signer in self.kc_json("verify", bundle)[-1]["signers"]]

    def openssl(self, *arguments, **options):
        if shutil.which("openssl") is None:
            self.skipTest("not run: no openssl")
        return subprocess.run(["openssl", *map(str, arguments)], cwd=self.work, check=True, capture_output=True, **options)

    # -- keys -----------------------------------------------------------------------------------------------

    def test_a_new_key_is_a_private_file_and_a_public_one_and_is_never_written_over(self):
        done = self.kc("keygen", "release")
        private, public = self.work / "release.key", self.work / "release.pub"
        self.assertEqual(private.stat().st_mode & 0o777, 0o600)
        self.assertTrue(private.read_text().startswith("-----BEGIN PRIVATE KEY-----\n"))
        self.assertTrue(public.read_text().startswith("-----BEGIN PUBLIC KEY-----\n"))
        self.assertRegex(done.out, r"^kc: wrote release\.key \(not encrypted[^)]*\) and release\.pub: key [0-9a-f]{64}\n$")
        before = private.read_bytes(), public.read_bytes()
        self.assertIn("exists already", self.kc("keygen", "release", expect=2).err)
        # Neither alone is written over, and nothing is left of the other.
        private.unlink()
        self.assertIn("release.pub: exists already", self.kc("keygen", "release", expect=2).err)
        self.assertFalse(private.exists())
        self.assertEqual(public.read_bytes(), before[1])

    def test_a_key_goes_where_it_is_told_to(self):
        self.kc("keygen", "-o", "ci.key")
        self.kc("keygen", "-o", "hidden")
        self.assertEqual(sorted(p.name for p in self.work.iterdir()), ["ci.key", "ci.pub", "hidden", "hidden.pub"])
        self.kc("keygen", expect=2)
        self.kc("keygen", "a", "-o", "b", expect=2)
        self.kc("keygen", "no/such/folder/a", expect=3)

    def test_an_encrypted_key_needs_its_passphrase(self):
        self.build()
        env = self.environment(KC_KEY_PASSPHRASE="open sesame")
        self.assertIn("(encrypted)", self.kc("keygen", "release", env=env).out)
        self.assertIn("BEGIN ENCRYPTED PRIVATE KEY", (self.work / "release.key").read_text())
        error = self.kc("sign", "b.kcb", "--key", "release.key", expect=2).err
        self.assertIn("is encrypted, and no passphrase is given", error)
        self.assertIn("KC_KEY_PASSPHRASE", error)
        wrong = self.environment(KC_KEY_PASSPHRASE="open barley")
        self.assertIn("the passphrase is wrong", self.kc("sign", "b.kcb", "--key", "release.key", env=wrong, expect=2).err)
        self.assertEqual(self.signers(), [])
        self.kc("sign", "b.kcb", "--key", "release.key", env=env)
        self.kc("verify", "b.kcb", "--key", "release.pub")
        # The same for a build, before it compiles anything.
        self.make_units(3)
        error = self.kc("build", "-o", "b.kcb", "--sign", "release.key", env=self.env, expect=2).err
        self.assertIn("no passphrase is given", error)
        self.assertEqual(len(self.store_files("e/*/*.kce")), 2)

    def test_nobody_is_asked_where_there_is_no_terminal(self):
        for command in (["keygen", "a", "--passphrase"], ["sign", self.build(), "--key", "a.key", "--passphrase"]):
            self.assertIn("no terminal", self.kc(*command, expect=2).err)
        self.assertFalse((self.work / "a.key").exists())

    def typed(self, *arguments, keys, expect=0):
        """Runs kc on a terminal where `keys` are typed, each when it asks; returns what the terminal showed."""
        master, slave = pty.openpty()
        process = subprocess.Popen([KC, *map(str, arguments)], cwd=self.work, env=self.environment(TERM="xterm"),
                                   stdin=slave, stderr=slave, stdout=subprocess.DEVNULL)
        os.close(slave)
        shown, left, deadline = b"", list(keys), time.monotonic() + 60
        try:
            while time.monotonic() < deadline:
                if left and shown.endswith(b": "):
                    os.write(master, left.pop(0))
                    shown += b"|"
                if not select.select([master], [], [], 0.02)[0]:
                    if process.poll() is not None:
                        break
                    continue
                try:
                    shown += os.read(master, 4096)
                except OSError:  # the last writer is gone
                    break
            self.assertEqual(process.wait(timeout=30), expect, shown)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(master)
        return shown.decode()

    def test_a_passphrase_is_typed_twice_and_not_shown(self):
        shown = self.typed("keygen", "a", "--passphrase", keys=[b"moon\n", b"mooo\x7fn\n"])
        self.assertNotIn("moo", shown)
        self.assertIn("the same again: ", shown)
        self.build()
        self.kc("sign", "b.kcb", "--key", "a.key", env=self.environment(KC_KEY_PASSPHRASE="moon"))
        shown = self.typed("keygen", "b", "--passphrase", keys=[b"moon\n", b"sun\n"], expect=2)
        self.assertIn("not the same", shown)
        self.typed("keygen", "b", "--passphrase", keys=[b"\n", b"\n"], expect=2)
        self.typed("keygen", "b", "--passphrase", keys=[b"moon\x04"], expect=2)
        self.typed("keygen", "b", "--passphrase", keys=[b"moon\x03"], expect=-2)  # Ctrl-C
        self.assertFalse((self.work / "b.key").exists())
        self.kc("keygen", "c")
        self.assertIn("passphrase: ", self.typed("sign", "b.kcb", "--key", "c.key", "--passphrase", keys=[b"none\n"]))

    def test_files_that_are_no_keys_are_refused_with_what_they_are(self):
        self.build()
        self.keygen("a")
        self.assertIn("is a public key; the private one signs", self.kc("sign", "b.kcb", "--key", "a.pub", expect=2).err)
        self.assertIn("is a private key; a public one is wanted", self.kc("verify", "b.kcb", "--key", "a.key", expect=2).err)
        self.assertIn("no PEM file", self.kc("verify", "b.kcb", "--key", "b.kcb", expect=2).err)
        self.kc("verify", "b.kcb", "--key", "missing", expect=2)
        self.kc("sign", "b.kcb", expect=2)

    # -- signing --------------------------------------------------------------------------------------------

    def test_a_bundle_is_signed_once_by_each_key_and_its_content_stays(self):
        bundle = self.build()
        content = bundle.read_bytes()
        one, two = self.keygen("one"), self.keygen("two")
        self.assertIn(f"signed by {one}", self.kc("sign", "b.kcb", "--key", "one.key").out)
        signed = bundle.read_bytes()
        self.assertEqual(signed[:len(content)], content)
        self.assertIn("already signed", self.kc("sign", "b.kcb", "--key", "one.key").out)
        self.assertEqual(bundle.read_bytes(), signed)
        self.assertEqual(self.kc_json("sign", "b.kcb", "--key", "two.key")[-1],
                         {"event": "signature", "path": "b.kcb", "key": two, "state": "added"})
        self.assertEqual(self.signers(), [one, two])
        self.assert_no_temporaries()
        # It is a bundle as before.
        self.assertEqual(len(self.kc_json("show", "b.kcb")), 3)

    def test_a_link_to_a_bundle_stays_one(self):
        bundle = self.build()
        self.keygen("a")
        (self.work / "link.kcb").symlink_to(bundle)
        self.kc("sign", "link.kcb", "--key", "a.key")
        self.assertTrue((self.work / "link.kcb").is_symlink())
        self.kc("verify", bundle, "--key", "a.pub")

    def test_a_damaged_bundle_is_not_signed(self):
        bundle = self.build()
        self.keygen("a")
        data = bytearray(bundle.read_bytes())
        data[-100] ^= 1
        bundle.write_bytes(data)
        self.assertIn("not signed", self.kc("sign", "b.kcb", "--key", "a.key", expect=1).err)
        self.assertEqual(bundle.read_bytes(), bytes(data))

    # -- verifying ------------------------------------------------------------------------------------------

    def test_verify_says_who_signed_and_fails_unless_it_is_one_of_the_keys(self):
        self.build()
        one, two, three = self.keygen("one"), self.keygen("two"), self.keygen("three")
        self.assertIn("not signed", self.kc("verify", "b.kcb").out)
        self.assertIn("it is not signed", self.kc("verify", "b.kcb", "--key", "one.pub", expect=1).err)
        self.kc("sign", "b.kcb", "--key", "one.key")
        self.kc("sign", "b.kcb", "--key", "two.key")
        self.assertIn(f"signed by {one} (not checked whose)", self.kc("verify", "b.kcb").out)
        self.assertIn(f"signed by {two}\n", self.kc("verify", "b.kcb", "--key", "two.pub").out)
        self.kc("verify", "b.kcb", "--key", "three.pub", "--key", "one.pub")
        error = self.kc("verify", "b.kcb", "--key", "three.pub", expect=1).err
        self.assertIn(f"signed by {one} and {two}, and by none of the keys", error)
        folder = self.work / "keys"
        folder.mkdir()
        self.assertIn("no public keys", self.kc("verify", "b.kcb", "--key-dir", "keys", expect=2).err)
        shutil.copy(self.work / "three.pub", folder / "three.pem")
        self.kc("verify", "b.kcb", "--key-dir", "keys", expect=1)
        shutil.copy(self.work / "two.pub", folder)
        summary = self.kc_json("verify", "b.kcb", "--key-dir", "keys")[-1]
        self.assertEqual(summary["signers"], [{"key": one, "valid": True, "asked_for": False},
                                              {"key": two, "valid": True, "asked_for": True}])
        self.assertNotIn(three, json.dumps(summary))

    def test_any_flipped_byte_of_a_signed_bundle_is_found(self):
        bundle = self.build(units=1)
        self.keygen("a")
        self.kc("sign", "b.kcb", "--key", "a.key")
        data = bundle.read_bytes()
        blocks = len(data) - 192
        places = [0, 24, 300, 608, 639, 640, len(data) // 2, *range(blocks, blocks + 144, 13), *range(blocks + 144, len(data), 24), len(data) - 1]
        for at in places:
            bad = bytearray(data)
            bad[at] ^= 1
            self.write("bad.kcb", bytes(bad))
            self.kc("verify", "bad.kcb", "--key", "a.pub", expect=1)
        self.write("bad.kcb", data[:blocks])  # without its signature it is whole, and not signed
        self.kc("verify", "bad.kcb")
        self.kc("verify", "bad.kcb", "--key", "a.pub", expect=1)

    def test_a_signature_of_another_bundle_is_a_fault(self):
        first = self.build()
        self.keygen("a")
        self.kc("sign", first, "--key", "a.key")
        block = first.read_bytes()[-192:]
        self.write("k000.tilebc", tile("@entry=kernel n=77"))
        self.kc("build", "-o", "other.kcb", env=self.env)
        other = self.work / "other.kcb"
        other.write_bytes(other.read_bytes() + block)
        self.assertIn("is not one of this bundle", self.kc("verify", "other.kcb", expect=1).err)
        self.kc("verify", "other.kcb", "--key", "a.pub", expect=1)

    def test_name_release_and_completeness_are_a_policy(self):
        self.make_units(2)
        manifest = self.work / "kernels.yaml"
        manifest.write_text("name: demo\nrelease: 7\n" + manifest.read_text())
        self.keygen("a")
        self.kc("build", "-o", "b.kcb", "--sign", "a.key", env=self.env)
        self.kc("verify", "b.kcb", "--key", "a.pub", "--name", "demo", "--min-release", "7")
        self.assertIn('its name is "demo", not "other"', self.kc("verify", "b.kcb", "--name", "other", expect=1).err)
        self.assertIn("its release is 7, and 8 is the least", self.kc("verify", "b.kcb", "--min-release", "8", expect=1).err)
        self.kc("build", "k000", "-o", "part.kcb", "--sign", "a.key", env=self.env)
        self.kc("verify", "part.kcb")
        self.assertIn("subset", self.kc("verify", "part.kcb", "--key", "a.pub", expect=1).err)
        self.kc("verify", "part.kcb", "--key", "a.pub", "--allow-partial")
        self.write("k001.tilebc", tile("@entry=kernel @exit=5"))
        self.kc("build", "-o", "p.kcb", "--sign", "a.key", "--allow-partial", env=self.env, expect=1)
        self.assertIn("partial", self.kc("verify", "p.kcb", "--key", "a.pub", expect=1).err)

    # -- keys elsewhere -------------------------------------------------------------------------------------

    def test_openssl_reads_our_keys_and_we_read_its(self):
        kc_id = self.keygen("ours")
        self.openssl("pkey", "-in", "ours.key", "-pubout", "-out", "again.pub")
        self.assertEqual((self.work / "again.pub").read_bytes(), (self.work / "ours.pub").read_bytes())
        env = self.environment(KC_KEY_PASSPHRASE="tea")
        self.kc("keygen", "sealed", env=env)
        self.openssl("pkey", "-in", "sealed.key", "-passin", "pass:tea", "-pubout", "-out", "sealed.again")
        self.assertEqual((self.work / "sealed.again").read_bytes(), (self.work / "sealed.pub").read_bytes())
        self.openssl("genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:tea", "-out", "theirs.key")
        self.openssl("pkey", "-in", "theirs.key", "-passin", "pass:tea", "-pubout", "-out", "theirs.pub")
        self.build()
        self.kc("sign", "b.kcb", "--key", "theirs.key", env=env)
        self.kc("verify", "b.kcb", "--key", "theirs.pub")
        self.kc("sign", "b.kcb", "--key", "ours.key")
        self.assertEqual(self.signers()[1], kc_id)

    def test_a_signature_that_openssl_made_is_attached_and_ours_verifies_there(self):
        bundle = self.build()
        self.openssl("genpkey", "-algorithm", "ed25519", "-out", "hsm.key")
        self.openssl("pkey", "-in", "hsm.key", "-pubout", "-out", "hsm.pub")
        self.kc("sign", "b.kcb", "--export", "message")
        message = (self.work / "message").read_bytes()
        self.assertEqual(message, b"kcb-signature-v1\0" + bundle.read_bytes()[608:640])
        self.openssl("pkeyutl", "-sign", "-rawin", "-inkey", "hsm.key", "-in", "message", "-out", "signature")
        self.kc("sign", "b.kcb", "--attach", "signature", "--key", "hsm.pub")
        self.kc("verify", "b.kcb", "--key", "hsm.pub")
        self.assertIn("already signed", self.kc("sign", "b.kcb", "--attach", "signature", "--key", "hsm.pub").out)
        # The other way round: the last 64 bytes of the payload, which ends 48 bytes before the block.
        self.keygen("ours")
        self.kc("sign", "b.kcb", "--key", "ours.key")
        block = bundle.read_bytes()[-192:]
        self.assertEqual(block[:8], b"KCSIGBLK")
        self.write("ours.sig", block[80:144])
        self.openssl("pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", "ours.pub", "-in", "message", "-sigfile", "ours.sig")

    def test_a_signature_is_checked_before_it_is_attached(self):
        bundle = self.build()
        before = bundle.read_bytes()
        self.keygen("a")
        self.write("zeros", bytes(64))
        self.assertIn("is not one of this bundle",
                      self.kc("sign", "b.kcb", "--attach", "zeros", "--key", "a.pub", expect=1).err)
        self.write("short", bytes(63))
        self.assertIn("64 raw bytes", self.kc("sign", "b.kcb", "--attach", "short", "--key", "a.pub", expect=2).err)
        self.assertIn("--key", self.kc("sign", "b.kcb", "--attach", "zeros", expect=2).err)
        self.kc("sign", "b.kcb", "--export", "message", "--key", "a.key", expect=2)
        self.assertEqual(bundle.read_bytes(), before)

    # -- builds ---------------------------------------------------------------------------------------------

    def test_a_build_signs_what_it_writes_and_does_nothing_the_next_time(self):
        key = self.keygen("a")
        self.make_units(2)
        self.settle()
        bundle = self.work / "b.kcb"
        build = ["build", "-o", "b.kcb", "--sign", "a.key"]
        self.assertEqual(self.summary(*build, env=self.env)["output_state"], "written")
        self.assertEqual(self.signers(), [key])
        before = bundle.stat()
        done = self.kc(*build, env=self.env)
        self.assertIn("is up to date", done.out)
        # Also where everything is looked at again.
        self.assertEqual(self.summary(*build, "--require-cached", env=self.env)["output_state"], "unchanged")
        now = bundle.stat()
        self.assertEqual((now.st_ino, now.st_mtime_ns), (before.st_ino, before.st_mtime_ns))
        # Whoever signs is an input: another key behind the same name signs too.
        os.rename(self.work / "a.key", self.work / "old.key")
        os.rename(self.work / "a.pub", self.work / "old.pub")
        other = self.keygen("a")
        self.assertEqual(self.summary(*build, env=self.env)["output_state"], "written")
        self.assertEqual(self.signers(), [key, other])

    def test_a_no_op_build_reads_no_key(self):
        self.keygen("a")
        self.make_units(2)
        self.settle()
        self.kc("build", "--sign", "a.key", env=self.env)
        log = self.root / "trace"
        done = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=openat", KC, "build", "--sign", "a.key"], cwd=self.work,
                              env={**self.env, "ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, text=True)
        self.assertIn("up to date", done.stdout, done.stderr)
        self.assertIn('"state"', log.read_text(), "the trace shows what is opened")
        self.assertNotIn("a.key", log.read_text())

    def test_signatures_that_were_added_by_hand_survive_a_build_that_changes_nothing(self):
        bundle = self.build()
        one, two = self.keygen("one"), self.keygen("two")
        self.kc("sign", "b.kcb", "--key", "one.key")
        signed = bundle.read_bytes()
        self.assertEqual(self.summary("build", "-o", "b.kcb", env=self.env)["output_state"], "unchanged")
        self.assertEqual(bundle.read_bytes(), signed)
        self.assertEqual(self.summary("build", "-o", "b.kcb", "--sign", "two.key", env=self.env)["output_state"], "written")
        self.assertEqual(self.signers(), [one, two])
        self.assertEqual(bundle.read_bytes()[:len(signed)], signed)
        # Something behind the content that is no good signature does not survive.
        bundle.write_bytes(signed[:-1] + b"\1")
        self.assertEqual(self.summary("build", "-o", "b.kcb", env=self.env)["output_state"], "written")
        self.assertEqual(bundle.read_bytes(), signed[:-192])
        # Nor does a good one survive another content.
        self.kc("sign", "b.kcb", "--key", "one.key")
        self.write("k000.tilebc", tile("@entry=kernel n=77"))
        self.kc("build", "-o", "b.kcb", env=self.env)
        self.assertEqual(self.signers(), [])

    def test_a_key_that_cannot_be_read_stops_a_build_before_it_compiles(self):
        self.make_units(2)
        self.assertIn("missing.key", self.kc("build", "--sign", "missing.key", env=self.env, expect=2).err)
        self.assertEqual(self.store_files("e/*/*.kce"), [])
        self.keygen("a")
        error = self.kc("build", "k000", "--sign", "a.key", env=self.env, expect=2).err
        self.assertIn("no bundle is made, so there is nothing to sign", error)

    def test_a_signed_pack_is_the_signed_build(self):
        self.keygen("a")
        built = self.build("--sign", "a.key").read_bytes()
        self.kc("pack", "-o", "p.kcb", "--sign", "a.key", env=self.env)
        self.assertEqual((self.work / "p.kcb").read_bytes(), built)


if __name__ == "__main__":
    main()
