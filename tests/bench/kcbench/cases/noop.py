"""Builds with nothing to do."""

from functools import partial

from kcbench.case import Case, at_most, for_information
from kcbench.needs import MAKE, NINJA, STAND_IN


def rival_folder(lab, tool, count):
    """A folder of `count` units in which the rival has built all it can."""
    folder, _ = lab.built_units(count)
    lab.must([lab.tool(tool)], cwd=folder)
    return folder


def noop(lab, units, tool, edges):
    folder, store = lab.built_units(units)
    theirs = rival_folder(lab, tool, edges)
    env = lab.environment(store)
    program = lab.tool(tool)
    return lab.compare(lambda: lab.seconds([lab.kc, "build"], env, folder),
                       lambda: lab.seconds([program], env, theirs))


CASES = [Case(f"noop-{count}", f"unchanged `kc build`, {count:,} units",
              f"unchanged `ninja`, {count:,} edges, each with its source and its output", at_most(1.0),
              (NINJA, STAND_IN), partial(noop, units=count, tool="ninja", edges=count)) for count in (1000, 10000)]
CASES += [
    Case("noop-files", "unchanged `kc build`, 2,000 units",
         "unchanged `ninja` that looks at as many files: 1,000 edges", for_information,
         (NINJA, STAND_IN), partial(noop, units=2000, tool="ninja", edges=1000)),
    Case("noop-make", "unchanged `kc build`, 1,000 units", "unchanged `make`, 1,000 rules", for_information,
         (MAKE, STAND_IN), partial(noop, units=1000, tool="make", edges=1000)),
]
