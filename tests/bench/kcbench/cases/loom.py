"""Compiling Loom kernels in process, with the real code generator (tests/support/loom_bridge) and nothing stored."""

import hashlib
import json
import sys

import make_loom_units
from kcbench.case import Case, at_least, at_most
from kcbench.lab import SOURCE
from kcbench.needs import LOOM, LOOM_BARE, LOOM_CORPUS, TWO_CPUS, XARGS

RUNS = 5  # of some twenty seconds
CORPUS_TARGETS = ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
                  "gfx11-generic", "gfx1200", "gfx1201")


class Workload:
    """A folder with kernels.yaml and units.tsv: the same compiles for kc and for loom_bare."""

    def __init__(self, lab, name, write):
        self.lab = lab
        self.folder = lab.folder(name)
        self.count = write(self.folder)
        self.env = lab.environment(KC_LOOM_LIBRARY=lab.loom, KC_STORE_MODE="off")
        self.bundle = self.folder / "made.kcb"
        self.bare = [lab.build / "bin" / "loom_bare", lab.loom, self.folder / "units.tsv"]

    def kc(self, jobs=1):
        self.bundle.unlink(missing_ok=True)
        command = [self.lab.kc, "build", "-f", self.folder / "kernels.yaml", "-o", self.bundle, f"-j{jobs}"]
        return self.lab.seconds(command, self.env, self.folder)

    def by_hand(self):
        return self.lab.seconds(self.bare, self.env)

    def processes(self):
        command = f"seq 0 {self.count - 1} | exec xargs -P1 -I{{}} '{self.bare[0]}' '{self.bare[1]}' '{self.bare[2]}' --only {{}}"
        return self.lab.seconds(["/bin/sh", "-c", command], self.env)

    def check(self):
        """kc and loom_bare must have made the same code, else they did not do the same work."""
        objects = self.lab.folder("bare-objects")
        self.lab.must([*self.bare, "--out", objects])
        made = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in objects.iterdir())
        shown = self.lab.must([self.lab.kc, "show", self.bundle, "--format=json"]).splitlines()
        packed = sorted(event["code_digest"] for event in map(json.loads, shown) if event["event"] == "record")
        if made != packed:
            raise RuntimeError(f"kc packed {len(packed)} objects, by hand {len(made)} were made, and they differ")


def write_corpus(lab, folder):
    """The kernels of the corpus, each for the targets that it fits; the number of units."""
    sys.path.insert(0, str(SOURCE / "tests" / "support" / "loom_bridge"))
    import corpus as loom_corpus  # pylint: disable=import-outside-toplevel

    manifest = loom_corpus.lay_out(lab.loom_wheel, folder, CORPUS_TARGETS)
    config = [line.strip().replace(": ", "=") for line in manifest.read_text().splitlines() if line.startswith("    ggml.")
              or line.startswith("    qwen38.")]
    names = (folder / "sources.txt").read_text().split()
    lines = [f"file\t0\troot\t{name}\t{folder / name}" for name in names]
    env = lab.environment(KC_LOOM_LIBRARY=lab.loom, KC_STORE_MODE="off")
    built = lab.must([lab.kc, "build", "-f", manifest, "-o", folder / "first.kcb", "--format=json"], env, folder)
    units = [event for event in map(json.loads, built.splitlines()) if event.get("state") == "compiled"]
    # A kernel is named by its entry.
    lines += ["\t".join(["unit", "0", unit["kernel"], unit["target"], *config]) for unit in units]
    (folder / "units.tsv").write_text("\n".join(lines) + "\n")
    return len(units)


def small(lab):
    work = Workload(lab, "loom-small", make_loom_units.write)
    measured = lab.compare(work.kc, work.by_hand)
    work.check()
    return measured


def corpus(lab):
    work = Workload(lab, "loom-corpus", lambda folder: write_corpus(lab, folder))
    measured = lab.compare(work.kc, work.by_hand, at_most=RUNS, warm_up=False)
    work.check()
    return measured


def processes(lab):
    work = Workload(lab, "loom-processes", make_loom_units.write)
    return lab.compare(work.kc, work.processes, at_most=RUNS)


def slots(lab):
    work = Workload(lab, "loom-slots", make_loom_units.write)
    return lab.compare(lambda: work.kc(2), work.kc)


def corpus_slots(lab):
    work = Workload(lab, "loom-corpus-slots", lambda folder: write_corpus(lab, folder))
    return lab.compare(lambda: work.kc(2), work.kc, at_most=RUNS, warm_up=False)


BARE = "the bare C API sequence, same compiles, one thread"
CASES = [
    Case("loom-small", "`kc build -j1` of 9,412 small Loom units, no store", BARE, at_most(1.1), (LOOM, LOOM_BARE), small),
    Case("loom-corpus", "`kc build -j1` of 1,055 units of the corpus, no store", BARE, at_most(1.1), (LOOM, LOOM_BARE, LOOM_CORPUS), corpus),
    Case("loom-processes", "`kc build -j1` of 9,412 small Loom units, no store",
         "the same compiles, a process each", at_least(5), (LOOM, LOOM_BARE, XARGS), processes),
    Case("loom-slots", "`kc build -j2` of 9,412 small Loom units, no store",
         "the same with `-j1` (the ratio is the speed-up)", at_least(1.9), (LOOM, TWO_CPUS), slots),
    Case("loom-corpus-slots", "`kc build -j2` of 1,055 units of the corpus, no store",
         "the same with `-j1` (the ratio is the speed-up)", at_least(1.9), (LOOM, LOOM_CORPUS, TWO_CPUS), corpus_slots),
]
