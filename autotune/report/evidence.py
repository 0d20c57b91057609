"""A study, read from its store once, from which all tables, figures and reports are made."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from autotune.report.evidence_frame import frame_of
from autotune.report.knob_views import KnobView, knob_views
from autotune.session.answers import changed_space
from autotune.session.searches import DIED, searches_of, tried_in
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import SegmentRecord, SessionRecord, StudyRecord, VerdictRecord
from autotune.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

Place = Store | str | os.PathLike[str] | None
"""An open store, or its path or URL; ``None`` means the default store."""


@contextmanager
def opened(place: Place) -> Iterator[Store]:
    """The store at ``place``, opened for reading; a store that is already open is not closed."""
    if isinstance(place, Store):
        yield place
    else:
        with Store.open(place, readonly=True) as store:
            yield store


@dataclass(frozen=True, eq=False)
class Evidence:
    """A study as it stood in its store when it was read."""

    study: StudyRecord
    store: str
    """The store's URL, with a password masked."""
    goals: tuple[MetricSpec, ...]
    """The metrics with a goal; the first one decides what is best."""
    knobs: tuple[KnobView, ...]
    all_trials: pd.DataFrame
    """A row for each trial of any purpose, in the order of their numbers: see :func:`load_evidence`."""
    configurations: Mapping[int, Mapping[str, Any]]
    """By the trial's number."""
    outside: frozenset[int]
    """The numbers of the trials that the study's space no longer contains, since it was changed."""
    verdicts: tuple[VerdictRecord, ...]
    sessions: tuple[SessionRecord, ...]
    """The searches, without replays and verifications."""
    tried: tuple[SessionRecord, ...]
    """The searches that tried something: see :func:`autotune.session.searches.tried_in`."""
    last_finished: Mapping[int, float]
    """By session: when its last finished trial ended, in POSIX seconds."""
    segment: SegmentRecord | None
    """The latest segment, with the frozen source of the objective."""
    environment: Mapping[str, Any]
    """The environment that the study began in; empty if the store does not have it."""

    def end_of(self, session: SessionRecord) -> float:
        """When the session ended, in POSIX seconds: when it was closed, but not before it began.

        If a later session closed it, since its process had died, this is when its last trial ended.
        """
        closed = None if session.reason == DIED else session.finished_at
        return max(closed or self.last_finished.get(session.id, 0.0), session.started_at)

    @property
    def metric(self) -> MetricSpec:
        """The first goal."""
        return self.goals[0]

    @property
    def sign(self) -> float:
        """1 if the first goal is minimized, -1 if it is maximized."""
        return self.metric.sign

    @cached_property
    def trials(self) -> pd.DataFrame:
        """The search trials, without the replicates."""
        own = self.all_trials
        return own[own["purpose"] == "search"].reset_index(drop=True)

    @cached_property
    def succeeded(self) -> pd.DataFrame:
        """The search trials that succeeded and have a value of the first goal."""
        own = self.trials
        usable = (own["status"] == Status.OK.value) & own["value"].notna()
        return own[usable].reset_index(drop=True)

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """The document of the last verdict; ``None`` if there is none, or it has no winner."""
        last = self.verdicts[-1].document if self.verdicts else {}
        return last if last.get("configuration") is not None else None

    @property
    def statuses(self) -> dict[str, int]:
        """How many search trials have each status, the commonest first."""
        return {str(name): int(n) for name, n in self.trials["status"].value_counts().items()}

    def knob_column(self, name: str, trials: pd.DataFrame) -> list[Any]:
        """The values of a knob in ``trials``; ``None`` if a trial does not have it."""
        return [self.configurations[number].get(name) for number in trials["trial"].tolist()]


def load_evidence(place: Place = None, study: str | int | None = None) -> Evidence:
    """Read a study by name, ``name#id`` or id; ``None`` means the newest of the store.

    Its ``all_trials`` has the columns ``trial`` (the number), ``id``, ``session``, ``segment``,
    ``purpose``, ``status``, ``strategy``, ``kind`` (of the reason), ``told``, ``proposed``, ``started`` and
    ``finished`` (POSIX seconds), ``prepare``, ``check``, ``warmup`` and ``measure`` (seconds of each
    phase), ``prepare_began`` ... ``measure_ended`` (POSIX seconds; ``check_began`` only if the check was
    made ahead, while another trial was measured), ``lane``, ``value`` (of the first goal, if the trial has
    not failed and used its whole resource), ``at_full`` (the same, with predictions for trials that were
    stopped early), ``fraction`` (of the resource), ``metric.NAME`` with ``.low``, ``.high`` and ``.n``,
    ``label`` (of a replicate), ``message``, ``hash`` and ``environment``.
    """
    with opened(place) as store:
        record = store.study(study)
        goals = record.goals
        configurations: dict[int, Mapping[str, Any]] = {}
        frame = frame_of(store, record, goals[0], configurations)
        seen = dict.fromkeys(name for c in configurations.values() for name in c)
        return Evidence(
            study=record,
            store=store.url,
            goals=goals,
            knobs=knob_views(record.document, tuple(seen)),
            all_trials=frame,
            configurations=configurations,
            outside=_outside(store, record, configurations),
            verdicts=tuple(store.verdicts(record.id)),
            sessions=searches_of(store, record.id),
            tried=tried_in(store, record.id),
            last_finished=store.last_finished(record.id),
            segment=store.latest_segment(record.id),
            environment=store.environment(record.environment_hash),
        )


def _outside(
    store: Store, study: StudyRecord, configurations: Mapping[int, Mapping[str, Any]]
) -> frozenset[int]:
    if (space := changed_space(store, study)) is None:
        return frozenset()
    return frozenset(number for number, chosen in configurations.items() if chosen not in space)
