"""What a budget leaves, judged at the moment in which trials are written.

Whoever proposes has counted the trials that a budget allows for. Another process may have proposed since
then, so what came to stand after the count is counted in the transaction that writes the new trials down:
together they never take more than there is. Each function runs in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autotune.space.configuration import Configuration
from autotune.store.statements.lookup import proposed_from
from autotune.store.statements.prepared import Direct
from autotune.store.statements.studies import lock_study


@dataclass(frozen=True)
class Counted:
    """The search trials of one study, of which those with numbers below ``before`` were counted."""

    study_id: int
    before: int
    counts: Callable[[Configuration], bool]
    """Whether a trial of this configuration is one of them: some may lie outside the space of today."""


@dataclass(frozen=True)
class Room:
    """How many search trials a budget had left when those of its studies were counted."""

    left: int
    counted: tuple[Counted, ...]


def room_left(direct: Direct, study_id: int, rooms: Sequence[Room]) -> tuple[int, int | None]:
    """The study's next trial number, and how many search trials fit into each of ``rooms``; ``None``: any.

    Holds the study and all that were counted until the transaction ends, so that both stay true.
    """
    counted = [one for room in rooms for one in room.counted]
    held = {held: lock_study(direct, held) for held in sorted({study_id, *(c.study_id for c in counted)})}
    new = {one: _since(direct, one, held[one.study_id]) for one in counted}
    left = [room.left - sum(new[one] for one in room.counted) for room in rooms]
    return held[study_id], max(min(left), 0) if left else None


def _since(direct: Direct, counted: Counted, number: int) -> int:
    """How many were proposed since the count, where the study's next trial has this number."""
    if number <= counted.before:
        return 0
    _, new = proposed_from(direct, counted.study_id, counted.before)
    return sum(counted.counts(configuration) for _, configuration in new)
