"""What a report is of: a study, its answer, and the moment."""

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
    """What a report is of."""

    store: Store
    evidence: Evidence
    result: Result
    """Without its trials."""
    now: float
    """POSIX seconds."""

    @property
    def running(self) -> int:
        """How many trials are held by a search that is alive, as far as can be told from here."""
        return int((~self._held.isin(gone(self.evidence.sessions))).sum())

    @property
    def dropped(self) -> int:
        """How many are held by a search whose process is gone: the next one tries them again."""
        return int(self._held.isin(gone(self.evidence.sessions)).sum())

    @property
    def _held(self) -> pd.Series[int]:
        """The sessions of the trials that wait or run."""
        own = self.evidence.all_trials
        return own.loc[own["status"].isin((Status.WAITING.value, Status.RUNNING.value)), "session"]


def say_time(at: float | None) -> str:
    """``2026-03-01 14:05 UTC``."""
    if at is None or not math.isfinite(at):
        return "unknown"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
