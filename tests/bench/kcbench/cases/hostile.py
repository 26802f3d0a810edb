"""Manifests that ask for too much are refused at once and in little memory."""

from functools import partial

from kcbench.case import Case, Measured, at_most
from kcbench.measure import CommandFailed

BILLION_LIMIT = 0.050
MEMORY_LIMIT = 64_000_000
BOMB = 4 << 20
USAGE = 2  # kc's exit code for a bad manifest
GROUP = 60  # levels of a group: fewer than a manifest may have


def billion():
    values = ", ".join(map(str, range(1000)))
    return ("version: 1\ntargets: [sm_90]\nkernels:\n  - name: k\n    sources: 'k_{A}_{B}_{C}.tilebc'\n"
            f"    specializations:\n      matrix: {{ A: [{values}], B: [{values}], C: [{values}] }}\n")


def repeated(part):
    head = "version: 1\nx-bomb:\n"
    return head + part * ((BOMB - len(head)) // len(part))


BOMBS = {
    "deep": ("4 MiB of `[`", lambda: repeated(" [")),
    "flow": ("4 MiB of lists in lists, 60 levels each", lambda: repeated("- " + "[" * GROUP + "]" * GROUP + "\n")),
    "block": ("the same in block style", lambda: repeated("- " * GROUP + "x\n")),
    "aliases": ("lists of aliases of lists that stand for 10^18 nodes", lambda: "version: 1\nx-a0: &a0 [x]\n" + "".join(
        f"x-a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 19))),
}


def refuse(lab, text, says, measure):
    """Runs `measure` of a command that must refuse the manifest, for what it is meant to be refused for."""
    folder = lab.folder("hostile")
    (folder / "kernels.yaml").write_text(text)
    figure = measure([lab.kc, "plan"], lab.environment(), folder, USAGE)
    said = lab.log.read_text(errors="replace")
    if says not in said:
        raise CommandFailed(f"the manifest was refused, but not for {says!r}: {said.strip()[:500]}")
    return figure


def matrix_time(lab):
    figures = [refuse(lab, billion(), "1000000000", lab.seconds) for _ in range(lab.runs)]
    return Measured(figures, [BILLION_LIMIT] * len(figures))


def memory(lab, make, says):
    return Measured([refuse(lab, make(), says, lab.peak_memory)], [MEMORY_LIMIT], "B")


CASES = [
    Case("hostile-matrix", "refusing a matrix of 10^9 units", "50 ms", at_most(1.0), (), matrix_time),
    Case("hostile-matrix-mem", "peak memory of refusing it", "64 MB", at_most(1.0), (),
         partial(memory, make=billion, says="1000000000")),
]
CASES += [Case(f"hostile-{name}", f"peak memory of refusing {what}", "64 MB", at_most(1.0), (),
               partial(memory, make=make, says="kernels.yaml:")) for name, (what, make) in BOMBS.items()]
