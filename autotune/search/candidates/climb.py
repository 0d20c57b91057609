"""From the best candidates on: moved along the scales again and again, by less and less.

What a sample and the neighbourhoods of a few tries hold is seldom a peak of what is expected. Least so where
bounds have to hold: there the peak is a sliver along their edge, which a random move of several knobs seldom
meets, and from which each knob by itself leads away. So the best candidates are moved in their turn, the best
of all that was found are moved less far, and so on. It is an evolution strategy of few parents (Beyer and
Schwefel, Natural Computing 1, 2002) on the model alone. It needs no gradient, so that integers, conditions
and constraints are no matter, and predictions are asked for by the hundred, which costs little more than one.

Beside the best it starts from what lies near a try. From a random sample it would end on the highest peaks of
what is least known, and a process that has seen a few dozen tries is then believed too far from where those
were made. For the same reason little is gained where no bound is measured
(``benchmarks/results/smooth_functions.md``), unless there are many knobs: then what lies near a try differs
from it in too few of them (``benchmarks/results/many_knobs.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from autotune.search.contract import Reason
from autotune.space.configuration import Configuration

PARENTS = 4
"""The best candidates, from which the next are moved."""
STEPS = (0.1, 0.03, 0.01, 0.002)
"""Standard deviations of the moves of each round, as fractions of a scale."""
STEPS_AMONG_MANY = (0.2, 0.2, 0.1, 0.1, 0.05, 0.05, 0.02, 0.01)
"""The same where knobs are many, of which each round changes a few."""


@dataclass(frozen=True)
class Candidate:
    """A configuration that may be proposed."""

    configuration: Configuration
    rank: tuple[float, float]
    """Larger is better: whether it is likely enough to succeed, and then what is to be gained."""
    reason: Callable[[], Reason]
    """Says what was expected of it."""


Beside = Callable[[Sequence[Configuration], float], Iterator[Candidate]]
"""What can be proposed at a step's distance from some configurations, the best first."""


def climb(
    best: Candidate, others: Iterator[Candidate], beside: Beside, steps: Sequence[float] = STEPS
) -> Candidate:
    """The best that is found from the ``best`` candidate and those of the ``others`` that come first.

    These are to lie near a try. There is a round for each of the ``steps``.
    """
    leading = [best, *islice(others, PARENTS - 1)]
    for step in steps:
        found = islice(beside([one.configuration for one in leading], step), PARENTS)
        each = {one.configuration.hash: one for one in [*found, *leading]}
        leading = sorted(each.values(), key=lambda one: one.rank, reverse=True)[:PARENTS]
    return leading[0]
