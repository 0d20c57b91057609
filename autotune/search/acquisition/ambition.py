"""How much better than the best a try is to be: much at first, next to nothing in the end.

Early on a model knows little and is too sure of it, so that a search that asks for any improvement polishes
the first good region it meets. All improvements are in standard deviations of the targets.
"""

from __future__ import annotations

import math

from autotune.search.contract import Problem
from autotune.search.models.features import Features, is_long_range
from autotune.search.models.gaussian_process import Floats

AMBITION = 30.0
"""The improvement asked for falls as this over the number of observations."""
SMALL = 4000
"""Configurations of a space below which it is in proportion less: there the best of what was seen is soon the
best there is, and to look for something quite different takes the tries that would find it."""
LEVELS = 10
"""As so many values a continuous knob counts for that, beside others: that far its tenths are alike. Where
all knobs are continuous, or as good as that, nothing beyond an improvement is asked for: a smooth function
shows by its slopes where to look, and who asks for much there is sent to the corners."""
MODEST = 0.1
"""The part of it that is left for trainings that may be stopped. What a step takes spreads over a factor of
ten among them, and beside a large ambition no difference in cost weighs anything: searches spent most of
their time on the smallest batches, which are as good as others and ten times as slow."""
KNOWN = 100.0
"""As so many observations count earlier studies that are fully believed."""
PATIENCE = 6
"""Tries of which none did as well as the best is expected to do, after which one try in ..."""
WAY_OUT = 4
"""... so many is a way out: on a plateau each next try looks as good as the last, and a model that is wrong
about where the best region lies does not find out by itself. Such a try asks for as much as ..."""
FRESH = 25
"""... after so many observations, of which there are mostly more by then. A random one, which was the way out
before, mostly goes where the model rightly knows that nothing is to be had."""
REACH = 3.0
"""Standard deviations that an improvement may lie beyond what is expected of a candidate, for it to be asked
for beside ranges and bounds that are measured. Farther out the logarithms of gains differ by hundreds, beside
which no probability that bounds hold weighs anything, and what comes first is what least is known of."""
LAST = 1 / 8
"""The part of all tries, at their end, that ask for no more than an improvement: a discovery could no longer
be followed up, and what is next to the best has waited."""


class Ambition:
    """The improvement that is asked for in one problem, over the course of its search."""

    def __init__(self, problem: Problem, features: Features) -> None:
        self._budget = problem.budget
        self._most = _in_space(features)
        self._ranges = any(is_long_range(knob) for knob in features.space.knobs)

    def after(self, observations: int) -> float:
        """The improvement to ask for after so many, whatever else is known."""
        return self._most / observations

    def none_left(self, taken: int, lawful: bool) -> bool:
        """Whether no more than an improvement is asked for once so many tries are ``taken``.

        So where the goal is ``lawful`` (:mod:`~autotune.search.models.power_law`): it is known what is to be
        gained.
        """
        return not self._most or lawful or self._ending(taken)

    def asked(self, observations: int, trust: float, stuck: bool, stoppable: bool) -> float:
        """The improvement to ask for while some is.

        ``trust`` in earlier studies, from 0 to 1, counts as further observations; ``stoppable``: trials are
        trainings that may end early.
        """
        known = FRESH if stuck else observations + KNOWN * trust
        return self._most * (MODEST if stoppable else 1.0) / known

    def within_reach(self, asked: float, ahead: Floats, spread: Floats) -> float:
        """As much of that as some candidate may come to, in a space with ranges.

        How far candidates are expected to be ``ahead`` of the best, and how surely; both of shape (n,).
        """
        if not self._ranges or not len(ahead):
            return asked
        return min(asked, max(0.0, float((ahead + REACH * spread).max())))

    def stuck(self, since: int, taken: int, pending: int) -> bool:
        """Whether it is time for a way out: ``since`` so many tries none was as good as the best.

        What is in flight is no failure yet, but takes its turn.
        """
        return since >= PATIENCE and (since + pending) % WAY_OUT == 0 and not self._ending(taken)

    def _ending(self, taken: int) -> bool:
        """Whether the next try is one of the last there may be."""
        return self._budget is not None and taken >= (1.0 - LAST) * self._budget


def _in_space(features: Features) -> float:
    """The improvement to ask for in a space, times the number of observations."""
    ranges = [knob for knob in features.space.knobs if is_long_range(knob)]
    if len(ranges) == len(features.space.knobs):
        return 0.0
    listed = features.space.feasible.size
    if not listed:
        return AMBITION
    # In logarithms: the exact count may be larger than any float.
    counts = [len(knob.cells[0].values) if knob.cells else 1 for knob in ranges]
    size = math.log(listed) + sum(math.log(LEVELS / count) for count in counts)
    return AMBITION * math.exp(min(0.0, size - math.log(SMALL)))
