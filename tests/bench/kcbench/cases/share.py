"""Two builds of one manifest, started together over one empty store: they share the work, not the waiting."""

import make_loom_units
import make_units
from kcbench.case import Case, at_most
from kcbench.lab import DEMO
from kcbench.needs import LOOM, STAND_IN, TILEIRAS, TWO_CPUS

SHARED = at_most(1.15)
RUNS = 5  # of some seconds
DEMO_RUNS = 3  # of a minute or so
WAITING_UNITS = 60
WAIT_MS = 100


class Builds:
    """The same build alone and twice at once, each time with an empty store."""

    def __init__(self, lab, name, manifest, compiler):
        self.lab = lab
        self.manifest = manifest
        self.folder = lab.folder(name)
        self.env = lab.environment(self.folder / "store") | compiler

    def command(self, number, jobs):
        return f"'{self.lab.kc}' build -f '{self.manifest}' -o '{self.folder}/{number}.kcb' -j{jobs}"

    def seconds(self, script):
        self.lab.folder(f"{self.folder.name}/store")
        for bundle in self.folder.glob("*.kcb"):
            bundle.unlink()
        return self.lab.seconds(["/bin/sh", "-c", script], self.env)

    def alone(self, jobs):
        return self.seconds("exec " + self.command(0, jobs))

    def together(self, jobs):
        """Until both have ended."""
        took = self.seconds(f"{self.command(0, jobs)} & first=$!; {self.command(1, jobs)} & second=$!\n"
                            "wait $first && wait $second")
        if (self.folder / "0.kcb").read_bytes() != (self.folder / "1.kcb").read_bytes():
            raise RuntimeError("the two builds made different bundles")
        return took


def write_waiting(folder):
    """Units whose compiles take their time and no CPU."""
    lines = ["version: 1", "targets: [sm_90]", "kernels:"]
    for i in range(WAITING_UNITS):
        (folder / f"k{i}.tilebc").write_bytes(make_units.HEADER + f"\n@entry=kernel n={i} @sleep={WAIT_MS}\n".encode())
        lines.append(f"  - {{ name: k{i}, sources: k{i}.tilebc, entry: kernel }}")
    (folder / "kernels.yaml").write_text("\n".join(lines) + "\n")


def wait(lab):
    sources = lab.folder("share-wait-units")
    write_waiting(sources)
    builds = Builds(lab, "share-wait", sources / "kernels.yaml", {})
    return lab.compare(lambda: builds.together(1), lambda: builds.alone(2), at_most=RUNS, warm_up=False)


def loom(lab):
    sources = lab.folder("share-loom-units")
    make_loom_units.write(sources)
    builds = Builds(lab, "share-loom", sources / "kernels.yaml", {"KC_LOOM_LIBRARY": str(lab.loom)})
    return lab.compare(lambda: builds.together(2), lambda: builds.alone(2), at_most=RUNS, warm_up=False)


def demo(lab):
    builds = Builds(lab, "share-demo", DEMO, {"KC_TILEIRAS": str(lab.pinned("tileiras"))})
    return lab.compare(lambda: builds.together(2), lambda: builds.alone(2), at_most=DEMO_RUNS, warm_up=False)


CASES = [
    Case("share-wait", f"two `kc build -j1` at once, {WAITING_UNITS} units of {WAIT_MS} ms without CPU, one empty store",
         "one `kc build -j2`, as many slots", SHARED, (STAND_IN,), wait),
    Case("share-loom", "two `kc build -j2` at once of 9,412 small Loom units, one empty store", "one `kc build -j2`", SHARED,
         (LOOM, STAND_IN, TWO_CPUS), loom),
    Case("share-demo", "two `kc build -j2` at once of the demo, one empty store", "one `kc build -j2`", SHARED,
         (TILEIRAS, STAND_IN, TWO_CPUS), demo),
]
