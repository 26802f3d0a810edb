"""The bundle's size against other ways to keep the same code objects."""

import os
from collections import defaultdict

from kcbench.case import Case, Measured, at_most, for_information
from kcbench.lab import DEMO
from kcbench.needs import FATBINARY, TILEIRAS, ZSTD


def one_frame_a_kernel(lab):
    single = sum(len(lab.must([lab.tool("zstd"), "-3", "-c", "--no-check", path])) for path in lab.demo_objects())
    return Measured([lab.demo_bundle().stat().st_size], [single], "B")


def fatbinary_size(lab, objects, *options):
    output = lab.scratch / "demo.fatbin"
    plain = lab.folder("fatbinary-images")  # its command line takes no `=` in names of files
    images = []
    for i, path in enumerate(objects):
        os.link(path, plain / f"{i}.cubin")
        images.append(f"--image3=kind=elf,sm={path.parent.name.removeprefix('sm_')},file={plain}/{i}.cubin")
    lab.must([lab.pinned("fatbinary"), "-64", f"--create={output}", "--compress-all", *options, *images])
    return output.stat().st_size


def fatbin_each(lab):
    specializations = defaultdict(list)
    for path in lab.demo_objects():
        specializations[path.parent.parent.name, path.stem].append(path)
    single = sum(fatbinary_size(lab, objects) for objects in specializations.values())
    return Measured([lab.demo_bundle().stat().st_size], [single], "B")


def fatbin_smallest(lab):
    lab.demo_bundle()  # so that all units are in its store
    small = lab.scratch / "demo-small.kcb"
    lab.must([lab.kc, "build", "-f", DEMO, "-o", small, "--level", "19"], lab.demo_environment())
    smallest = fatbinary_size(lab, lab.demo_objects(), "--compress-mode=size", "--concat")
    return Measured([small.stat().st_size], [smallest], "B")


CASES = [
    Case("size-frames", "the demo's bundle", "a `zstd -3` frame for each of its code objects", at_most(1 / 3),
         (TILEIRAS, ZSTD), one_frame_a_kernel),
    Case("size-fatbin", "the demo's bundle",
         "`fatbinary --compress-all`, a file for each specialization with all of its targets", at_most(1.0),
         (TILEIRAS, FATBINARY), fatbin_each),
    Case("size-fatbin-all", "the demo's bundle, `--level 19`",
         "all in one stream, `fatbinary --compress-all --compress-mode=size --concat`", for_information,
         (TILEIRAS, FATBINARY), fatbin_smallest),
]
