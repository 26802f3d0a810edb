"""Compiling: the demo with the pinned tileiras, from an empty store."""

import hashlib
import json
import re

from kcbench.case import Case, at_least, at_most
from kcbench.lab import DEMO
from kcbench.needs import TILEIRAS, TWO_CPUS, XARGS

SLOTS = 2
RUNS = 3  # of a minute or so
LEVEL = re.compile(r"- name: (\S+)|options: \{ opt: (\d)")


def levels():
    """The optimization level of each of the demo's kernels; 3 where the manifest does not say."""
    found, kernel = {}, ""
    for name, level in LEVEL.findall(DEMO.read_text()):
        kernel = name or kernel
        found[kernel] = level or "3"
    return found


class ByHand:
    """The compiles of the demo as somebody without kc would run them."""

    def __init__(self, lab):
        self.lab = lab
        self.output = lab.folder("by-hand")
        program, optimize = lab.pinned("tileiras"), levels()
        plan = lab.must([lab.kc, "plan", "-f", DEMO, "--format=json"], lab.demo_environment())
        jobs, self.units = [], {}
        for event in map(json.loads, plan.splitlines()):
            if event["event"] != "unit":
                continue
            code = self.output / f"{len(jobs)}.cubin"
            self.units[event["unit"]] = code
            jobs.append(f"\"{DEMO.parent / event['sources'][0]}\" -o {code} --gpu-name {event['target']}"
                        f" -O{optimize[event['kernel']]}\n")
        (lab.scratch / "jobs").write_text("".join(jobs))
        self.env = lab.environment(PATH=f"{program.parent}:/usr/bin:/bin")
        self.command = ["/bin/sh", "-c", f"exec xargs -P{SLOTS} -L1 '{program}' < {lab.scratch / 'jobs'}"]

    def seconds(self):
        return self.lab.seconds(self.command, self.env)

    def check(self):
        """kc and xargs must have made the same code, else they did not do the same work."""
        shown = self.lab.must([self.lab.kc, "show", self.lab.demo_bundle(), "--format=json"])
        for record in map(json.loads, shown.splitlines()):
            if record["event"] != "record":
                continue
            made = hashlib.sha256(self.units.pop(record["unit"]).read_bytes()).hexdigest()
            if made != record["code_digest"]:
                raise RuntimeError(f"{record['unit']}: kc and tileiras by hand made different code")
        if self.units:
            raise RuntimeError(f"not in the bundle: {', '.join(self.units)}")


def xargs(lab):
    by_hand = ByHand(lab)
    lab.demo_bundle()  # warms up: the compilers' files are in memory
    measured = lab.compare(lambda: lab.build_demo(SLOTS), by_hand.seconds, at_most=RUNS, warm_up=False)
    by_hand.check()
    return measured


def slots(lab):
    lab.demo_bundle()
    return lab.compare(lambda: lab.build_demo(SLOTS), lambda: lab.build_demo(1), at_most=RUNS, warm_up=False)


CASES = [
    Case("miss-xargs", f"`kc build -j{SLOTS}` of the demo, empty store",
         f"`xargs -P{SLOTS} tileiras`, the same compiles", at_most(1.03), (TILEIRAS, XARGS, TWO_CPUS), xargs),
    Case("miss-slots", f"`kc build -j{SLOTS}` of the demo, empty store",
         "the same with `-j1` (the ratio is the speed-up)", at_least(1.9), (TILEIRAS, TWO_CPUS), slots),
]
