#!/usr/bin/env python3
"""The programs of docs/examples. On a machine with an NVIDIA GPU and the pinned tileiras they compute; elsewhere what is
before the launch is tried with a stand-in driver, and they say `not run`."""

import glob
import os
import re
import subprocess
import sys

from kc_test import BUILD, DEMO, SOURCE, KcTest, main, real_tileiras, tile

LIBRARY = BUILD / "core" / "loader" / "libkcload.so.1"


class Examples(KcTest):
    def commands(self):
        python = SOURCE / "docs" / "examples" / "vec_add.py"
        return {"saxpy_cuda.c": [BUILD / "examples" / "saxpy_cuda"], "vec_add.cpp": [BUILD / "examples" / "vec_add"],
                "vec_add.py": [sys.executable, python]}

    def run_example(self, name, *arguments, **changes):
        command = [*self.commands()[name], *arguments]
        if name.endswith(".py"):
            command.append(LIBRARY)
            # A library with AddressSanitizer wants it loaded first; leaks of the interpreter are none of ours.
            needed = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
            if found := re.search(r"\[(lib[at]san\.so\.\d+)\]", needed):
                runtime = subprocess.run(["cc", f"-print-file-name={found[1]}"], capture_output=True, text=True).stdout.strip()
                changes |= {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}
        env = self.environment(**changes)
        return subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, timeout=120)

    def write_manifest(self, targets, source):
        """The demo's vec_add with two tiles; `source` gives the bytes for a tile."""
        for size in (256, 1024):
            self.write(f"vec_add_f32_{size}.tilebc", source(size))
        self.write("kernels.yaml", f"""\
version: 1
targets: [{targets}]
kernels:
  - name: vec_add
    sources: "vec_add_{{T}}_{{TILE}}.tilebc"
    entry: vec_add
    specializations: {{ matrix: {{ T: [f32], TILE: [256, 1024] }} }}
""")

    def fake_demo(self):
        self.write_manifest("sm_90", lambda size: tile(f"@entry=vec_add n={size}"))
        self.kc("build", "-o", "demo.kcb", env=self.with_fake())
        return self.work / "demo.kcb"

    def test_without_a_device_they_say_not_run(self):
        bundle = self.fake_demo()
        for told in (None, "device none"):
            env = self.with_stub(told)
            for name in self.commands():
                done = self.run_example(name, bundle, LD_LIBRARY_PATH=env.get("LD_LIBRARY_PATH"),
                                        KC_STUB_CUDA=env.get("KC_STUB_CUDA"))
                self.assertEqual((done.returncode, done.stdout.splitlines()[-1:]), (77, ["not run: no device"]),
                                 f"{name}: {done.stdout}{done.stderr}")

    def test_what_fails_is_told(self):
        bundle = self.fake_demo()
        env = self.with_stub("device 9.0 NVIDIA H200; fail cuLibraryGetKernel 221")
        for name in self.commands():
            done = self.run_example(name, self.work / "missing.kcb")
            self.assertEqual(done.returncode, 1, name)
            self.assertIn("missing.kcb", done.stderr)
            done = self.run_example(name, bundle, LD_LIBRARY_PATH=env["LD_LIBRARY_PATH"], KC_STUB_CUDA=env["KC_STUB_CUDA"])
            self.assertEqual(done.returncode, 1, name)
            self.assertIn("likely cause", done.stderr)
            # The stand-in loads, and has nothing that launches.
            done = self.run_example(name, bundle, LD_LIBRARY_PATH=env["LD_LIBRARY_PATH"], KC_STUB_CUDA="device 9.0 H200")
            self.assertEqual(done.returncode, 1, name)
            self.assertRegex(done.stderr, "cu[A-Z]")

    def test_on_a_real_device_the_numbers_are_right(self):
        if not glob.glob("/dev/nvidia[0-9]*"):
            self.skipTest("not run: no device")
        if not (compiler := real_tileiras()):
            self.skipTest("not run: there is no tileiras (packaging/bootstrap test installs one)")
        bytecode = DEMO.parent / "bytecode"
        self.write_manifest("sm_80, sm_86, sm_89, sm_90, sm_100, sm_103, sm_120, sm_121",
                            lambda size: (bytecode / f"vec_add_f32_{size}.tilebc").read_bytes())
        self.kc("build", "-o", "demo.kcb", env=self.environment(KC_TILEIRAS=compiler))
        for name in self.commands():
            done = self.run_example(name, self.work / "demo.kcb", LD_LIBRARY_PATH=os.environ.get("LD_LIBRARY_PATH"))
            self.assertEqual(done.returncode, 0, f"{name}: {done.stdout}{done.stderr}")
            self.assertRegex(done.stdout.splitlines()[-1], "^ok: ")
            print(f"{name}: ran, {done.stdout.splitlines()[-1]}")


if __name__ == "__main__":
    main()
