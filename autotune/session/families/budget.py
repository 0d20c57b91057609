"""Which workload of a family is searched next, and for how many tries. Pure.

The first workload, the one in the middle of all, gets twice its share, as long as the others keep enough
for their openings: they learn from it. Then each of the others gets its opening, in which the strategy
tries what was best for the workloads before it, and changes one switch at a time. The rest of the budget
goes, slice by slice, to the workload that improved most for each try in the later half of its tries.

Everything depends on the store, so an interrupted family goes on with what it had begun; only the length of
a slice also depends on how long workers take to start.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.likeness import distance
from autotune.space.configuration import Value

OPENING = 10
"""How many tries the opening of a workload has; for so many a strategy uses earlier studies."""
SLICE = 8
"""How many tries are given at once after the openings, at least: opening a search costs a second or two."""
WORTH_STARTING = 4.0
"""A slice after the openings searches for at least so many times as long as workers take to start."""
LEAD = 40
"""The most tries of the first workload before the others begin; the others can learn from so many."""
HOPE = 0.1
"""The improvement (of the logarithm) that is hoped for if the last tries brought none. The larger it is,
the more evenly tries are shared."""


@dataclass(frozen=True)
class Standing:
    """Where the search of one workload stands."""

    bests: tuple[float, ...] = ()
    """After each try that has ended, the logarithm of the best value so far, smaller is better; inf before
    the first success."""
    tries: int = 0
    """The number of tries, including those that have not ended."""
    seconds: float = 0.0
    """Time spent on searching it."""
    closed: bool = False
    """Whether the search of it is over: all was tried, its patience is exhausted, or its target reached."""

    @property
    def pace(self) -> float:
        """Seconds per try."""
        return self.seconds / max(self.tries, 1)

    @property
    def gain(self) -> float:
        """The improvement (of the logarithm) expected of the next try, judged by the later half of all."""
        half = len(self.bests) // 2
        before = self.bests[half - 1] if half else math.inf
        after = self.bests[-1] if self.bests else math.inf
        improved = 0.0 if math.isinf(after) else min(before - after, 1.0)
        return (improved + HOPE) / max(self.tries - half, 1)


@dataclass(frozen=True)
class Slice:
    """Tries to give to one workload."""

    workload: int
    """Its index in the family."""
    tries: int
    seconds: float | None = None
    """The limit of time; ``None`` means none."""


def next_slice(
    standings: Mapping[int, Standing],
    order: Sequence[int],
    trials: int | None,
    seconds: float | None,
    starting: float = 0.0,
) -> Slice | None:
    """The next slice; ``None`` if the total budget of ``trials`` or ``seconds`` is spent, or all are closed.

    ``standings`` are by the workload's index in the family; ``order`` has the indices of those that can be
    searched, in the order in which they begin (:func:`order_of`). Workers take ``starting`` seconds to start,
    which are not part of the budget.
    """
    left = math.inf if trials is None else trials - sum(s.tries for s in standings.values())
    time = None if seconds is None else seconds - sum(s.seconds for s in standings.values())
    alive = [place for place in order if not standings[place].closed]
    if left <= 0 or (time is not None and time <= 0) or not alive:
        return None
    return (
        _lead(standings, order, trials, seconds, left)
        or _opening(standings, alive, _tries_to_open(len(order), trials), left, time)
        or _by_gain(standings, alive, left, time, starting)
    )


def _lead_tries(workloads: int, trials: int) -> int:
    """The tries of the first workload: twice its share, if that leaves the others their openings."""
    if workloads == 1:
        return trials
    spare = max(trials - (workloads - 1) * OPENING, trials // workloads, 1)
    return min(round(2 * trials / (workloads + 1)), LEAD, spare)


def _tries_to_open(workloads: int, trials: int | None) -> int:
    """The length of an opening; if the budget is small, all openings are shorter."""
    if trials is None or workloads == 1:
        return OPENING
    return min(max((trials - _lead_tries(workloads, trials)) // (workloads - 1), 1), OPENING)


def _lead(
    standings: Mapping[int, Standing],
    order: Sequence[int],
    trials: int | None,
    seconds: float | None,
    left: float,
) -> Slice | None:
    """The rest of what the first workload gets: twice its share of the tries or of the time."""
    own = standings[order[0]]
    time = None if seconds is None else 2 * seconds / (len(order) + 1) - own.seconds
    wanted = LEAD if trials is None else _lead_tries(len(order), trials)
    if own.closed or own.tries >= wanted or (time is not None and time <= 0):
        return None
    return Slice(order[0], int(min(wanted - own.tries, left)), time)


def _opening(
    standings: Mapping[int, Standing], alive: Sequence[int], tries: int, left: float, time: float | None
) -> Slice | None:
    """The rest of the opening of the next workload that has not had all of it.

    It is over once it has had its share of the time, however few tries that was. Otherwise slow tries of
    the first workloads would leave nothing to the last.
    """
    waiting = [place for place in alive if standings[place].tries < tries]
    if not waiting:
        return None
    share = None
    if time is not None:
        waiting, share = _below_their_share(standings, waiting, time)
    own = standings[waiting[0]]
    seconds = None if share is None else share - own.seconds
    return Slice(waiting[0], int(min(tries - own.tries, left)), seconds)


def _below_their_share(
    standings: Mapping[int, Standing], places: Sequence[int], time: float
) -> tuple[list[int], float]:
    """Those of ``places`` that get the ``time`` that is left, and how much each has in the end, all alike."""
    below = list(places)
    while True:
        share = (time + sum(standings[place].seconds for place in below)) / len(below)
        above = [place for place in below if standings[place].seconds >= share]
        if not above or len(above) == len(below):  # rounding may hide what little time is left
            return below, share
        below = [place for place in below if place not in above]


def _by_gain(
    standings: Mapping[int, Standing],
    alive: Sequence[int],
    left: float,
    time: float | None,
    starting: float,
) -> Slice:
    """A slice for the workload with the largest gain; of equal ones, the one that began first.

    It is longer where workers start slowly, but no longer than an even share of what is left for all.
    """
    place = max(alive, key=lambda p: standings[p].gain)
    pace = standings[place].pace
    share = left / len(alive)
    if time is not None and pace > 0:
        share = min(share, time / len(alive) / pace)
    worth = WORTH_STARTING * starting / pace if pace > 0 else 0.0
    return Slice(place, int(min(max(SLICE, min(worth, share)), left)), time)


def order_of(workloads: Sequence[Mapping[str, Value]]) -> tuple[int, ...]:
    """Indices of the workloads: the one nearest to all others, then always the nearest to any before."""
    if not workloads:
        return ()
    apart = [[distance(one, other) for other in workloads] for one in workloads]
    order = [min(range(len(workloads)), key=lambda place: sum(apart[place]))]
    while len(order) < len(workloads):
        left = (place for place in range(len(workloads)) if place not in order)
        order.append(min(left, key=lambda place: min(apart[place][o] for o in order)))
    return tuple(order)
