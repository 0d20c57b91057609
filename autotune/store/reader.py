"""The questions that a store answers. Nothing here writes or depends on the time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from autotune.measure.outcome import Reading
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store import brief, portable
from autotune.store.brief import BriefTrial
from autotune.store.databases import integrity
from autotune.store.databases.database import Database
from autotune.store.databases.patience import begins_again
from autotune.store.records import (
    AskRecord,
    Purpose,
    RecipeRecord,
    ResultRecord,
    SegmentRecord,
    SessionRecord,
    SpaceRevision,
    StudyRecord,
    TrialRecord,
    VerdictRecord,
)
from autotune.store.statements import asks, contents, lookup, pruning, recipes, reports, studies
from autotune.store.statements.reports import ReportRecord

Item = TypeVar("Item")

_TRIALS_AT_ONCE = 1000
"""How many trials, or the readings of how many, are fetched together."""


@begins_again
class StoreReader:
    """The half of a :class:`~autotune.store.store.Store` that reads, and that never makes a writer wait.

    The errors that its methods raise are described there.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- studies ---------------------------------------------------------------------------------

    def studies(self, name: str | None = None) -> list[StudyRecord]:
        """All studies, or those of one name; the newest last."""
        with self._database.read() as connection:
            return studies.list_studies(connection, *studies.named(name))

    def study(self, name_or_id: str | int | None = None) -> StudyRecord:
        """By name (the newest of that name), ``name#id``, ``#id`` or id; ``None``: the newest of all."""
        with self._database.read() as connection:
            return studies.look_up_study(connection, name_or_id)

    def find_study(self, name: str, key: str) -> StudyRecord | None:
        """The newest study of this name and key."""
        with self._database.read() as connection:
            return studies.find_study(connection, name, key)

    def space_revisions(self, study_id: int) -> list[SpaceRevision]:
        """The spaces that the study had before, oldest first."""
        with self._database.read() as connection:
            return studies.list_space_revisions(connection, study_id)

    def count_trials(self, study_id: int) -> int:
        """How many search trials the study has, whatever their status."""
        with self._database.read() as connection:
            return sum(studies.count_trials(connection, study_id).values())

    # -- segments, sessions, verdicts ------------------------------------------------------------

    def latest_segment(self, study_id: int) -> SegmentRecord | None:
        with self._database.read() as connection:
            return studies.latest_segment(connection, study_id)

    def segment(self, segment_id: int) -> SegmentRecord:
        with self._database.read() as connection:
            return studies.read_segment(connection, segment_id)

    def sessions(self, study_id: int) -> list[SessionRecord]:
        """Oldest first."""
        with self._database.read() as connection:
            return studies.list_sessions(connection, study_id)

    def verdicts(self, study_id: int) -> list[VerdictRecord]:
        """Oldest first."""
        with self._database.read() as connection:
            return studies.list_verdicts(connection, study_id)

    # -- trials ----------------------------------------------------------------------------------

    def trial(self, trial_id: int) -> TrialRecord:
        with self._database.read() as connection:
            return lookup.read_trial(connection, trial_id)

    def trials(
        self, study_id: int, purpose: Purpose | None = None, status: Status | str | None = None
    ) -> list[TrialRecord]:
        """The study's trials by number, or some of them."""
        with self._database.read() as connection:
            return lookup.list_trials(connection, study_id, purpose, status)

    def numbered(self, study_id: int, numbers: Sequence[int]) -> list[TrialRecord]:
        """The study's trials that have these numbers, by number."""
        with self._database.read() as connection:
            return lookup.numbered(connection, study_id, numbers)

    def brief_trials(self, study_id: int) -> Iterator[BriefTrial]:
        """All trials of the study by number, without what only a look at a single one needs.

        Fetched in parts, so that a long study needs little memory and no transaction stays open.
        """
        return self._part_by_part(study_id, brief.brief_between)

    def values_of(self, study_id: int, metrics: Sequence[str]) -> list[tuple[int, tuple[float, ...]]]:
        """``(number, values)`` of these metrics for each search trial that succeeded and has them all."""
        with self._database.read() as connection:
            return brief.values_of(connection, study_id, metrics)

    def facts_with(self, study_id: int, name: str) -> list[tuple[int, Mapping[str, Any]]]:
        """``(number, facts)`` of each search trial that has the fact ``name``, by number."""
        with self._database.read() as connection:
            return list(brief.facts_with(connection, study_id, name))

    def tally(self, study_id: int) -> dict[tuple[int, str, str], int]:
        """How many trials the study has of each session (its id), purpose and status."""
        with self._database.read() as connection:
            return brief.tally(connection, study_id)

    def numbers_of(self, study_id: int, hashes: Sequence[str]) -> dict[str, int]:
        """The numbers of the study's search trials whose configurations have these hashes, by hash."""
        with self._database.read() as connection:
            return lookup.numbers_of(connection, study_id, hashes)

    def last_finished(self, study_id: int, purpose: str | None = None) -> dict[int, float]:
        """When the last trial (of that purpose) of each session that finished any did so, by session id."""
        with self._database.read() as connection:
            return lookup.last_finished(connection, study_id, purpose)

    def results_from(self, study_id: int, first: int) -> tuple[int, list[ResultRecord]]:
        """The results of search trials, from the place ``first`` in the order of results on.

        With them comes the place that the next result will have: a caller that passes it as ``first`` the
        next time misses no result and sees none twice. Cheap where there is nothing new.
        """
        with self._database.read_directly() as direct:
            return lookup.results_from(direct, study_id, first)

    def proposed_from(self, study_id: int, first: int) -> tuple[int, list[tuple[int, Configuration]]]:
        """The next number, and what each search trial with the number ``first`` or a higher one tries."""
        with self._database.read_directly() as direct:
            return lookup.proposed_from(direct, study_id, first)

    def heard_before(self, study_id: int, past: int | None) -> tuple[list[int], set[int]]:
        """The numbers of the search trials that have a place before ``past`` in the order of results.

        First those that had finished, in that order, then those that were only paused. ``None`` is the end.
        """
        with self._database.read() as connection:
            return lookup.heard_before(connection, study_id, past)

    def made_from(self, study_id: int, digest: str) -> list[int]:
        """The numbers of the search trials that were made from the configuration with this hash."""
        with self._database.read() as connection:
            return brief.made_from(connection, study_id, digest)

    def asks(self, study_id: int, number: int | None = None) -> list[AskRecord]:
        """Every ask that came to a trial, in the order in which they were written.

        With a ``number``, only those that had it: one of each search.
        """
        with self._database.read() as connection:
            return asks.list_asks(connection, study_id, number)

    # -- readings and reports --------------------------------------------------------------------

    def readings(self, trial_id: int) -> tuple[Reading, ...]:
        """Every reading of a trial, in the order in which they were taken."""
        with self._database.read() as connection:
            return lookup.list_readings(connection, trial_id)

    def readings_of(self, study_id: int) -> Iterator[tuple[int, tuple[Reading, ...]]]:
        """``(trial id, readings)`` for each trial that has any, by number.

        Fetched in parts, so that a long study needs little memory and no transaction stays open.
        """
        return self._part_by_part(study_id, lookup.readings_between)

    def _part_by_part(
        self, study_id: int, between: Callable[[sa.Connection, int, int, int], Iterable[Item]]
    ) -> Iterator[Item]:
        """All that ``between`` finds, each time for the trials from one number up to another."""
        with self._database.read() as connection:
            end = lookup.number_of_trials(connection, study_id)
        for first in range(0, end, _TRIALS_AT_ONCE):
            with self._database.read() as connection:
                part = list(between(connection, study_id, first, first + _TRIALS_AT_ONCE))
            yield from part

    def readings_in(self, trial_ids: Sequence[int]) -> list[tuple[int, tuple[Reading, ...]]]:
        """``(trial id, readings)`` for those of these trials that have any, by id."""
        with self._database.read() as connection:
            return lookup.readings_in(connection, trial_ids)

    def reports(self, study_id: int, after: int = 0) -> list[ReportRecord]:
        """What the study's trials have reported past the report ``after``, oldest first."""
        with self._database.read() as connection:
            return reports.since(connection, study_id, after)

    def reports_of(self, trial_id: int) -> list[ReportRecord]:
        """What one trial has reported, oldest first."""
        with self._database.read() as connection:
            return reports.of_trial(connection, trial_id)

    # -- artefacts, environments, recipes --------------------------------------------------------

    def artifact(self, digest: str) -> bytes:
        """The content that :meth:`put_artifact` gave this hash."""
        with self._database.read() as connection:
            return contents.read_artifact(connection, digest)

    def kind_of(self, digest: str) -> str | None:
        """The kind of the artefact with this hash; ``None`` where there is none."""
        with self._database.read() as connection:
            return contents.kind_of(connection, digest)

    def environment(self, digest: str) -> Mapping[str, Any]:
        """The environment with this hash; empty where the store has none, as after some imports."""
        with self._database.read() as connection:
            return contents.read_environment(connection, digest)

    def recipes(self, name: str | None = None) -> list[RecipeRecord]:
        """The imported recipes of one name or all, the newest first."""
        with self._database.read() as connection:
            return recipes.list_recipes(connection, name)

    # -- a study as a whole ----------------------------------------------------------------------

    def tell(self, study_id: int, places: Mapping[int, int]) -> Iterator[portable.Told]:
        """A study as documents, of one moment: see :mod:`autotune.store.portable`."""
        with self._database.read() as connection:
            yield from portable.dump(connection, study_id, places)

    def find_same(self, document: Mapping[str, Any]) -> int | None:
        """The id of the study that a ``study`` document describes; ``None`` where it is not here."""
        with self._database.read() as connection:
            return portable.find_same(connection, document)

    # -- health ----------------------------------------------------------------------------------

    def loose(self, without: Collection[int] = ()) -> pruning.Loose:
        """What nothing refers to, or would if the studies ``without`` (their ids) were gone."""
        with self._database.read() as connection:
            return pruning.find_loose(connection, without)

    def integrity(self) -> list[str]:
        """What is wrong with the database, each in a sentence; empty where all is well.

        On SQLite every page, index and reference is checked; on any database, that each value is one that can
        have been written, that each trial has as many readings as it should and each file still has its hash.
        """
        with self._database.read() as connection:
            return integrity.findings(connection)
