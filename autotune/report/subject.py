"""What a report is of: a study, its answer, and the moment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from autotune.report.evidence import Evidence
from autotune.session.result import Result
from autotune.status import Status
from autotune.store.store import Store


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
        """How many trials are held by a search that is alive."""
        own = self.evidence.all_trials
        return int(own["status"].isin((Status.WAITING.value, Status.RUNNING.value)).sum())


def say_time(at: float | None) -> str:
    """``2026-03-01 14:05 UTC``."""
    if at is None or not math.isfinite(at):
        return "unknown"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
