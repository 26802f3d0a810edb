#!/usr/bin/env python3
"""Writes a manifest of many units, its sources for the stand-in compiler, and equal inputs for kc's rivals.

usage: make_units.py [--units N] [--kernels K] [--table] [--code BYTES] FOLDER

FOLDER then holds

    kernels.yaml       K kernels of N / K specializations each, for one target
    tables/*.csv       with --table: the specializations, instead of a matrix in the manifest
    sources/*.tilebc   a source a unit, as tests/support/fake_tileiras reads it
    build.ninja        an edge a unit, from its source to out/*.o
    Makefile           the same

The rivals' commands only make the file: what is compared is how fast a tool sees that nothing is to do. The same
arguments give the same bytes.
"""

import argparse
import pathlib
import random
import sys

HEADER = b"\x7fTileIR\x00" + bytes([13, 3, 0, 0])
INSTRUCTION = 16
# With these, objects of 64 KiB compress about as cubins of tileiras do: 3 to 4 times alone, 10 and more with siblings.
OPCODES = 48           # that kernels use, the first ones most
UNROLLED = 0.3         # of the phrases repeat an earlier one
PHRASE = (8, 32)       # instructions
ONE_CHANGE_IN = 24     # instructions: siblings differ that much


class Instructions:
    """Makes bytes that look like machine code: few opcodes, few registers, some constants, siblings much alike."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.opcodes = [self.random.randbytes(2) for _ in range(OPCODES)]
        self.weights = [1 / (rank + 1) for rank in range(OPCODES)]

    def some(self, count):
        rnd = self.random
        out = []
        for opcode in rnd.choices(self.opcodes, self.weights, k=count):
            registers = bytes(rnd.randrange(64) for _ in range(3))
            constant = rnd.randrange(0, 4096, 16).to_bytes(2, "little") if rnd.random() < 0.3 else b"\0\0"
            control = rnd.choice((b"\x00\xca\x0f\x00", b"\x00\xe2\x0f\x04", b"\x00\xc8\x1f\x00", b"\x00\xe4\x4f\x00"))
            out.append(opcode + registers + b"\0" + constant + b"\0\0\0\x07" + control)
        return out

    def kernel(self, size):
        self.base = []
        while len(self.base) < size // INSTRUCTION:
            length = self.random.randint(*PHRASE)
            if self.random.random() < UNROLLED and len(self.base) > length:
                start = self.random.randrange(len(self.base) - length)
                self.base += self.base[start:start + length]
            else:
                self.base += self.some(length)
        del self.base[size // INSTRUCTION:]

    def sibling(self):
        """The code of one specialization of the kernel begun last."""
        code = list(self.base)
        changed = len(code) // ONE_CHANGE_IN
        for place, instruction in zip(self.random.sample(range(len(code)), changed), self.some(changed)):
            code[place] = instruction
        return b"".join(code)


def kernel_lines(name, values, table, folder):
    if len(values) == 1:
        return [f"  - {{ name: {name}, sources: sources/{name}_0.tilebc, entry: kernel }}"]
    if table:
        (folder / "tables" / f"{name}.csv").write_text("V\n" + "".join(f"{value}\n" for value in values))
        source = f"table: tables/{name}.csv"
    else:
        source = f"matrix: {{ V: [{', '.join(map(str, values))}] }}"
    return [f"  - name: {name}", f"    sources: sources/{name}_{{V}}.tilebc", "    entry: kernel",
            f"    specializations: {{ {source} }}"]


def write(folder, units, kernels, table=False, code=0):
    """Returns the names of the sources, without folder and suffix, in the plan's order."""
    for name in ("sources", "out") + (("tables",) if table else ()):
        (folder / name).mkdir(parents=True, exist_ok=True)
    yaml = ["version: 1", "name: units", "targets: [sm_90]", "kernels:"]
    stems = []
    instructions = Instructions(units)
    for kernel in range(kernels):
        name = f"k{kernel:05}"
        values = range(units // kernels)
        yaml += kernel_lines(name, values, table, folder)
        if code:
            instructions.kernel(code)
        for value in values:
            stem = f"{name}_{value}"
            stems.append(stem)
            source = HEADER + b"\n@entry=kernel n=%d\n" % len(stems)
            if code:
                source += b"@code\n" + instructions.sibling()
            (folder / "sources" / f"{stem}.tilebc").write_bytes(source)
    (folder / "kernels.yaml").write_text("\n".join(yaml) + "\n")
    write_rivals(folder, stems)
    return stems


def write_rivals(folder, stems):
    ninja = ["rule compile", "  command = : > $out"]
    ninja += [f"build out/{stem}.o: compile sources/{stem}.tilebc" for stem in stems]
    (folder / "build.ninja").write_text("\n".join(ninja) + "\n")
    make = [".SUFFIXES:", "all: " + " ".join(f"out/{stem}.o" for stem in stems)]
    make += [f"out/{stem}.o: sources/{stem}.tilebc\n\t@: > $@" for stem in stems]
    (folder / "Makefile").write_text("\n".join(make) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=1000, metavar="N", help="units in all [1000]")
    parser.add_argument("--kernels", type=int, metavar="K", help="kernels, of which N is a multiple [N]")
    parser.add_argument("--table", action="store_true", help="specializations in CSV tables")
    parser.add_argument("--code", type=int, default=0, metavar="BYTES",
                        help="bytes of code that each unit compiles to; 0: what the stand-in makes [0]")
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    arguments = parser.parse_args()
    kernels = arguments.kernels or arguments.units
    if arguments.units < 1 or kernels < 1 or arguments.units % kernels != 0:
        parser.error("--units must be a positive multiple of --kernels")
    write(arguments.folder, arguments.units, kernels, arguments.table, arguments.code)


if __name__ == "__main__":
    sys.exit(main())
