"""Planning from nothing: no store, no state, nothing built."""

from functools import partial

from kcbench.case import Case, for_information
from kcbench.needs import NINJA, STAND_IN


def plan_seconds(lab, folder):
    return lab.seconds([lab.kc, "plan"], lab.environment(lab.scratch / "no-store"), folder)


def against_ninja(lab, units, kernels):
    folder = lab.units(units, kernels)
    ninja = lab.tool("ninja")
    return lab.compare(lambda: plan_seconds(lab, folder),
                       lambda: lab.seconds([ninja, "-n"], lab.environment(), folder))


def table_against_matrix(lab):
    table = lab.units(20000, 1, table=True)
    matrix = lab.units(20000, 1)
    return lab.compare(lambda: plan_seconds(lab, table), lambda: plan_seconds(lab, matrix))


CASES = [Case(name, f"`kc plan`, {units:,} units of {kernels:,} kernels", f"`ninja -n`, {units:,} edges, nothing built",
              for_information, (NINJA, STAND_IN), partial(against_ninja, units=units, kernels=kernels))
         for name, units, kernels in (("plan-1000", 1000, 1000), ("plan-10000", 10000, 10000),
                                      ("plan-matrix", 10000, 100))]
CASES.append(Case("plan-table", "`kc plan`, a table of 20,000 rows", "`kc plan`, the same units from a matrix",
                  for_information, (STAND_IN,), table_against_matrix))
