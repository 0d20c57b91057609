"""Whether trials failed at a limit that has been raised since, so that they might succeed now."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from autotune.space.spec import MeasureSettings
from autotune.status import Status
from autotune.store.records import TrialRecord
from autotune.store.store import Store

LIMITS = {"timeout": Status.TIMEOUT, "prepare_timeout": Status.TIMEOUT, "memory": Status.OUT_OF_MEMORY}
"""The settings that limit a trial, and the status with which each ends it."""


def say_raised(store: Store, study_id: int, now: MeasureSettings) -> str:
    """What to tell the user if trials of a study ended at lower limits than those of ``now``; else empty."""
    raised, failed = failed_lower(store, study_id, now)
    if not failed:
        return ""
    one = len(failed) == 1
    return (
        f"{len(failed)} earlier {'trial' if one else 'trials'} failed at a lower limit than there is now"
        f" ({' or '.join(raised)}) and {'is' if one else 'are'} not tried again: --fresh begins anew"
    )


def failed_lower(
    store: Store, study_id: int, now: MeasureSettings
) -> tuple[list[str], tuple[TrialRecord, ...]]:
    """The limits that are higher ``now`` than in some session, and the trials that ended at lower ones."""
    sessions = {session.id: session.settings.get("measure", {}) for session in store.sessions(study_id)}
    limits = asdict(now)
    raised = [
        name for name in LIMITS if any(_limit(s, name) < _limit(limits, name) for s in sessions.values())
    ]
    failed = tuple(
        trial
        for status in {LIMITS[name] for name in raised}
        for trial in store.trials(study_id, purpose="search", status=status)
        if any(
            _ended_by(trial, name) and _limit(sessions[trial.session_id], name) < _limit(limits, name)
            for name in raised
        )
    )
    return raised, failed


def _ended_by(trial: TrialRecord, limit: str) -> bool:
    preparing = trial.phase == "prepare"
    return trial.status is LIMITS[limit] and (limit == "memory" or (limit == "prepare_timeout") == preparing)


def _limit(settings: Mapping[str, Any], name: str) -> float:
    """A limit in seconds or bytes; infinite if there was none."""
    value = settings.get(name)
    return math.inf if value is None else float(value)
