"""kc's peak memory against what it may take: 64 MB and 2 KB a unit."""

import shutil
from functools import partial

from kcbench.case import Case, Measured, at_most
from kcbench.needs import STAND_IN

BASE, EACH = 64_000_000, 2_000


def allowed(units):
    return BASE + EACH * units


def peaks(lab, units, prepare, command, store, folder):
    """Of three runs, since threads make the peak vary a little."""
    figures = []
    for _ in range(min(lab.runs, 3)):
        prepare()
        figures.append(lab.peak_memory([lab.kc, *command], lab.environment(store), folder))
    return Measured(figures, [allowed(units)] * len(figures), "B")


def nothing():
    pass


def plan(lab, units, kernels, **options):
    return peaks(lab, units, nothing, ["plan"], lab.scratch / "no-store", lab.units(units, kernels, **options))


def noop(lab, units):
    folder, store = lab.built_units(units)
    return peaks(lab, units, nothing, ["build"], store, folder)


def hits(lab, units):
    folder, store = lab.built_units(units)

    def prepare():
        shutil.rmtree(store / "v1" / "state")
        (folder / "units.kcb").unlink()

    return peaks(lab, units, prepare, ["build"], store, folder)


def case(name, ours, units, run):
    return Case(name, f"peak memory of {ours}", f"64 MB + 2 KB a unit = {allowed(units) // 1_000_000} MB", at_most(1.0),
                (STAND_IN,), run)


CASES = [
    case("memory-plan", "`kc plan`, 10,000 units", 10000, partial(plan, units=10000, kernels=10000)),
    case("memory-table", "`kc plan`, a table of 20,000 rows", 20000, partial(plan, units=20000, kernels=1, table=True)),
    case("memory-noop", "an unchanged `kc build`, 10,000 units", 10000, partial(noop, units=10000)),
    case("memory-hits", "`kc build`, 10,000 hits, no state, packs", 10000, partial(hits, units=10000)),
]
