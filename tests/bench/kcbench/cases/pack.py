"""Packing many code objects."""

import json

from kcbench.case import Case, at_least, for_information
from kcbench.needs import SPACE, STAND_IN, ZSTD

UNITS, KERNELS, CODE = 1000, 100, 64 << 10  # 66 MB in all


def inputs(lab):
    """Folder and store of the built units, and their code objects in one file, siblings together as in the bundle."""
    folder, store = lab.built_units(UNITS, KERNELS, code=CODE)
    together = lab.scratch / "pack-objects"
    if not together.exists():
        objects = lab.folder("pack-extracted")
        lab.must([lab.kc, "extract", folder / "units.kcb", "--all", objects])
        with together.open("wb") as out:
            for path in sorted(objects.rglob("*.cubin")):
                out.write(path.read_bytes())
    return folder, store, together


def zstd_seconds(lab, together):
    command = [lab.tool("zstd"), "-q", "-f", f"-T{lab.cpus}", "-3", together, "-o", lab.scratch / "pack.zst"]
    return lab.seconds(command, lab.environment())


def pack(lab):
    """Compressing and writing alone, as kc tells it: zstd is given the bytes too, already in one file."""
    folder, store, together = inputs(lab)

    def ours():
        (folder / "units.kcb").unlink()
        said = lab.must([lab.kc, "pack", "--format=json"], lab.environment(store), folder)
        return json.loads(said.splitlines()[-1])["pack_seconds"]

    return lab.compare(ours, lambda: zstd_seconds(lab, together))


def whole(lab):
    folder, store, together = inputs(lab)

    def ours():
        (folder / "units.kcb").unlink()
        return lab.seconds([lab.kc, "pack"], lab.environment(store), folder)

    return lab.compare(ours, lambda: zstd_seconds(lab, together))


def read(lab):
    _, store, together = inputs(lab)
    return lab.compare(lambda: lab.seconds([lab.kc, "store", "verify"], lab.environment(store)),
                       lambda: zstd_seconds(lab, together))


CASES = [
    Case("pack", f"packing {UNITS:,} code objects of 64 KiB: compressing, digests and writing, of `kc pack`",
         "`zstd -3`, one thread a CPU, over the same bytes", at_least(0.9), (STAND_IN, ZSTD, SPACE), pack),
    Case("pack-whole", "the whole of that `kc pack`: plan, entries read and verified, packing, fsync",
         "the same `zstd -3`", for_information, (STAND_IN, ZSTD, SPACE), whole),
    Case("pack-read", "`kc store verify`: reads and checks the same entries", "the same `zstd -3`", for_information,
         (STAND_IN, ZSTD, SPACE), read),
]
