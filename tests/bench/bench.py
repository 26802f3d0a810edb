#!/usr/bin/env python3
"""Measures kc against rivals in the same run: see docs/performance.md.

usage: bench.py [--build BUILD] [--runs N] [--json FILE] [--markdown] [CASE...]
       bench.py [--build BUILD] --list [CASE...]

BUILD is a release build folder, build/release when none is given. A CASE is a name, a group (what a name begins with,
up to its first `-`) or a pattern (`*-10000`); all cases when none is named. What a case needs and is not there is said,
and the case is not run. Exit codes: 0 all ran or said why not; 1 a case failed to run; 2 usage. A missed goal changes
nothing.
"""

import argparse
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the package lies in the source tree

from kcbench import report  # noqa: E402
from kcbench.case import Outcome  # noqa: E402
from kcbench.cases import ALL  # noqa: E402
from kcbench.lab import SOURCE, Lab, say  # noqa: E402
from kcbench.measure import CommandFailed  # noqa: E402

RUNS = 20


def chosen(patterns):
    """The cases that the patterns name, each once, in the order of ALL; and the patterns that name none."""
    def fits(case, pattern):
        return pattern in (case.name, case.group) or fnmatch.fnmatchcase(case.name, pattern)
    cases = [case for case in ALL if not patterns or any(fits(case, pattern) for pattern in patterns)]
    return cases, [pattern for pattern in patterns if not any(fits(case, pattern) for case in ALL)]


def missing(lab, case):
    return "; ".join(filter(None, (need.missing(lab) for need in case.needs)))


def run(lab, case):
    if why := missing(lab, case):
        return Outcome(case, not_run=why)
    try:
        return Outcome(case, measured=case.run(lab))
    except (CommandFailed, RuntimeError, OSError) as error:
        return Outcome(case, failed=str(error))


def version(command, pattern):
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError:
        return None
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(1) if found else None


def about(lab):
    """What the figures depend on besides the machine."""
    commands = {"kc": [lab.kc, "--version"], "tileiras": [lab.pinned("tileiras") or "/nonexistent", "--version"]}
    for name in ("ninja", "make", "ccache", "cc", "zstd", "find"):
        commands[name] = [name, "--version"]
    versions = {name: version(command, r"V?(\d+\.\d+(?:\.\d+)?)") for name, command in commands.items()}
    return {"cpus": lab.cpus, "runs": lab.runs, "versions": {name: v for name, v in versions.items() if v}}


def warn_of_noise(lab):
    cache = lab.build / "CMakeCache.txt"
    settings = cache.read_text() if cache.exists() else ""
    if "CMAKE_BUILD_TYPE:STRING=Release" not in settings or re.search(r"KC_SANITIZE:STRING=\w", settings):
        say(f"{lab.build} is not a release build: its figures say nothing about kc")
    if os.getloadavg()[0] > lab.cpus / 4:
        say(f"this machine is busy (load {os.getloadavg()[0]:.1f}): ratios of short commands will vary")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release",
                        help="a release build folder [build/release]")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"pairs of runs a case; long cases make fewer [{RUNS}]")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write all figures there")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/performance.md")
    parser.add_argument("--list", action="store_true", help="say what there is, run nothing")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    cases, unknown = chosen(arguments.cases)
    if unknown:
        parser.error(f"no case {unknown[0]}; there are {', '.join(case.name for case in ALL)}")
    if arguments.runs < 1:
        parser.error("--runs must be at least 1")
    if not arguments.list and not (arguments.build / "bin" / "kc").exists():
        parser.error(f"there is no kc in {arguments.build}/bin")
    with tempfile.TemporaryDirectory(prefix="kc-bench-") as scratch:
        lab = Lab(arguments.build, arguments.runs, scratch)
        if arguments.list:
            print(report.listing(cases, lambda case: missing(lab, case)))
            return 0
        warn_of_noise(lab)
        facts = about(lab)
        outcomes = []
        for case in cases:
            outcomes.append(run(lab, case))
            print(report.text_line(outcomes[-1]), flush=True, file=sys.stderr if arguments.markdown else sys.stdout)
            if arguments.json:  # after each case: an interrupted run keeps what it has
                arguments.json.write_text(report.as_json(outcomes, facts))
        if arguments.markdown:
            print(report.markdown(outcomes, facts))
        os.chdir("/")  # out of the folder that goes now
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
