"""Where a trial stands, and how it ended.

::

    waiting ──▶ running ──▶ ok
       │           │ ├────▶ infeasible  wrong  out-of-memory  timeout  crashed  diverged
       │           │ ├────▶ pruned
       │           │ └────▶ lost  (its lease ran out; a late result is still accepted)
       └───────────┴──────▶ lost  (the session ended before the trial did)

Only ``lost`` is tried again by itself; any other status is an answer that the search learns from.
"""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Where a trial stands, and how it ended. The values are what the store and the shell show."""

    WAITING = "waiting"
    """Proposed and written down, not begun."""
    RUNNING = "running"
    """Being prepared, checked or measured; its lease is renewed while its worker lives."""
    OK = "ok"
    """Measured and correct."""
    INFEASIBLE = "infeasible"
    """The compiler or the device refuses it."""
    WRONG = "wrong"
    """It fails its oracle, or a metric is past its bound."""
    OUT_OF_MEMORY = "out-of-memory"
    """It needed more than the memory cap or than the device has."""
    TIMEOUT = "timeout"
    """It was killed at its time limit."""
    CRASHED = "crashed"
    """Its process died (signal or exit code), or the objective raised an unexpected exception."""
    DIVERGED = "diverged"
    """A metric became NaN or infinite, or a training loss exploded."""
    PRUNED = "pruned"
    """Stopped early on purpose: worse than the incumbent beyond doubt, or behind others part of the way."""
    LOST = "lost"
    """The worker or its node went away, or something else failed than the configuration, of which nothing is
    known."""

    @property
    def finished(self) -> bool:
        """Whether the trial needs no more work (``lost`` does: it is tried again)."""
        return self not in (Status.WAITING, Status.RUNNING, Status.LOST)

    @property
    def failed(self) -> bool:
        """Whether the configuration itself was found unusable."""
        return self in _FAILED


_FAILED = frozenset(
    {
        Status.INFEASIBLE,
        Status.WRONG,
        Status.OUT_OF_MEMORY,
        Status.TIMEOUT,
        Status.CRASHED,
        Status.DIVERGED,
    }
)
