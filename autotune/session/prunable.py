"""What of a store may be deleted, and what depends on it.

A single trial of a search is never deleted: every later proposal follows from it. What may go are whole
studies, the replicates of replays and verifications, and files and environments that nothing refers to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from autotune.session.opening.sources import SETTING
from autotune.session.searches import VERIFIED, gone
from autotune.status import Status
from autotune.store.records import StudyRecord
from autotune.store.statements.pruning import Loose
from autotune.store.store import Store


@dataclass(frozen=True)
class Prunable:
    """What would be deleted. If something depends on it, it is only deleted by force."""

    loose: Loose
    """Files and environments that nothing refers to, or will refer to once the rest is deleted."""
    studies: tuple[StudyRecord, ...] = ()
    trials: int = 0
    """How many search trials those studies have."""
    repeats: int = 0
    """How many measurements made again: of finales, replays and verifications."""
    sessions: tuple[int, ...] = ()
    """The ids of sessions of replays and verifications."""
    leaning: tuple[str, ...] = ()
    """What depends on it, a text for each."""

    @property
    def nothing(self) -> bool:
        return not (self.studies or self.sessions or self.loose.artifacts or self.loose.environments)

    def to_document(self) -> dict[str, Any]:
        return {
            "studies": [study.label for study in self.studies],
            "trials": self.trials,
            "repeats": self.repeats,
            "sessions": list(self.sessions),
            "files": sorted(self.loose.artifacts),
            "bytes": self.loose.bytes,
            "environments": list(self.loose.environments),
            "leaning": list(self.leaning),
        }


def loose(store: Store) -> Prunable:
    """Files and environments that nothing refers to."""
    return Prunable(store.loose())


def whole_study(store: Store, study: StudyRecord) -> Prunable:
    """A study with its trials, readings, verdicts and sessions, and what it alone refers to."""
    trials = store.count_trials(study.id)
    repeats = sum(store.tally(study.id).values()) - trials
    return Prunable(store.loose({study.id}), (study,), trials, repeats, leaning=tuple(_leaning(store, study)))


def _leaning(store: Store, study: StudyRecord) -> Iterator[str]:
    counts: Counter[str] = Counter()
    for (_, _, status), count in store.tally(study.id).items():
        counts[status] += count
    if running := counts[Status.RUNNING] + counts[Status.WAITING]:
        yield f"{running} of its trials are running or waiting: a search may be using it"
    verdicts = [v for v in store.verdicts(study.id) if v.document.get("configuration") is not None]
    if verdicts:
        yield f"its verdict, and the recipe that it is: {verdicts[-1].document.get('label', 'a winner')} won"
    elif counts[Status.OK] and not study.replayed:
        yield "its best trial, which is a recipe"
    for other in store.studies():
        if other.id == study.id:
            continue
        sources = [s for session in store.sessions(other.id) for s in session.settings.get(SETTING) or ()]
        if any(source["study"] == study.id for source in sources):
            yield f"study {other.label} learned from it: its proposals could no longer be derived"
        if other.parent_id == study.id:
            yield f"study {other.label} follows it"


def replicates(store: Store) -> Prunable:
    """The readings of replays and verifications of all studies, which no verdict and no search has used.

    Those that may still be running are left out.
    """
    again = [s for study in store.studies() for s in store.sessions(study.id) if VERIFIED in s.settings]
    killed = gone(again)
    sessions = [s.id for s in again if s.finished_at is not None or s.id in killed]
    known = set(sessions)
    repeats = sum(
        count
        for study in store.studies()
        for (session, _, _), count in store.tally(study.id).items()
        if session in known
    )
    return Prunable(store.loose(), repeats=repeats, sessions=tuple(sessions))


def delete(store: Store, what: Prunable) -> Loose:
    """Delete it; returns the files and environments that were deleted because nothing referred to them."""
    return store.delete([study.id for study in what.studies], what.sessions)
