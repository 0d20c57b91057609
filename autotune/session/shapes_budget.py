"""Which workload of a family is searched next, and for how many tries. Pure.

The first workload, the one in the middle, gets twice its share: what it teaches, the others need not find out
again. Each of the others then gets its opening, in which the strategy tries what was best for those before
it, and turns the switches around it. What is left goes where it still brings something: to the workload that
improved most a try in the later half of its tries.

All follows from what stands in the store, so a family that was interrupted goes on with what it had begun.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.space.configuration import Value

OPENING = 10
"""Tries of each workload before they are given by gain: so long do earlier studies teach."""
SLICE = 8
"""Tries given by gain at once: opening a search costs a second or two."""
UNLIMITED = 40
"""Tries of the first workload where no budget says how many there are."""
HOPE = 0.02
"""Improvement (of the logarithm) that the next tries may bring where the last ones have brought none."""


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
    tries: int | None
    """``None``: as many as the time allows."""
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
    open_ones = [place for place in order if not standings[place].closed]
    if left <= 0 or (time is not None and time <= 0) or not open_ones:
        return None
    return (
        _lead(standings, order, trials, seconds, left)
        or _opening(standings, open_ones, left, time)
        or _by_gain(standings, open_ones, left, time)
    )


def _lead(
    standings: Mapping[int, Standing],
    order: Sequence[int],
    trials: int | None,
    seconds: float | None,
    left: float,
) -> Slice | None:
    """Twice its share for the first, of the tries or of the time."""
    first, share = order[0], 2 / (len(order) + 1)
    own = standings[first]
    if own.closed:
        return None
    wanted = max(round(share * trials), 1) if trials is not None else math.inf
    if trials is None and seconds is None:
        wanted = UNLIMITED
    time = None if seconds is None else share * seconds - own.seconds
    if own.tries >= wanted or (time is not None and time <= 0):
        return None
    tries = min(wanted - own.tries, left)
    return Slice(first, None if math.isinf(tries) else int(tries), time)


def _opening(
    standings: Mapping[int, Standing], open_ones: Sequence[int], left: float, time: float | None
) -> Slice | None:
    """The next that has not had its opening. Where the budget is small, all openings are shorter alike."""
    waiting = [place for place in open_ones if standings[place].tries < OPENING]
    if not waiting:
        return None
    place = waiting[0]
    missing = sum(OPENING - standings[p].tries for p in waiting)
    own = OPENING - standings[place].tries
    tries = own if left >= missing else max(math.floor(left * own / missing), 1)
    return Slice(place, tries, None if time is None else time / len(waiting))


def _by_gain(
    standings: Mapping[int, Standing], open_ones: Sequence[int], left: float, time: float | None
) -> Slice:
    place = max(open_ones, key=lambda p: standings[p].gain)
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


STRANGE = 10.0
"""How far apart two values are that are no positive numbers: as two numbers with a ratio of a thousand."""


def distance(one: Mapping[str, Value], other: Mapping[str, Value]) -> float:
    """How unlike two workloads are: the root of the summed squares; a factor of two in one number is 1."""
    return math.sqrt(sum(_apart(value, other.get(name)) ** 2 for name, value in one.items()))


def _apart(one: Value, other: Value | None) -> float:
    if type(one) is type(other) and one == other:
        return 0.0
    if _positive(one) and _positive(other):
        return abs(math.log2(one / other))  # type: ignore[operator]
    return STRANGE


def _positive(value: Value | None) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
