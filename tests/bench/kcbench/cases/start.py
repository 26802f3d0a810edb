"""Starting up."""

from kcbench.case import Case, at_most
from kcbench.needs import NINJA


def start(lab):
    env = lab.environment()
    ninja = lab.tool("ninja")
    return lab.compare(lambda: lab.seconds([lab.kc, "--version"], env),
                       lambda: lab.seconds([ninja, "--version"], env), times=5)


CASES = [Case("start", "`kc --version`", "`ninja --version`", at_most(1.5), (NINJA,), start)]
