"""Decides from the states of a group's ranks how the trial ends, and which rank is to blame. Pure.

When one rank fails, the others fail after it, since their peer is gone or they wait for it without end. So
the cause that explains the others counts. In this order: a rank was killed at its memory cap, is dead, raised
an exception (the earliest one), is stopped, or is silent (of those that wait for nobody, the one furthest
behind).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.measure.diagnostics import signal_name
from autotune.measure.groups.board import Beat
from autotune.measure.groups.messages import Raised
from autotune.measure.objective import SIGNALS, OutOfMemory, Signal, WrongAnswer
from autotune.status import Status

SLOW_FACTOR = 1.5
"""A rank busy for more than this times the median of the others is slow."""

LEAST_DIFFERENCE = 0.05
"""Seconds: a rank busy for at most this much longer than the others is not slow."""


class RankDied(Signal):
    """The process of a rank ended, or its function raised an unexpected exception."""

    status = Status.CRASHED


class RankSilent(Signal):
    """A rank hangs, or the call took longer than it may."""

    status = Status.TIMEOUT


_SIGNALS: Mapping[str, type[Signal]] = {**SIGNALS, RankSilent.status: RankSilent}


@dataclass(frozen=True)
class RankState:
    """What is known of one rank when its group is given up."""

    rank: int
    beat: Beat
    """Its last sign of life."""
    finished: bool = False
    """Whether it has answered the call."""
    exit_code: int | None = None
    """As of ``subprocess``: negative for a signal; ``None`` while it lives."""
    memory_kills: int = 0
    cap: int = 0
    """Its memory cap in bytes."""
    stopped: bool = False
    """Whether it is stopped (SIGSTOP)."""
    raised: Raised | None = None

    @property
    def where(self) -> str:
        at = f" at step {self.beat.step}" if self.beat.step else ""
        return f"'{self.beat.phase}'{at}"


def verdict(ranks: Sequence[RankState], now: float, overdue: float | None = None) -> Signal:
    """The signal that ends the trial. ``overdue``: the limit in seconds that the call has reached."""
    for rank in ranks:
        if rank.memory_kills:
            cap = f"{rank.cap / 2**20:.4g} MiB"
            return OutOfMemory(
                f"rank {rank.rank} was killed at the memory cap of its device, {cap}, in {rank.where}"
            )
    dead = [rank for rank in ranks if rank.exit_code is not None]
    if dead:
        return _death(dead)
    raised = [rank for rank in ranks if rank.raised is not None]
    if raised:
        return _raised(min(raised, key=lambda rank: rank.raised.at if rank.raised else 0.0))
    return _silence(ranks, now, overdue)


def _death(dead: Sequence[RankState]) -> Signal:
    # A rank that was killed by a signal did not die because it lost its peer.
    first = min(dead, key=lambda rank: (rank.exit_code or 0) >= 0)
    code = first.exit_code or 0
    how = f"exited with code {code}" if code >= 0 else f"died by {signal_name(-code)}"
    died = RankDied(f"rank {first.rank} {how} in {first.where}")
    died.exit_code = code if code >= 0 else None
    died.signal = -code if code < 0 else None
    return died


def _raised(rank: RankState) -> Signal:
    raised = rank.raised
    assert raised is not None
    text = f"rank {rank.rank}: {raised.message}"
    found = _SIGNALS.get(raised.status, RankDied)(text)
    if isinstance(found, WrongAnswer):
        found.metrics = dict(raised.metrics)
    found.stderr = raised.stderr
    return found


def _silence(ranks: Sequence[RankState], now: float, overdue: float | None) -> Signal:
    waited_for = [rank for rank in ranks if not rank.finished]
    stopped = [rank for rank in waited_for if rank.stopped]
    if not waited_for:
        return RankSilent("all ranks had answered")
    # A rank that waits for others is not to blame; of the rest the one furthest behind, or longest silent.
    culprit = min(
        stopped or waited_for, key=lambda rank: (waits(rank.beat.phase), rank.beat.step, rank.beat.at)
    )
    since = max(0.0, now - culprit.beat.at)  # its last sign may be newer than ``now``
    silent = f"gave no sign for {since:.1f} s"
    if stopped:
        silent = f"is stopped (SIGSTOP) and {silent}"
    if overdue is not None:
        silent = f"is the last after {overdue:g} s"
    others = [f"rank {rank.rank} in {rank.where}" for rank in ranks if rank is not culprit]
    rest = f"; {', '.join(others)}" if others else ""
    return RankSilent(f"rank {culprit.rank} {silent}, in {culprit.where}{rest}")


def waits(phase: str) -> bool:
    """Whether a rank in this phase does no work of its own."""
    return phase.startswith(("wait", "communicate", "done"))


def slow_ranks(busy: Sequence[float]) -> tuple[str, ...]:
    """A sentence for each rank that was busy for much longer than the median of the others.

    ``busy``: seconds of each rank, without waiting.
    """
    said = []
    for rank, own in enumerate(busy):
        others = [*busy[:rank], *busy[rank + 1 :]]
        if not others:
            continue
        median = sorted(others)[len(others) // 2]
        if own > SLOW_FACTOR * median and own - median > LEAST_DIFFERENCE:
            said.append(f"rank {rank} was busy for {own:.3g} s, the others for {median:.3g} s")
    return tuple(said)
