"""What a case is: its rival, its goal, what it needs, and what a run of it gives."""

import dataclasses
import statistics
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Goal:
    """A bound on the ratio. `at most`: kc's figure over the rival's. `at least`: a speed, so the rival's over kc's."""
    is_speed: bool
    bound: float | None  # None: the ratio is for information

    def text(self):
        return "-" if self.bound is None else f"{'>=' if self.is_speed else '<='} {round(self.bound, 3):g}"

    def ratio(self, ours, rival):
        return rival / ours if self.is_speed else ours / rival

    def is_reached(self, ratio):
        if self.bound is None:
            return None
        return ratio >= self.bound if self.is_speed else ratio <= self.bound


def at_most(bound):
    return Goal(False, bound)


def at_least(bound):
    return Goal(True, bound)


for_information = Goal(False, None)


@dataclasses.dataclass
class Measured:
    """Figures of kc and its rival: pairs of runs that followed each other, or one of each where nothing varies."""
    ours: list[float]
    rival: list[float]
    unit: str = "s"  # or "B"

    def ratios(self, goal):
        return [goal.ratio(a, b) for a, b in zip(self.ours, self.rival)]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    ours: str   # what kc does
    rival: str  # what is done instead, or the bound that is set
    goal: Goal
    needs: tuple
    run: Callable  # of a Lab, gives Measured

    @property
    def group(self):
        return self.name.partition("-")[0]


@dataclasses.dataclass
class Outcome:
    case: Case
    measured: Measured | None = None
    not_run: str = ""  # why
    failed: str = ""   # how

    @property
    def ratio(self):
        """The median of the pairs' ratios, not the ratio of the medians: what slowed both runs of a pair cancels."""
        return statistics.median(self.measured.ratios(self.case.goal))

    @property
    def is_reached(self):
        return self.case.goal.is_reached(self.ratio)
