#!/usr/bin/env python3
"""kcload, the program of the loader alone: what it shares with kc is tested in test_load.py and test_check.py too."""

import os
import re
import shutil
import subprocess

from kc_test import KCLOAD, KcTest, main


class Kcload(KcTest):
    def setUp(self):
        super().setUp()
        self.bundle = self.make_bundle(
            "b.kcb",
            {"kernel": "matmul", "specialization": "TM=64,TN=32", "target": "sm_90", "found_target": "sm_90a",
             "lowest_driver": 580, "default": True, "registers": 77, "local_memory": 16, "shared_memory": 4096,
             "arguments": [8, 4, 4], "metadata": {"author": "a", "when": "m=64;m=128"}, "code": "0123456789"},
            {"kernel": "saxpy", "target": "gfx1151", "scalar_registers": 12, "spills": 0},
            bundle="demo", release=3)

    def kcload(self, *arguments, **options):
        return self.kc(*arguments, program=KCLOAD, **options)

    def json(self, *arguments, **options):
        return self.kc_json(*arguments, program=KCLOAD, **options)

    def test_its_help_fits_a_screen_and_is_that_of_kc(self):
        texts = {}
        for command in ("list", "verify", "check", "load"):
            texts[command] = self.kcload(command, "--help").out
        texts[""] = self.kcload("--help").out
        for command, text in texts.items():
            lines = text.splitlines()
            self.assertLessEqual(len(lines), 40, command)
            self.assertLessEqual(max(map(len, lines)), 90, command)
            self.assertIn("Exit codes: 0 done;", text)
            self.assertEqual(len(re.findall(r"(?m)^  kcload ", text)), 2, text)
        for command in ("check", "load"):
            ours = texts[command].replace("kcload", "kc")
            self.assertEqual(ours, self.kc(command, "--help").out, command)
        self.assertRegex(self.kcload("--version").out, r"^kcload \d+\.\d+\.\d+\n$")

    def test_usage_errors_name_what_is_near(self):
        for arguments, part in ((["lost"], 'kcload has no command "lost"'), (["load", "--devise=x", "b.kcb"], "--device"),
                                (["list"], "BUNDLE"), (["check", "b.kcb"], "--device")):
            error = self.kcload(*arguments, expect=2).err
            self.assertTrue(error.startswith("kcload: error: "), error)
            self.assertIn(part, error)
            self.assertIn("--help", error)

    def test_list_tells_what_is_in_a_bundle(self):
        out = self.kcload("list", "b.kcb").out
        self.assertIn("b.kcb: demo, release 3, 2 units\n", out)
        self.assertRegex(out, r"(?m)^matmul:TM=64,TN=32 \(default\) +sm_90 \(sm_90a\) +77 +16 +4096 +10$")
        bundle, matmul, saxpy = self.json("list", "b.kcb")
        self.assertEqual(bundle, {"event": "bundle", "path": "b.kcb", "name": "demo", "release": 3, "partial": False,
                                  "subset": False, "entries": 2})
        known = {"unit": "matmul:TM=64,TN=32@sm_90", "kernel": "matmul", "configuration": "TM=64,TN=32", "target": "sm_90",
                 "found_target": "sm_90a", "backend": "tileiras", "entry": "matmul", "symbol": "matmul", "is_default": True,
                 "compiler_version": "13.4.92", "toolkit": "13.4", "lowest_driver": 580, "code_bytes": 10, "registers": 77,
                 "scalar_registers": None, "spills": None, "argument_bytes": 16, "metadata": {"author": "a", "when": "m=64;m=128"},
                 "when": "m=64;m=128", "code_digest": "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"}
        self.assertEqual({name: matmul[name] for name in known} | {"metadata": known["metadata"]}, known)
        self.assertEqual([argument["offset"] for argument in matmul["arguments"]], [0, 8, 12])
        self.assertEqual((saxpy["configuration"], saxpy["scalar_registers"], saxpy["spills"], saxpy["when"]), ("", 12, 0, None))
        # What kc show says of the same entries.
        shown = self.kc_json("show", "b.kcb")[1:]
        self.assertEqual([event["unit"] for event in shown], [matmul["unit"], saxpy["unit"]])
        self.assertEqual([event["key"] for event in shown], [matmul["content_key"], saxpy["content_key"]])

    def test_list_fits_a_terminal(self):
        self.make_bundle("b.kcb", {"kernel": "x" * 90, "target": "sm_90"})
        shown = self.kc_on_terminal("list", "b.kcb", "--color=never", width=50, program=KCLOAD)
        self.assertLessEqual(max(map(len, shown.splitlines())), 50, shown)

    def test_verify_finds_any_flipped_byte_and_tells_the_signers(self):
        self.assertIn("b.kcb: ok, 2 units\n", self.kcload("verify", "b.kcb").out)
        self.kc("keygen", "release")
        self.kc("keygen", "other")
        key = self.kc("sign", "b.kcb", "--key", "release.key").out
        signer = re.search(r"[0-9a-f]{64}", key)[0]
        self.assertIn(f"  signed by {signer}\n", self.kcload("verify", "b.kcb", "--key", "release.pub").out)
        summary = self.json("verify", "b.kcb", "--key", "release.pub")[-1]
        self.assertEqual(summary, {"event": "summary", "path": "b.kcb", "ok": True, "entries": 2, "name": "demo", "release": 3,
                                   "signers": [signer]})
        self.kcload("verify", "b.kcb", "--key", "other.pub", expect=1)
        data = self.bundle.read_bytes()
        for at in (0, 300, 700, len(data) // 2, len(data) - 300, len(data) - 100):
            bad = bytearray(data)
            bad[at] ^= 1
            self.write("bad.kcb", bytes(bad))
            self.kcload("verify", "bad.kcb", "--key", "release.pub", expect=1)
        self.assertEqual([event["event"] for event in self.json("verify", "bad.kcb", "--key", "release.pub", expect=1)],
                         ["fault", "summary"])

    def test_name_and_release_are_demanded_by_every_command(self):
        for command in (["list"], ["verify"], ["check", "--device", "sm_90"], ["load"]):
            self.assertIn("demo", self.kcload(*command, "b.kcb", "--name", "x", expect=1).err)
            self.kcload(*command, "b.kcb", "--min-release", "4", expect=1)
            self.kcload(*command, "b.kcb", "--min-release", "x", expect=2)
            self.kcload(*command, "missing.kcb", expect=2)

    def test_load_with_stand_in_drivers(self):
        program = self.root / "compiler"
        self.make_units(2)
        self.kc("build", "-o", "c.kcb", env=self.with_fake())
        self.assertTrue(program.exists())
        done = self.kcload("load", "c.kcb", env=self.with_stub("fail cuLibraryGetKernel 209 at 2"), expect=1)
        self.assertIn("cuda:0: 1 loaded, 1 refused, 0 without code", done.out)
        self.assertTrue(done.err.startswith("kcload: error: cuda:0: "), done.err)

    def test_it_needs_no_library_but_those_of_the_loader(self):
        out = subprocess.run(["readelf", "-d", KCLOAD], capture_output=True, text=True, check=True).stdout
        needed = set(re.findall(r"NEEDED.*\[([^\]]+)\]", out))
        plain = {name for name in needed if not re.match(r"lib(asan|ubsan|tsan)\.so|ld-linux", name)}
        self.assertEqual({name.split(".so")[0] for name in plain} - {"libc", "libm", "libcrypto", "libzstd"}, set(), needed)

    def test_it_runs_where_neither_kc_nor_a_home_is(self):
        alone = self.root / "alone"
        alone.mkdir()
        shutil.copy(KCLOAD, alone / "kcload")
        env = {name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS") if name in os.environ}
        env |= {"KC_STORE_MODE": "nonsense", "KC_JOBS": "nonsense"}  # of kc, none of its own
        done = subprocess.run([alone / "kcload", "-C", self.work, "list", "b.kcb"], env=env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("matmul", done.stdout)

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([KCLOAD, "list", self.bundle], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=self.environment())
        self.assertEqual(done.returncode, 3)
        self.assertIn("stdout", done.stderr)


if __name__ == "__main__":
    main()
