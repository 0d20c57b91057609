"""Which workload of a family is searched next, and for how many tries. Pure.

The first workload, the one in the middle, begins with twice its share, as long as that leaves the others
their openings: what it teaches, they need not find out again. Each of the others then gets its opening, in
which the strategy tries what was best for those before it, and turns the switches around it. What is left
goes where it still brings something: to the workload that improved most a try in the later half of its tries.

All follows from what stands in the store, so a family that was interrupted goes on with what it had begun.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.likeness import distance
from autotune.space.configuration import Value

OPENING = 10
"""Tries of each workload before they are given by gain: so long do earlier studies teach."""
SLICE = 8
"""Tries given by gain at once: opening a search costs a second or two."""
LEAD = 40
"""Tries of the first workload at most before the others begin: with so many it can teach."""
HOPE = 0.1
"""Improvement (of the logarithm) that the next tries may bring where the last ones have brought none. The
larger, the more evenly tries are shared."""


@dataclass(frozen=True)
class Standing:
    """Where the search of one workload stands."""

    bests: tuple[float, ...] = ()
    """The logarithm of the best so far after each try that has ended, smaller is better; inf before the first
    success."""
    tries: int = 0
    """Those that have not ended included."""
    seconds: float = 0.0
    """Spent on searching it."""
    closed: bool = False
    """Whether nothing more can come: every configuration was tried, or its patience is at its end."""

    @property
    def gain(self) -> float:
        """What the next try is expected to bring, judged by the later half of the tries."""
        half = len(self.bests) // 2
        before = self.bests[half - 1] if half else math.inf
        after = self.bests[-1] if self.bests else math.inf
        improved = 0.0 if math.isinf(after) else min(before - after, 1.0)
        return (improved + HOPE) / max(self.tries - half, 1)


@dataclass(frozen=True)
class Slice:
    """Tries to give to one workload."""

    workload: int
    """Its place in the family."""
    tries: int
    seconds: float | None = None
    """At most; ``None``: no limit."""


def next_slice(
    standings: Mapping[int, Standing], order: Sequence[int], trials: int | None, seconds: float | None
) -> Slice | None:
    """The next tries; ``None`` where the budget of ``trials`` and ``seconds`` over all is spent.

    ``standings`` are by the workload's place in the family; ``order`` has the places of those that can be
    searched, in the order in which they begin (:func:`order_of`).
    """
    left = math.inf if trials is None else trials - sum(s.tries for s in standings.values())
    time = None if seconds is None else seconds - sum(s.seconds for s in standings.values())
    alive = [place for place in order if not standings[place].closed]
    if left <= 0 or (time is not None and time <= 0) or not alive:
        return None
    return (
        _lead(standings, order, trials, seconds, left)
        or _opening(standings, alive, _tries_to_open(len(order), trials), left, time)
        or _by_gain(standings, alive, left, time)
    )


def _lead_tries(workloads: int, trials: int) -> int:
    """Twice a share, as long as enough is left for the openings of the others; alone, everything."""
    if workloads == 1:
        return trials
    spare = max(trials - (workloads - 1) * OPENING, trials // workloads, 1)
    return min(round(2 * trials / (workloads + 1)), LEAD, spare)


def _tries_to_open(workloads: int, trials: int | None) -> int:
    """Where the budget is small, all openings are shorter alike."""
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
    """Twice its share for the first, of the tries or of the time."""
    own = standings[order[0]]
    time = None if seconds is None else 2 * seconds / (len(order) + 1) - own.seconds
    wanted = LEAD if trials is None else _lead_tries(len(order), trials)
    if own.closed or own.tries >= wanted or (time is not None and time <= 0):
        return None
    return Slice(order[0], int(min(wanted - own.tries, left)), time)


def _opening(
    standings: Mapping[int, Standing], alive: Sequence[int], tries: int, left: float, time: float | None
) -> Slice | None:
    """The next that has not had its opening."""
    waiting = [place for place in alive if standings[place].tries < tries]
    if not waiting:
        return None
    missing = tries - standings[waiting[0]].tries
    return Slice(waiting[0], int(min(missing, left)), None if time is None else time / len(waiting))


def _by_gain(
    standings: Mapping[int, Standing], alive: Sequence[int], left: float, time: float | None
) -> Slice:
    """Of those that promise the same, the one that began first."""
    place = max(alive, key=lambda p: standings[p].gain)
    return Slice(place, int(min(SLICE, left)), time)


def order_of(workloads: Sequence[Mapping[str, Value]]) -> tuple[int, ...]:
    """The one nearest to all others first, then always the one nearest to any that has had its turn."""
    if not workloads:
        return ()
    apart = [[distance(one, other) for other in workloads] for one in workloads]
    order = [min(range(len(workloads)), key=lambda place: sum(apart[place]))]
    while len(order) < len(workloads):
        left = (place for place in range(len(workloads)) if place not in order)
        order.append(min(left, key=lambda place: min(apart[place][o] for o in order)))
    return tuple(order)
