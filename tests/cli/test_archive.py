"""kc store export and import: what one machine compiled hits on another, and nothing comes in that nobody trusted signed.

KC_TEST_LONG=1 tries more cuts and changed bytes of whole programs; tests/unit/store/archive_test.cpp tries all of them.
"""

import base64
import hashlib
import os
import shutil
import signal
import struct
import subprocess
import time

from kc_test import KC, KcTest, main, sealed, tile

LONG = bool(os.environ.get("KC_TEST_LONG"))

HEAD, ITEM, END = 64, 48, 56  # bytes of the header, of what stands before a file, of the end mark


def make_archive(items):
    """An archive of (kind, key, file), as docs/store-format.md says; kind 1 is an entry, 2 a record."""
    content, digests = b"", b""
    for kind, key, file in sorted(items):
        item = struct.pack("<IIQ", kind, 0, len(file)) + bytes.fromhex(key) + file
        content += item
        digests += hashlib.sha256(item).digest()
    kinds = [kind for kind, _, _ in items]
    content += struct.pack("<IIQQ", 3, 0, kinds.count(1), kinds.count(2)) + hashlib.sha256(digests).digest()
    return sealed(struct.pack("<8sIIQQ32s", b"KCARCHIV", 1, 0, HEAD, len(content), b"") + content)


def content_size(archive):
    header, payload = struct.unpack_from("<QQ", archive, 16)
    return header + payload


def items_of(archive):
    """The (kind, key, file) of an archive."""
    at, out = HEAD, []
    while at < content_size(archive) - END:
        kind, _, size = struct.unpack_from("<IIQ", archive, at)
        key = archive[at + 16 : at + ITEM].hex()
        out.append((kind, key, archive[at + ITEM : at + ITEM + size]))
        at += ITEM + size
    return out


def under_key(entry, key):
    """An entry as if it were the answer to another question."""
    return sealed(entry[:64] + bytes.fromhex(key) + entry[96:])


