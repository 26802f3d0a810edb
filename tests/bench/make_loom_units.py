#!/usr/bin/env python3
"""Writes a manifest of small Loom kernels and the same compiles as a list for loom_bare.

usage: make_loom_units.py FOLDER

FOLDER then holds copies of the kernels of manifests/demo_amd, kernels.yaml, and units.tsv, a line a compile as
loom_bare.cpp reads it, in the order of the manifest's units.
"""

import argparse
import itertools
import pathlib
import shutil
import sys

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "manifests" / "demo_amd" / "kernels"
TARGETS = ["gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx11-generic", "gfx1150", "gfx1151", "gfx1152",
           "gfx1153", "gfx1200", "gfx1201"]
# kernel: its source, libraries, and the values of each configuration key
MATRICES = {
    "vadd_f32": ("vector_add.loom", [], {"tuner.workgroup_size": range(32, 1025, 32)}),
    "scale_i32": ("scale.loom", [], {"scale.factor": range(1, 401)}),
    "saxpy_f32": ("saxpy.loom", [], {"saxpy.negate": ["false", "true"], "tuner.workgroup_size": range(16, 1025, 16)}),
    "rowsum_f32": ("row_sum.loom", [], {"rowsum.columns": range(1, 161), "tuner.workgroup_size": [64]}),
    "pair_i32": ("pair.loom", ["arithmetic.loom"], {"tuner.workgroup_size": [32, 64, 128, 256]}),
}


def write(folder):
    """Makes the files; gives the number of units."""
    folder = pathlib.Path(folder)
    shutil.copytree(KERNELS, folder / "kernels")
    manifest = ["version: 1", "name: loom_units", f"targets: [{', '.join(TARGETS)}]", "kernels:"]
    files, units = [], []
    for number, (kernel, (source, libraries, matrix)) in enumerate(MATRICES.items()):
        matrix = {key: [str(value) for value in values] for key, values in matrix.items()}
        manifest += [f"  - name: {kernel}", f"    sources: kernels/{source}"]
        if libraries:
            manifest.append(f"    libraries: [{', '.join('kernels/' + name for name in libraries)}]")
        manifest.append("    specializations:")
        manifest.append("      matrix:")
        manifest += [f"        {key}: [{', '.join(values)}]" for key, values in matrix.items()]
        for name, role in [(source, "root"), *((name, "library") for name in libraries)]:
            files.append(f"file\t{number}\t{role}\tkernels/{name}\t{folder / 'kernels' / name}")
        for values in itertools.product(*matrix.values()):
            pairs = "\t".join(f"{key}={value}" for key, value in zip(matrix, values))
            units += [f"unit\t{number}\t{kernel}\t{target}\t{pairs}" for target in TARGETS]
    (folder / "kernels.yaml").write_text("\n".join(manifest) + "\n")
    (folder / "units.tsv").write_text("\n".join(files + units) + "\n")
    return len(units)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{write(arguments.folder.resolve())} units")
    return 0


if __name__ == "__main__":
    sys.exit(main())
