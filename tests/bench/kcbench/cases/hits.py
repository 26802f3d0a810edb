"""Builds that find everything in the store and must pack."""

import functools
import shutil

from kcbench.case import Case, at_most, for_information
from kcbench.needs import CC, CCACHE, STAND_IN, XARGS

UNITS = 1000


def kc_seconds(lab):
    folder, store = lab.built_units(UNITS)
    # Without state and bundle kc has to plan, read each source and each entry, and pack.
    shutil.rmtree(store / "v1" / "state")
    (folder / "units.kcb").unlink()
    return lab.seconds([lab.kc, "build"], lab.environment(store), folder)


class Ccache:
    """As many C files, all in a ccache as it is after installation."""

    def __init__(self, lab):
        self.lab = lab
        self.folder = lab.folder("ccache-files")
        self.names = [f"k{i:04}" for i in range(UNITS)]
        for i, name in enumerate(self.names):
            (self.folder / f"{name}.c").write_text(
                f"float {name}(float a, float b) {{ return a * b + {i}.0f; }}\n")
        self.env = lab.environment(CCACHE_DIR=lab.folder("ccache-store"))
        self.ccache, self.cc = lab.tool("ccache"), lab.tool("cc")
        jobs = self.folder / "jobs"
        jobs.write_text("".join(f"-c {name}.c -o {name}.o\n" for name in self.names))
        self.all_at_once = ["/bin/sh", "-c", f"exec xargs -P{lab.cpus} -L1 {self.ccache} {self.cc} < {jobs}"]
        lab.must(self.all_at_once, self.env, self.folder)
        self.hits = self.direct_hits()

    def direct_hits(self):
        stats = self.lab.must([self.ccache, "--print-stats"], self.env).decode()
        return dict(line.split("\t")[:2] for line in stats.splitlines()).get("direct_cache_hit", "0")

    def in_turn(self):
        return sum(self.lab.seconds([self.ccache, self.cc, "-c", f"{name}.c", "-o", f"{name}.o"], self.env, self.folder)
                   for name in self.names)

    def together(self):
        return self.lab.seconds(self.all_at_once, self.env, self.folder)

    def check(self, runs):
        """All that was measured must have been direct hits, else the comparison is with a compiler."""
        made = int(self.direct_hits()) - int(self.hits)
        if made != runs * UNITS:
            raise RuntimeError(f"ccache made {made} direct hits in {runs} runs of {UNITS}")


def hits(lab, rival):
    ccache = Ccache(lab)
    call = functools.partial(rival, ccache)
    measured = lab.compare(lambda: kc_seconds(lab), call, at_most=10)
    ccache.check(len(measured.rival) + 1)
    return measured


CASES = [
    Case("hits-1000", "`kc build`, 1,000 hits, no state, packs", "1,000 `ccache cc -c`, direct hits, one after another",
         at_most(1 / 20), (CCACHE, CC, XARGS, STAND_IN), functools.partial(hits, rival=Ccache.in_turn)),
    Case("hits-parallel", "`kc build`, 1,000 hits, no state, packs", "the same by `xargs -P`, one a CPU",
         for_information, (CCACHE, CC, XARGS, STAND_IN), functools.partial(hits, rival=Ccache.together)),
]
