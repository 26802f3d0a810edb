"""Opening a bundle and getting one kernel out of it with libkcload. No GPU: what a driver adds is the same on both sides."""

from kcbench.case import Case, Measured, at_most
from kcbench.needs import LOADER_BENCH, STAND_IN

UNITS, KERNELS, CODE = 10_000, 100, 16 << 10


def signed(lab):
    """The built units' bundle and the key that signed it."""
    folder, _ = lab.built_units(UNITS, KERNELS, code=CODE)
    key = folder / "bench.pub"
    if not key.exists():
        lab.must([lab.kc, "keygen", folder / "bench"])
        lab.must([lab.kc, "sign", folder / "units.kcb", "--key", folder / "bench.key"])
    return folder / "units.kcb", key


def pairs(lab, what):
    said = lab.must([lab.build / "bin" / "loader_bench", what, *signed(lab), str(lab.runs)])
    figures = [tuple(map(float, line.split())) for line in said.splitlines()]
    return Measured([ours for ours, _ in figures], [rival for _, rival in figures])


CASES = [
    Case("loader-open", f"`kc_open` of a signed bundle of {UNITS:,} entries",
         "pread and SHA-256 of its header and page table, one Ed25519 check", at_most(1.2), (STAND_IN, LOADER_BENCH),
         lambda lab: pairs(lab, "open")),
    Case("loader-find", f"`kc_find` and `kc_entry_read` of one of {UNITS:,} entries, the bundle just opened",
         "pread, SHA-256 and ZSTD_decompress of the same frame, SHA-256 of the code object", at_most(1.2),
         (STAND_IN, LOADER_BENCH), lambda lab: pairs(lab, "find")),
]
