#!/usr/bin/env python3
"""Prepares what demo_gpu needs and runs it: see demo_gpu.cpp.

usage: demo.py BUILD                      the test; exit 77 without a GPU
       demo.py BUILD --prepare FOLDER     only prepares, for `demo_gpu FOLDER` on a machine that has a GPU and no compiler
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

MANIFEST = pathlib.Path(__file__).resolve().parents[2] / "manifests" / "demo" / "kernels.yaml"


def prepare(build, folder):
    def kc(*words):
        subprocess.run([build / "bin" / "kc", *words], check=True, cwd=folder)

    store = ["--store", folder / "store"]
    kc("build", "-q", "-f", MANIFEST, "-o", folder / "demo.kcb", *store)
    kc("build", "-q", "-f", MANIFEST, "-o", folder / "subset.kcb", *store, "vec_add")
    # A frame a code object, so that one can be damaged alone.
    kc("build", "-q", "-f", MANIFEST, "-o", folder / "frames.kcb", "--frame-size", "4KiB", *store)
    for name in "ours", "theirs":
        kc("keygen", "-q", name)
    shutil.copy(folder / "demo.kcb", folder / "theirs.kcb")
    kc("sign", "-q", "theirs.kcb", "--key", "theirs.key")
    shutil.copy(folder / "theirs.kcb", folder / "both.kcb")
    kc("sign", "-q", "both.kcb", "--key", "ours.key")
    shutil.rmtree(folder / "store")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if sys.argv[2:3] == ["--prepare"]:
        folder = pathlib.Path(sys.argv[3]).resolve()
        folder.mkdir(parents=True)
        prepare(build, folder)
        return 0
    program = build / "bin" / "demo_gpu"
    # Without arguments it only looks for a device.
    if (code := subprocess.run([program], stderr=subprocess.DEVNULL, check=False).returncode) == 77:
        return code
    if not any(build.glob("venv/lib/python3*/site-packages/nvidia/cu13/bin/tileiras")):
        print("not run: no tileiras in the build folder (packaging/bootstrap installs it)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        prepare(build, pathlib.Path(folder))
        return subprocess.run([program, folder], check=False).returncode


sys.exit(main())
