"""A study read from its store once: what every table, figure and report is made of."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from autotune.report.evidence_frame import frame_of
from autotune.report.knob_views import KnobView, knob_views
from autotune.session.searches import DIED, searches_of, tried_in
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import SegmentRecord, SessionRecord, StudyRecord, VerdictRecord
from autotune.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

Place = Store | str | os.PathLike[str] | None
"""A store that is open, or where it is; ``None``: the default one."""


@contextmanager
def opened(place: Place) -> Iterator[Store]:
    """The store at ``place``, open for reading; one that was open stays open."""
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
    """The metrics with a goal; the first judges what is best."""
    knobs: tuple[KnobView, ...]
    all_trials: pd.DataFrame
    """One row a trial, for whatever purpose, by number: see :func:`load_evidence`."""
    configurations: Mapping[int, Mapping[str, Any]]
    """By the number of the trial."""
    verdicts: tuple[VerdictRecord, ...]
    sessions: tuple[SessionRecord, ...]
    """The searches, without replays and verifications."""
    tried: tuple[SessionRecord, ...]
    """Those of them that tried something: see :func:`autotune.session.searches.tried_in`."""
    last_finished: Mapping[int, float]
    """When the last trial of each session that finished any did so."""
    segment: SegmentRecord | None
    """The latest: the objective's source, frozen."""
    environment: Mapping[str, Any]
    """The one that the study began in; empty where it is not in the store."""

    def end_of(self, session: SessionRecord) -> float:
        """When it was closed; where nobody but a later session did that, when its last trial ended.

        Never before it began.
        """
        closed = None if session.reason == DIED else session.finished_at
        return max(closed or self.last_finished.get(session.id, 0.0), session.started_at)

    @property
    def metric(self) -> MetricSpec:
        """The first goal."""
        return self.goals[0]

    @property
    def sign(self) -> float:
        """1 where the first goal is to minimise, -1 where it is to maximise."""
        return self.metric.sign

    @cached_property
    def trials(self) -> pd.DataFrame:
        """The trials of the search alone, without the replicates."""
        own = self.all_trials
        return own[own["purpose"] == "search"].reset_index(drop=True)

    @cached_property
    def succeeded(self) -> pd.DataFrame:
        """The search trials that succeeded and have a number for the first goal."""
        own = self.trials
        usable = (own["status"] == Status.OK.value) & own["value"].notna()
        return own[usable].reset_index(drop=True)

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """What the last re-measurement of the finalists came to; ``None`` where none has a winner."""
        last = self.verdicts[-1].document if self.verdicts else {}
        return last if last.get("configuration") is not None else None

    @property
    def statuses(self) -> dict[str, int]:
        """How many search trials stand in each status, the commonest first."""
        return {str(name): int(n) for name, n in self.trials["status"].value_counts().items()}

    def knob_column(self, name: str, trials: pd.DataFrame) -> list[Any]:
        """The values of a knob, ``None`` where a trial does not have it."""
        return [self.configurations[number].get(name) for number in trials["trial"].tolist()]


def load_evidence(place: Place = None, study: str | int | None = None) -> Evidence:
    """Read a study: by name, ``name#id`` or id; ``None``: the newest of the store.

    Its ``all_trials`` has the columns ``trial`` (the number), ``id``, ``session``, ``segment``,
    ``purpose``, ``status``, ``strategy``, ``kind`` (of the reason), ``told``, ``proposed``, ``started`` and
    ``finished`` (POSIX seconds), ``prepare``, ``check``, ``warmup`` and ``measure`` (seconds of each
    phase), ``prepare_began`` ... ``measure_ended`` (POSIX seconds; ``check_began`` only where the check
    came ahead), ``lane``, ``value`` (the first goal, where the trial has not failed and used its whole
    resource), ``at_full`` (the same, and what a trial that was stopped early would have come to),
    ``fraction`` (of the resource), ``metric.NAME`` with ``.low``, ``.high`` and ``.n``, ``label`` (of a
    replicate), ``message``, ``hash`` and ``environment``.
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
            verdicts=tuple(store.verdicts(record.id)),
            sessions=searches_of(store, record.id),
            tried=tried_in(store, record.id),
            last_finished=store.last_finished(record.id),
            segment=store.latest_segment(record.id),
            environment=store.environment(record.environment_hash),
        )