class Archive(KcTest):
    def setUp(self):
        super().setUp()
        self.env = self.with_hostile(KC_TILEIRAS=self.with_fake()["KC_TILEIRAS"], HOME=self.root / "home")
        self.other = self.env | {"KC_STORE_DIR": str(self.root / "other")}

    def key(self, name="release"):
        self.kc("keygen", name, env=self.env)
        return self.work / f"{name}.key", self.work / f"{name}.pub"

    def key_id(self, name="release"):
        """What a public key is called: its 32 bytes, which end the PEM."""
        lines = (self.work / f"{name}.pub").read_text().splitlines()
        return base64.b64decode("".join(lines[1:-1]))[-32:].hex()

    def build(self, count=2):
        """Both compilers' units in the store of `env`; the manifests and their bundles."""
        manifests = [self.make_units(count), self.make_loom_units(count, folder="loom")]
        for manifest in manifests:
            self.kc("build", "-f", manifest, "-o", manifest.parent / "first.kcb", env=self.env)
        return manifests

    def listed(self, env):
        return [event for event in self.kc_json("store", "ls", env=env) if event["event"] == "entry"]

    def counts(self, env):
        summary = self.kc_json("store", "ls", env=env)[-1]
        return summary["entries"], summary["records"]

    def export(self, name="a.kca", *arguments, **options):
        self.kc("store", "export", name, *arguments, env=self.env, **options)
        return self.work / name

    # -- there and back -------------------------------------------------------------------------------------

    def test_what_one_machine_compiled_hits_on_another_that_trusts_its_key(self):
        manifests = self.build()
        secret, public = self.key()
        done = self.kc("store", "export", "a.kca", "--sign", secret, env=self.env)
        self.assertRegex(done.out, r"^kc: wrote a.kca: 4 entries and 2 records, [0-9.]+ KiB, signed by [0-9a-f]{64}\n$")
        self.assertIn(self.key_id(), done.out)
        done = self.kc("store", "import", "a.kca", "--key", public, env=self.other)
        self.assertEqual(done.out, f"kc: imported 4 entries and 2 records from a.kca, signed by {self.key_id()}\n")
        self.assertEqual(done.err, "")
        for manifest in manifests:
            bundle = manifest.parent / "second.kcb"
            summary = self.summary("build", "-f", manifest, "-o", bundle, "--require-cached", env=self.other)
            self.assertEqual((summary["hits"], summary["compiled"]), (2, 0))
            self.assertEqual(bundle.read_bytes(), (manifest.parent / "first.kcb").read_bytes())
        for entry in self.listed(self.other):
            self.assertEqual((entry["imported"], entry["signer"]), (True, self.key_id()))
        self.assertEqual(self.kc("store", "verify", env=self.other).out, "kc: 4 entries and 2 records checked, 0 damaged\n")
        self.assertIn(f"origin     imported, signed by {self.key_id()}\n",
                      self.kc("store", "show", "k001@sm_90", env=self.other).out)
        # Signed again by a third machine's build, because the signer is trusted there.
        self.kc("build", "-f", manifests[1], "-o", "signed.kcb", "--sign", secret, "--key", public, env=self.other)

    def test_the_same_contents_give_the_same_bytes(self):
        self.build()
        first = self.export("a.kca").read_bytes()
        for file in self.store.rglob("*.kc?"):
            os.utime(file, (1, 1))
        self.assertEqual(self.export("b.kca").read_bytes(), first)
        self.assertEqual(self.export("b.kca").read_bytes(), first)  # replaces the one that is there
        self.assertEqual(make_archive(items_of(first)), first)
        for kind, key, file in items_of(first):
            folder, suffix = (("e", "kce"), ("r", "kcr"))[kind - 1]
            self.assertEqual((self.store / "v1" / folder / key[:2] / f"{key}.{suffix}").read_bytes(), file)

    def test_what_is_there_already_stays_but_for_what_nobody_trusted_signed(self):
        self.build()
        secret, public = self.key()
        self.export("a.kca")
        self.export("signed.kca", "--sign", secret)
        own = {file: file.read_bytes() for file in self.store.rglob("*.kc[er]")}
        done = self.kc("store", "import", "signed.kca", "--key", public, env=self.env)
        self.assertIn("kc: imported 0 entries and 0 records from signed.kca, ", done.out)
        self.assertIn("; 4 entries and 2 records were there\n", done.out)
        self.assertEqual({file: file.read_bytes() for file in self.store.rglob("*.kc[er]")}, own)
        self.kc("store", "import", "a.kca", "--trust-unsigned", env=self.other)
        self.assertEqual({entry["signer"] for entry in self.listed(self.other)}, {""})
        self.kc("store", "import", "signed.kca", "--key", public, env=self.other)
        self.assertEqual({entry["signer"] for entry in self.listed(self.other)}, {self.key_id()})
        summary = self.summary("store", "import", "a.kca", "--trust-unsigned", env=self.other)
        self.assertEqual((summary["entries_there"], summary["records_there"]), (4, 2))
        self.assertEqual({entry["signer"] for entry in self.listed(self.other)}, {self.key_id()})

    def test_an_entry_that_was_imported_says_who_signed_the_archive_that_it_came_in_last(self):
        self.build(1)
        first, _ = self.key("first")
        second, _ = self.key("second")
        self.export("a.kca", "--sign", first)
        self.kc("store", "import", "a.kca", "--key", "first.pub", env=self.other)
        self.kc("store", "export", "b.kca", "--sign", second, env=self.other)
        third = self.env | {"KC_STORE_DIR": str(self.root / "third")}
        self.kc("store", "import", "b.kca", "--key", "first.pub", env=third, expect=1)
        self.kc("store", "import", "b.kca", "--key", "second.pub", env=third)
        self.assertEqual({entry["signer"] for entry in self.listed(third)}, {self.key_id("second")})

    def test_a_damaged_file_in_the_store_is_replaced_by_the_one_in_the_archive(self):
        self.build(1)
        self.export("a.kca")
        shutil.copytree(self.store, self.root / "other")
        for file in (self.root / "other").rglob("*.kc[er]"):
            self.damage(file)
        summary = self.summary("store", "import", "a.kca", "--trust-unsigned", env=self.other)
        self.assertEqual((summary["entries"], summary["records"]), (2, 1))
        self.kc("store", "verify", env=self.other)

    # -- trust ----------------------------------------------------------------------------------------------

    def test_without_a_trusted_signature_nothing_is_imported(self):
        self.build()
        secret, public = self.key()
        stranger, _ = self.key("stranger")
        self.export("unsigned.kca")
        self.export("strange.kca", "--sign", stranger)
        good = self.export("good.kca", "--sign", secret).read_bytes()
        strange = (self.work / "strange.kca").read_bytes()
        # The right key's signature, of another archive.
        other = make_archive(items_of(good)[1:])
        self.write("moved.kca", other + good[content_size(good):])
        self.assertEqual(strange[: content_size(strange)], good[: content_size(good)])
        for name, why in (("unsigned.kca", "it is not signed"),
                          ("strange.kca", f"it is signed by {self.key_id('stranger')}"),
                          ("moved.kca", f"its signature by {self.key_id()} is of something else")):
            failed = self.kc("store", "import", name, "--key", public, env=self.other, expect=1)
            self.assertIn(why, failed.err)
            self.assertIn("--trust-unsigned", failed.err)
            self.assertEqual(failed.out, "")
            self.assertFalse((self.root / "other").exists(), name)
        self.kc("store", "import", "good.kca", env=self.other, expect=1)  # trusts nobody
        # A second signature is as good as the first.
        self.write("both.kca", strange + good[content_size(good):])
        self.kc("store", "import", "both.kca", "--key", public, env=self.other)

    def test_keys_come_from_a_folder_and_from_the_users_settings_too(self):
        self.build(1)
        secret, public = self.key()
        self.key("stranger")
        self.export("a.kca", "--sign", secret)
        folder = self.work / "keys"
        folder.mkdir()
        shutil.copy(self.work / "stranger.pub", folder)
        self.kc("store", "import", "a.kca", "--key-dir", folder, env=self.other, expect=1)
        shutil.copy(public, folder)
        self.kc("store", "import", "a.kca", "--key-dir", folder, env=self.other)
        settings = self.root / "home" / ".config" / "kc" / "config.yaml"
        settings.parent.mkdir(parents=True, mode=0o700)
        settings.write_text(f"trusted_keys: [{public}]\n")
        settings.chmod(0o600)
        third = self.env | {"KC_STORE_DIR": str(self.root / "third")}
        self.kc("store", "import", "a.kca", env=third)
        self.assertEqual(self.counts(third), (2, 1))

    def test_other_code_under_a_right_key_is_refused_and_never_signed(self):
        tile_manifest, loom_manifest = self.build()
        secret, public = self.key()
        entries = {entry["unit"]: entry["key"] for entry in self.listed(self.env)}
        archive = self.export("a.kca").read_bytes()
        files = {key: file for kind, key, file in items_of(archive) if kind == 1}
        records = [item for item in items_of(archive) if item[0] == 2]
        evil = []
        for right, wrong in (("k000@sm_90", "k001@sm_90"), ("k000@gfx1100", "k001@gfx1100")):
            evil.append((1, entries[right], under_key(files[entries[wrong]], entries[right])))
        self.write("evil.kca", make_archive(evil + records))
        failed = self.kc("store", "import", "evil.kca", "--key", public, env=self.other, expect=1)
        self.assertIn("it is not signed", failed.err)
        self.assertFalse((self.root / "other").exists())

        done = self.kc("store", "import", "evil.kca", "--trust-unsigned", env=self.other)
        self.assertIn("kc: imported 2 entries and 2 records from evil.kca, signed by nobody who is trusted\n", done.out)
        shown = self.kc("store", "show", entries["k000@sm_90"], env=self.other).out
        self.assertIn("origin     imported, signed by nobody who is trusted\n", shown)
        self.assertIn("imported, unsigned", self.kc("store", "ls", env=self.other).out)
        for manifest, unit, clean in ((tile_manifest, "k000@sm_90", "k001@sm_90"),
                                      (loom_manifest, "k000@gfx1100", "k001@gfx1100")):
            failed = self.kc("build", "-f", manifest, "-o", "out.kcb", "--sign", secret, env=self.other, expect=1)
            self.assertIn(f"{unit} was imported without a trusted signature", failed.err)
            self.assertFalse((self.work / "out.kcb").exists())
            # Unsigned it may be packed: that was the user's word.
            self.kc("build", "-f", manifest, "-o", manifest.parent / "mine.kcb", env=self.other)
            # What was compiled here meanwhile is not accused.
            self.assertNotIn(clean, failed.err)
            failed = self.kc("build", "-f", manifest, "-o", "out.kcb", "--sign", secret, env=self.other, expect=1)
            self.assertNotIn(clean, failed.err)
            # Compiled anew it may be signed.
            self.kc("build", "-f", manifest, "-o", "out.kcb", "--sign", secret, "--store-mode=refresh", env=self.other)
            (self.work / "out.kcb").unlink()
            self.kc("build", "-f", manifest, "-o", "out.kcb", "--sign", secret, env=self.other)
            (self.work / "out.kcb").unlink()

    def test_a_record_that_leads_to_other_code_of_this_machine_is_never_signed(self):
        # Both kernels have one symbol, so that nothing but the keys tells their code apart.
        self.make_loom_units(2, folder="loom")
        for name in ("k000", "k001"):
            text = (self.work / "loom" / f"{name}.loom").read_text().replace(name, "kernel")
            (self.work / "loom" / f"{name}.loom").write_text(text)
        manifest = self.write("loom/kernels.yaml", "version: 1\ntargets: [gfx1100]\nkernels:\n" + "".join(
            f"  - {{ name: {name}, sources: {name}.loom, entry: kernel }}\n" for name in ("k000", "k001")))
        secret, _ = self.key()
        self.kc("build", "-f", manifest, env=self.env)
        events = {event["unit"]: event for event in self.kc_json("plan", "-f", manifest, env=self.env)[:-1]}
        first, second = events["k000@gfx1100"], events["k001@gfx1100"]
        record = self.store / "v1" / "r" / first["request_key"][:2] / f"{first['request_key']}.kcr"
        data = record.read_bytes()
        evil = sealed(data[:96] + bytes.fromhex(second["key"]) + data[128:])
        self.write("evil.kca", make_archive([(2, first["request_key"], evil)]))
        # A record of this machine stays.
        self.kc("store", "import", "evil.kca", "--trust-unsigned", env=self.env)
        self.assertEqual(record.read_bytes(), data)
        self.kc("store", "rm", first["request_key"], env=self.env)
        self.kc("store", "import", "evil.kca", "--trust-unsigned", env=self.env)
        planned = self.kc_json("plan", "-f", manifest, env=self.env)
        self.assertEqual(planned[0]["key"], second["key"])  # the user's word was taken
        failed = self.kc("build", "-f", manifest, "-o", "out.kcb", "--sign", secret, env=self.env, expect=1)
        self.assertIn("k000@gfx1100 was imported without a trusted signature", failed.err)
        self.assertNotIn("k001@gfx1100 was", failed.err)

    # -- what is wrong with archives ------------------------------------------------------------------------

    def test_a_damaged_entry_is_refused_by_name_and_the_others_are_imported(self):
        self.build()
        items = items_of(self.export("a.kca").read_bytes())
        damaged, newer, foreign, good = [item for item in items if item[0] == 1]
        record = next(item for item in items if item[0] == 2)
        entries = [
            (1, damaged[1], damaged[2][:-1] + bytes([damaged[2][-1] ^ 1])),
            (1, newer[1], sealed(newer[2][:8] + b"\x02" + newer[2][9:])),
            (1, foreign[1], good[2]),
            good,
            (2, record[1], record[2][:-1] + bytes([record[2][-1] ^ 1])),
        ]
        self.write("mixed.kca", make_archive(entries))
        failed = self.kc("store", "import", "mixed.kca", "--trust-unsigned", env=self.other, expect=1)
        for key, why in ((damaged[1], "payload that does not match"), (newer[1], "has version 2"),
                         (foreign[1], "of another key"), (record[1], "header that does not match")):
            self.assertRegex(failed.err, f"not imported: (entry|record) {key}: .*{why}")
        self.assertIn("kc: imported 1 entry and 0 records from mixed.kca", failed.out)
        self.assertIn("; 3 entries and 1 record were refused\n", failed.out)
        self.assertEqual([entry["key"] for entry in self.listed(self.other)], [good[1]])
        self.kc("store", "verify", env=self.other)

    def test_an_archive_cut_at_any_block_is_refused_and_leaves_nothing(self):
        self.build()
        secret, public = self.key()
        data = self.export("a.kca", "--sign", secret).read_bytes()
        content = content_size(data)
        cuts = [0, 1, HEAD - 1, HEAD, content - END, content - 1, content + 1, len(data) - 64, len(data) - 1]
        at = HEAD
        for _, _, file in items_of(data):
            cuts += [at + ITEM, at + ITEM + len(file)]
            at += ITEM + len(file)
        for cut in sorted(set(cuts)):
            self.write("cut.kca", data[:cut])
            for how in (("--key", public), ("--trust-unsigned",))[0 if LONG else 1 :]:
                failed = self.kc("store", "import", "cut.kca", *how, env=self.other, expect=1)
                self.assertIn("cut.kca", failed.err, cut)
                self.assertFalse((self.root / "other").exists(), cut)
        # Cut exactly before the signature it is an archive that nobody signed.
        self.write("cut.kca", data[:content])
        self.assertIn("it is not signed", self.kc("store", "import", "cut.kca", "--key", public, env=self.other, expect=1).err)
        self.assertFalse((self.root / "other").exists())

    def test_a_changed_byte_is_noticed_wherever_it_is(self):
        self.build(1)
        secret, public = self.key()
        data = self.export("a.kca", "--sign", secret).read_bytes()
        step = max(1, len(data) // (60 if LONG else 12))
        for at in [*range(0, len(data), step), len(data) - 1]:
            self.write("bad.kca", data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
            self.kc("store", "import", "bad.kca", "--key", public, env=self.other, expect=1)
            self.assertFalse((self.root / "other").exists(), at)

    def test_what_is_no_archive_is_told_and_an_archive_of_a_newer_kc_too(self):
        self.build(1)
        data = self.export("a.kca").read_bytes()
        os.mkfifo(self.work / "fifo")
        self.write("empty", b"")
        self.write("newer.kca", sealed(data[:8] + b"\x02" + data[9:]))
        for name, code, why in (("missing.kca", 2, "No such file"), (".", 2, "is a directory"), ("fifo", 2, "not a regular file"),
                                ("empty", 1, "is empty"), ("kernels.yaml", 1, "not an archive of kc"),
                                ("first.kcb", 1, "not an archive of kc"), ("newer.kca", 1, "newer kc")):
            failed = self.kc("store", "import", name, "--trust-unsigned", env=self.other, expect=code)
            self.assertIn(why, failed.err, name)
        if os.geteuid() != 0:
            (self.work / "a.kca").chmod(0)
            self.kc("store", "import", "a.kca", "--trust-unsigned", env=self.other, expect=2)
        self.write("store-file", b"")
        self.kc("store", "import", "a.kca", "--trust-unsigned", "--store", "store-file", env=self.other, expect=3)

    def test_a_place_that_is_taken_or_missing_is_told_before_anything_is_written(self):
        self.build(1)
        os.mkfifo(self.work / "fifo")
        before = (self.work / "kernels.yaml").read_bytes()
        for name, code in ((".", 2), ("fifo", 2), ("kernels.yaml", 2), ("first.kcb", 2), ("missing/a.kca", 3)):
            self.kc("store", "export", name, env=self.env, expect=code)
        self.assertEqual((self.work / "kernels.yaml").read_bytes(), before)
        self.kc("store", "export", "a.kca", "--sign", "missing.key", env=self.env, expect=2)
        self.assertFalse((self.work / "a.kca").exists())
        self.assertFalse([path for path in self.work.rglob("*") if "kc-tmp" in path.name])

    # -- what is exported -----------------------------------------------------------------------------------

    def test_of_a_manifest_only_what_it_needs_is_exported(self):
        tile_manifest, loom_manifest = self.build(3)
        self.kc("build", "-f", self.make_units(5, folder="more"), env=self.env)
        self.assertEqual(self.counts(self.env), (8, 3))  # three of the five are those of the first manifest
        for manifest, arguments, counts in ((tile_manifest, (), (3, 0)), (loom_manifest, (), (3, 3)),
                                            (loom_manifest, ("k001", "k002@gfx1100"), (2, 2)),
                                            (loom_manifest, ("--target", "gfx1100"), (3, 3))):
            summary = self.summary("store", "export", "a.kca", "-f", manifest, *arguments, env=self.env)
            self.assertEqual((summary["entries"], summary["records"]), counts)
            self.assertEqual((summary["missing"], summary["signer"]), (0, ""))
        self.kc("store", "import", "a.kca", "--trust-unsigned", env=self.other)
        self.assertEqual(self.summary("build", "-f", loom_manifest, "--require-cached", env=self.other)["hits"], 3)
        self.kc("store", "export", "a.kca", "-f", loom_manifest, "nothing", env=self.env, expect=2)
        self.kc("store", "export", "a.kca", "-f", "missing.yaml", env=self.env, expect=2)
        failed = self.kc("store", "export", "a.kca", "k001", env=self.env, expect=2)
        self.assertIn("name it with -f", failed.err)

    def test_units_that_the_store_lacks_are_listed_and_nothing_is_written(self):
        tile_manifest, loom_manifest = self.build(3)
        for unit in ("k001@sm_90", "k002@gfx1100"):
            self.kc("store", "rm", unit, env=self.env)
        for manifest, unit in ((tile_manifest, "k001@sm_90"), (loom_manifest, "k002@gfx1100")):
            failed = self.kc("store", "export", "a.kca", "-f", manifest, env=self.env, expect=1)
            self.assertIn(f"error: {unit} is not in the store", failed.err)
            self.assertIn("--allow-partial", failed.err)
            self.assertFalse((self.work / "a.kca").exists())
            events = self.kc_json("store", "export", "b.kca", "-f", manifest, "--allow-partial", env=self.env)
            self.assertEqual([event["event"] for event in events], ["missing", "summary"])
            self.assertEqual(events[0]["unit"], unit)
            self.assertEqual((events[1]["entries"], events[1]["missing"]), (2, 1))
        # An entry that only proves damaged when it is read is as good as missing.
        entry = next(entry for entry in self.listed(self.env) if entry["unit"] == "k000@sm_90")
        self.damage(self.store / "v1" / "e" / entry["key"][:2] / f"{entry['key']}.kce")
        failed = self.kc("store", "export", "a.kca", "-f", tile_manifest, "k000", "k002", env=self.env, expect=1)
        self.assertIn("k000@sm_90 is not in the store", failed.err)
        self.assertFalse((self.work / "a.kca").exists())

    def test_an_answer_that_there_is_no_code_travels_too(self):
        self.write("a.tilebc", tile("@entry=kernel @incompatible=sm_80"))
        manifest = self.write("kernels.yaml", "version: 1\ntargets: [sm_80, sm_90]\nkernels:\n"
                                              "  - { name: a, sources: a.tilebc, entry: kernel, unsupported: skip }\n")
        self.kc("build", env=self.env)
        self.kc("store", "export", "a.kca", "-f", manifest, env=self.env)
        self.kc("store", "import", "a.kca", "--trust-unsigned", env=self.other)
        summary = self.summary("build", "--require-cached", env=self.other)
        self.assertEqual((summary["hits"], summary["skipped"]), (1, 1))

    def test_what_is_damaged_or_newer_in_the_store_is_left_out(self):
        self.build(2)
        damaged, newer = sorted((self.store / "v1" / "e").rglob("*.kce"))[:2]
        data = damaged.read_bytes()
        damaged.unlink()
        damaged.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        data = newer.read_bytes()
        newer.unlink()
        newer.write_bytes(sealed(data[:8] + b"\x02" + data[9:]))
        done = self.kc("store", "export", "a.kca", env=self.env, expect=1)
        self.assertIn(f"{damaged.name}: has a payload that does not match its digest: left out", done.err)
        self.assertIn(f"{newer.name}: has version 2", done.err)
        self.assertIn("kc: wrote a.kca: 2 entries and 2 records, ", done.out)
        self.assertTrue(damaged.exists() and newer.exists())
        damaged.unlink()
        self.kc("store", "export", "a.kca", env=self.env)

    def test_an_export_that_is_interrupted_leaves_nothing(self):
        self.build(1)
        entry = next((self.store / "v1" / "e").rglob("*.kce")).read_bytes()
        for i in range(3000):
            key = hashlib.sha256(b"%d" % i).hexdigest()
            path = self.store / "v1" / "e" / key[:2] / f"{key}.kce"
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_bytes(under_key(entry, key))
        process = self.start("store", "export", "a.kca", env=self.env)
        while not list(self.work.glob(".a.kca.kc-tmp*")) and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        left = sorted(path.name for path in self.work.glob("*a.kca*"))
        self.assertIn((process.returncode, left), [(143, []), (0, ["a.kca"])])  # or it was faster

    def test_an_empty_store_is_exported_as_an_archive_of_nothing(self):
        done = self.kc("store", "export", "a.kca", env=self.env)
        self.assertEqual(done.out, "kc: wrote a.kca: 0 entries and 0 records, 120 B, not signed\n")
        self.assertFalse(self.store.exists())
        self.assertEqual((self.work / "a.kca").read_bytes(), make_archive([]))
        self.kc("store", "import", "a.kca", "--trust-unsigned", env=self.other)

    def test_what_lies_in_a_read_only_store_is_exported_with_a_manifest(self):
        tile_manifest, _ = self.build(2)
        env = self.env | {"KC_STORE_DIR": str(self.root / "own"), "KC_STORE_READ_ONLY_DIRS": str(self.store)}
        summary = self.summary("store", "export", "a.kca", "-f", tile_manifest, env=env)
        self.assertEqual(summary["entries"], 2)
        self.assertEqual(self.summary("store", "export", "a.kca", env=env)["entries"], 0)

    def test_export_takes_no_memory_for_all_of_a_store_and_import_none_for_all_of_an_archive(self):
        self.write("a.tilebc", tile("@entry=kernel @size=8000000"))
        self.write("kernels.yaml", "version: 1\ntargets: [sm_80, sm_86, sm_89, sm_90, sm_100, sm_120]\nkernels:\n"
                                   "  - { name: a, sources: a.tilebc, entry: kernel }\n")
        self.kc("build", env=self.env)

        def peak(*arguments, env):
            # What ASan keeps of freed memory, to notice its use, is not what this is about.
            env = env | {"ASAN_OPTIONS": env.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}
            script = ("import resource,subprocess,sys;subprocess.run(sys.argv[1:],check=True,stdout=subprocess.DEVNULL);"
                      "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
            out = subprocess.run(["python3", "-c", script, KC, *arguments], cwd=self.work, env=env, check=True, capture_output=True)
            return int(out.stdout)

        one = self.root / "one"
        few = self.env | {"KC_STORE_DIR": str(one)}
        self.kc("build", "a@sm_90", env=few)
        small = peak("store", "export", "small.kca", env=few), peak("store", "import", "small.kca", "--trust-unsigned", env=self.other)
        third = self.env | {"KC_STORE_DIR": str(self.root / "third")}
        large = peak("store", "export", "large.kca", env=self.env), peak("store", "import", "large.kca", "--trust-unsigned", env=third)
        self.assertEqual(self.counts(third)[0], 6)
        for before, after in zip(small, large):
            self.assertLess(after, before + 40 * 1024)  # KiB; six entries, of which one is held at a time


if __name__ == "__main__":
    main()
