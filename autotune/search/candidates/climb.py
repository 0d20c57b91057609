"""Climbing from the best candidates: they are moved along the scales again and again, by less and less.

A sample and the neighbourhoods of a few tries seldom hold a peak of the acquisition function. Least so where
bounds have to hold: there the peak is a sliver along their edge, which a random move of several knobs seldom
meets, and from which each knob by itself leads away. So the best candidates are moved, the best of all that
was found so are moved less far, and so on. This is an evolution strategy with few parents (Beyer and
Schwefel, Natural Computing 1, 2002) on the model alone. It needs no gradient, so that integers, conditions
and constraints are no obstacle, and asks for predictions by the hundred, which costs little more than one.

Apart from the best candidate it starts from some that lie near a try. From a random sample it would end on
the highest peaks of what is least known, where a process that has seen a few dozen tries is not to be
believed. For the same reason little is gained where no bound is measured
(``benchmarks/results/smooth_functions.md``), unless there are many knobs: then what lies near a try differs
from it in too few of them (``benchmarks/results/many_knobs.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from autotune.search.candidates.pool import Pool
from autotune.search.contract import Reason
from autotune.search.models.arrays import Floats, Integers
from autotune.space.configuration import Configuration

PARENTS = 4
"""So many of the best candidates are moved in each round."""
STEPS = (0.1, 0.03, 0.01, 0.002)
"""The standard deviation of the moves in each round, as a fraction of a scale."""
STEPS_AMONG_MANY = (0.2, 0.2, 0.1, 0.1, 0.05, 0.05, 0.02, 0.01)
"""The same where there are many knobs, a few of which change in each round."""
TIE = 1e-7
"""Smaller differences in the logarithm of a gain are rounding: of such candidates the first is taken."""


@dataclass(frozen=True)
class Candidate:
    """A configuration that may be proposed."""

    configuration: Configuration
    rank: tuple[float, float]
    """Larger is better: first how likely it is to succeed, as far as that matters, then what it may gain."""
    reason: Callable[[], Reason]
    """Makes the reason for proposing it."""


Beside = Callable[[Sequence[Configuration], float], Iterator[Candidate]]
"""What can be proposed at a step's distance from some configurations, the best first."""
Ranked = Callable[[Integers], Iterator[Candidate]]
"""What can be proposed of some columns of the pool and of what it has fresh, as :func:`best_first` has it."""


def rounded(gain: Floats) -> Floats:
    """The logarithms of gains in steps of a :data:`TIE`."""
    return np.asarray(np.round(gain / TIE) * TIE)


def best_first(
    pool: Pool,
    columns: Integers,
    likely: Floats,
    gain: Floats,
    taken: set[str],
    reason: Callable[[int], Reason],
) -> Iterator[Candidate]:
    """What can be proposed of the ``columns`` and then the fresh ones, and is not ``taken``; the best first.

    ``likely`` and ``gain`` rank them, in this order. After the first only fresh ones follow: those lie near a
    try, as the starting points of a climb should. ``reason`` makes that of a row.
    """
    found = False
    for i in np.lexsort((-gain, -likely)):
        if found and i < len(columns):
            continue
        configuration = pool.candidate(columns, i)
        if configuration is None or configuration.hash in taken:
            continue
        found = True
        yield Candidate(configuration, (float(likely[i]), float(gain[i])), partial(reason, int(i)))


def best_found(
    pool: Pool,
    first: Iterator[Candidate],
    ranked: Ranked,
    rng: np.random.Generator,
    *,
    bounded: bool,
    tries: int,
) -> Candidate | None:
    """The best candidate of the ``first``, and of what is found from there where climbing is of use.

    ``bounded``: whether bounds are measured. ``tries``: how many were made or are in flight.
    """
    best = next(first, None)
    # Among many knobs by turns: what all that is believed leads to, and what is near a try.
    its_turn = pool.assigns or (pool.many and tries % 2 == 0)
    if best is None or not pool.can_climb or not (bounded or its_turn):
        return best

    def beside(centres: Sequence[Configuration], step: float) -> Iterator[Candidate]:
        return ranked(pool.beside(centres, step, rng))

    return climb(best, first, beside, STEPS_AMONG_MANY if pool.many or pool.assigns else STEPS)


def climb(
    best: Candidate, others: Iterator[Candidate], beside: Beside, steps: Sequence[float] = STEPS
) -> Candidate:
    """The best that is found from the ``best`` candidate and the first of the ``others``.

    The others should lie near a try. There is a round for each of the ``steps``.
    """
    leading = [best, *islice(others, PARENTS - 1)]
    for step in steps:
        found = islice(beside([one.configuration for one in leading], step), PARENTS)
        each = {one.configuration.hash: one for one in [*found, *leading]}
        leading = sorted(each.values(), key=lambda one: one.rank, reverse=True)[:PARENTS]
    return leading[0]
