"""By how much a try should beat the best: by much at first, by next to nothing in the end.

Early on a model knows little and is too sure of it. A search that is content with any improvement then
polishes the first good region that it meets. All improvements are in standard deviations of the targets.
"""

from __future__ import annotations

import math

from autotune.search.contract import Problem
from autotune.search.models.arrays import Floats
from autotune.search.models.features import Features, is_long_range, only_ranges

AMBITION = 30.0
"""The improvement asked for is this, divided by the number of observations."""
SMALL = 4000
"""In a space of fewer configurations it is in proportion less: there the best seen so far is soon the best
there is, and looking for something quite different uses up the tries that would find it."""
LEVELS = 10
"""A continuous knob counts as so many values in the size of a space, since about so many differ from each
other. Where all knobs are continuous, or as good as that, any improvement will do: a smooth function shows by
its slopes where to look, and asking for much leads to the corners."""
MODEST = 0.1
"""For trainings that may be stopped, this part of it is asked for. The time of a step differs among them by
up to ten times, and beside a large ambition no difference in cost weighs anything: searches spent most of
their time on the smallest batches, which are as good as others and ten times as slow."""
KNOWN = 100.0
"""Earlier studies that are fully believed count as so many observations."""
PATIENCE = 6
"""After so many tries without one as good as the best is expected to be, a search is on a plateau."""
WAY_OUT = 4
"""There, one try in so many is a way out. Each next try on a plateau looks as good as the last, and a model
that is wrong about where the best region lies does not find out by itself."""
FRESH = 25
"""A way out asks for as large an improvement as after so many observations; mostly there are more by then. (A
random try would mostly go where the model rightly knows that nothing is to be had.)"""
REACH = 3.0
"""With ranges and measured bounds, no more is asked for than some candidate may reach: what is expected of it
and so many standard deviations. Farther out the logarithms of gains differ by hundreds, beside which the
probability that bounds hold weighs nothing, and what is least known comes first."""
LAST = 1 / 8
"""In this last part of the tries, or of the time, any improvement will do: a discovery could no longer be
followed up, and what is next to the best has waited."""


def is_ending(problem: Problem, taken: int, passed: float) -> bool:
    """Whether the next try is in the :data:`LAST` part, after so many, in ``passed`` seconds."""
    late = problem.seconds is not None and passed >= (1.0 - LAST) * problem.seconds
    return late or (problem.budget is not None and taken >= (1.0 - LAST) * problem.budget)


class Ambition:
    """The improvement that is asked for in one problem, over the course of its search."""

    def __init__(self, features: Features) -> None:
        self._most = _in_space(features)
        self._ranges = any(is_long_range(knob) for knob in features.space.knobs)

    def after(self, observations: int) -> float:
        """The improvement to ask for after so many, whatever else is known."""
        return self._most / observations

    def none_left(self, ending: bool, lawful: bool) -> bool:
        """Whether any improvement will do.

        It will where the goal is ``lawful`` (:mod:`~autotune.search.models.power_law`): then it is known what
        can be gained. ``ending``: :func:`is_ending`.
        """
        return not self._most or lawful or ending

    def asked(self, observations: int, trust: float, stuck: bool, stoppable: bool) -> float:
        """The improvement to ask for, unless there is :meth:`none_left`.

        ``trust`` in earlier studies, from 0 to 1, counts as further observations; ``stoppable``: trials are
        trainings that may end early.
        """
        known = FRESH if stuck else observations + KNOWN * trust
        return self._most * (MODEST if stoppable else 1.0) / known

    def within_reach(self, asked: float, ahead: Floats, spread: Floats) -> float:
        """``asked``, but in a space with ranges no more than some candidate may come to.

        ``ahead``: by how much candidates are expected to beat the best, and ``spread``: the standard
        deviation of that; both of shape (n,).
        """
        if not self._ranges or not len(ahead):
            return asked
        return min(asked, max(0.0, float((ahead + REACH * spread).max())))

    def stuck(self, since: int, pending: int, ending: bool) -> bool:
        """Whether it is time for a way out, if none of the last ``since`` tries was as good as the best.

        A trial in flight is no failure yet, but counts among the tries between one way out and the next.
        ``ending``: :func:`is_ending`.
        """
        return since >= PATIENCE and (since + pending) % WAY_OUT == 0 and not ending


def _in_space(features: Features) -> float:
    """The improvement to ask for in a space, times the number of observations."""
    if only_ranges(features.space):
        return 0.0
    listed = features.space.feasible.size
    if not listed:
        return AMBITION
    ranges = [knob for knob in features.space.knobs if is_long_range(knob)]
    # In logarithms: the exact count may be larger than any float.
    counts = [len(knob.cells[0].values) if knob.cells else 1 for knob in ranges]
    size = math.log(listed) + sum(math.log(LEVELS / count) for count in counts)
    return AMBITION * math.exp(min(0.0, size - math.log(SMALL)))
