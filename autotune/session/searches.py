"""The sessions of a study: which of them searched, and for how long; and those whose process has died."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from autotune.session.liveness import lives
from autotune.store.records import SessionRecord
from autotune.store.store import Store

VERIFIED = "verified"
"""The setting that only sessions of replays and verifications have, which measured an answer again."""

DIED = "its process is gone"
"""The reason of a session that a later one closed, since its process is gone."""


def searches_of(store: Store, study_id: int) -> tuple[SessionRecord, ...]:
    """The sessions that searched."""
    return tuple(s for s in store.sessions(study_id) if VERIFIED not in s.settings)


def tried_in(store: Store, study_id: int) -> tuple[SessionRecord, ...]:
    """The sessions that searched, without those that only measured winners again.

    A search of many workloads has such sessions, whose settings do not say how the search was done.
    """
    again = store.last_finished(study_id).keys() - store.last_finished(study_id, purpose="search").keys()
    return tuple(s for s in searches_of(store, study_id) if s.id not in again)


def repeats_of(store: Store, study_id: int) -> set[int]:
    """The sessions of ``replay`` and ``verify``, by id."""
    return {s.id for s in store.sessions(study_id) if VERIFIED in s.settings}


def seconds_searched(store: Store, study_id: int) -> float:
    """Seconds that earlier sessions searched: from the start of each to the end of its last search trial.

    What they measured again after that, to defend a winner, is not counted.
    """
    last = store.last_finished(study_id, purpose="search")
    return sum(max(last[s.id] - s.started_at, 0.0) for s in store.sessions(study_id) if s.id in last)


def gone(sessions: Iterable[SessionRecord]) -> set[int]:
    """The ids of the sessions that were never closed and whose process is known to be gone."""
    return {s.id for s in sessions if s.finished_at is None and lives(s) is False}


def close_dead(store: Store, study_id: int) -> None:
    """Close the sessions whose process is gone, since they will not finish their trials."""
    for session in sorted(gone(store.sessions(study_id))):
        store.close_session(session, DIED)


def expire(store: Store, study_id: int) -> None:
    """Mark trials as lost whose lease ran out, except those of another process that is known to be alive.

    Such a process may have had no chance to renew the lease: a caller of ask and tell runs a trial for as
    long as it takes. Sessions of this process are not exempt, since one may have been dropped without being
    closed.
    """
    alive = [
        session.id
        for session in store.sessions(study_id)
        if session.finished_at is None and session.pid != os.getpid() and lives(session)
    ]
    store.expire(study_id, time.time(), alive=alive)
