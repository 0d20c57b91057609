"""The subject of a report: a study, its answer, and the time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from autotune.report.evidence import Evidence
from autotune.session.result import Result
from autotune.session.searches import gone
from autotune.status import Status
from autotune.store.store import Store

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Subject:
    """The subject of a report."""

    store: Store
    evidence: Evidence
    result: Result
    """Without its trials."""
    now: float
    """POSIX seconds."""

    @property
    def running(self) -> int:
        """How many trials are in flight in searches that are not known to be dead."""
        return int((~self._held.isin(gone(self.evidence.sessions))).sum())

    @property
    def dropped(self) -> int:
        """How many trials were in flight when their search died; the next search tries them again."""
        return int(self._held.isin(gone(self.evidence.sessions)).sum())

    @property
    def _held(self) -> pd.Series[int]:
        """The session of each trial that waits or runs."""
        own = self.evidence.all_trials
        return own.loc[own["status"].isin((Status.WAITING.value, Status.RUNNING.value)), "session"]


def say_time(at: float | None) -> str:
    """``2026-03-01 14:05 UTC``."""
    if at is None or not math.isfinite(at):
        return "unknown"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
