"""The store: where every study, trial and reading is kept.

A trial is written when it is proposed, when it starts and when it finishes, each in one transaction::

    propose ─▶ waiting ─ start ─▶ running ─ finish ─▶ ok, wrong, crashed ...      told = 0, 1, 2 ...
                  │ ▲                │                     ▲
                  │ └──── retry ─────│──────┐              │ finish (a late result)
                  └──── expire ──────┴──▶ lost ────────────┘

What is unfinished holds a *lease* that its session renews. One that ran out, because the worker died or the
session was closed, becomes ``lost`` with the next :meth:`Store.expire`, and can be tried again.

A call that returned is kept, whatever happens to the process after it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from autotune.measure.outcome import Outcome, Reading, Report
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store import (
    asks,
    brief,
    contents,
    integrity,
    lookup,
    portable,
    pruning,
    recipes,
    reports,
    studies,
    trials,
)
from autotune.store.address import default_url, read_address
from autotune.store.brief import BriefTrial
from autotune.store.database import Database
from autotune.store.documents import content_hash
from autotune.store.opening import open_engine
from autotune.store.prepared import Direct
from autotune.store.records import (
    AskRecord,
    NewAsk,
    NewRecipe,
    NewStudy,
    NewTrial,
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
from autotune.store.reports import ReportRecord

__all__ = ["LEASE_SECONDS", "Store", "default_url"]

LEASE_SECONDS = 60.0
"""How long a trial that was handed out may stay without a sign of life before another session takes it for
lost, unless that session can see that its process lives."""

_TRIALS_AT_ONCE = 1000
"""Of how many trials the readings are fetched together."""

_IN_ONE_QUERY = 500
"""Ids that one statement names; SQLite's own limit may be as low as 999."""


class Store:
    """A database of studies. Get one from :meth:`open`; close it, or use it in a ``with`` block.

    May be used by several threads at once. Belongs to the process that opened it: after a fork, open
    another. Any number of processes may have the same store open.

    Every method may raise :class:`~autotune.errors.StoreError` where the database fails (full disk, lost
    server ...). The call that failed has then written nothing, all earlier ones are kept, and the
    store can be used again as soon as the cause is gone. What names something that is not there
    raises :class:`~autotune.errors.InputError`.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    # -- opening and closing -------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str] | None = None,
        *,
        readonly: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Store:
        """Open the store at ``url``, a database URL or the path of a file; see :func:`default_url`.

        A store that is not there is made, with its folder, and one of an older version is brought up to
        date; with ``readonly`` it must exist and not be empty. ``clock`` gives the time in UTC POSIX seconds.
        """
        address = read_address(url)
        return cls(Database(address, open_engine(address, readonly=readonly), readonly=readonly), clock)

    @property
    def url(self) -> str:
        """Where the store is, as it may be printed and recorded: absolute, with a password masked."""
        return str(self._database.address)

    def close(self) -> None:
        """Let go of the database. Harmless when repeated, and in a forked child."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- studies -------------------------------------------------------------------------------

    def create_study(self, new: NewStudy, environment: Mapping[str, Any] | None = None) -> StudyRecord:
        """``environment``: the description that goes by its ``environment_hash``, kept with it."""
        with self._database.write() as connection:
            contents.describe(connection, new.environment_hash, environment, self._clock())
            return studies.create_study(connection, new, self._clock())

    def find_or_create_study(
        self, new: NewStudy, environment: Mapping[str, Any] | None = None
    ) -> tuple[StudyRecord, bool]:
        """The newest study of this name and key, or a new one; and whether it is new.

        One step: of two searches that begin at once, one makes the study and the other joins it.
        """
        with self._database.write() as connection:
            contents.describe(connection, new.environment_hash, environment, self._clock())
            return studies.find_or_create_study(connection, new, self._clock())

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

    def update_space(
        self, study_id: int, spec_text: str, document: Mapping[str, Any], space_hash: str
    ) -> None:
        """The space of a living study has changed; the earlier one is kept as a revision."""
        with self._database.write() as connection:
            studies.update_space(connection, study_id, spec_text, document, space_hash, self._clock())

    def update_key(self, study: StudyRecord) -> None:
        """Keep the key and document that ``study`` has now: more makes it what it is than before."""
        with self._database.write() as connection:
            studies.update_key(connection, study.id, study.key, study.document)

    def space_revisions(self, study_id: int) -> list[SpaceRevision]:
        """The spaces that the study had before, oldest first."""
        with self._database.read() as connection:
            return studies.list_space_revisions(connection, study_id)

    def count_trials(self, study_id: int) -> int:
        """How many search trials the study has, whatever their status."""
        with self._database.read() as connection:
            return sum(studies.count_trials(connection, study_id).values())

    # -- segments, sessions, verdicts ----------------------------------------------------------

    def open_segment(
        self, study_id: int, document: Mapping[str, Any], artifacts: Mapping[str, bytes], reason: str
    ) -> SegmentRecord:
        """Freeze the objective's source: ``document`` describes it, ``artifacts`` are its files by role."""
        files = self._pack(artifacts)
        hashes = {role: content_hash(content) for role, content in artifacts.items()}
        with self._database.write() as connection:
            files.insert(Direct.through(connection), self._clock())
            return studies.open_segment(connection, study_id, document, hashes, reason, self._clock())

    def latest_segment(self, study_id: int) -> SegmentRecord | None:
        with self._database.read() as connection:
            return studies.latest_segment(connection, study_id)

    def segment(self, segment_id: int) -> SegmentRecord:
        with self._database.read() as connection:
            return studies.read_segment(connection, segment_id)

    def open_session(
        self,
        study_id: int,
        settings: Mapping[str, Any],
        environment_hash: str,
        pid: int,
        host: str,
        environment: Mapping[str, Any] | None = None,
    ) -> int:
        """Note that a run of the loop begins, in the ``environment`` that goes by that hash; its id."""
        with self._database.write() as connection:
            contents.describe(connection, environment_hash, environment, self._clock())
            return studies.open_session(
                connection,
                self._clock(),
                study_id=study_id,
                settings=settings,
                environment_hash=environment_hash,
                pid=pid,
                host=host,
            )

    def close_session(self, session_id: int, reason: str) -> None:
        """Note that it ended, and why. The leases of the trials that it still holds end with it."""
        with self._database.write() as connection:
            studies.close_session(connection, session_id, reason, self._clock())

    def sessions(self, study_id: int) -> list[SessionRecord]:
        """Oldest first."""
        with self._database.read() as connection:
            return studies.list_sessions(connection, study_id)

    def save_verdict(self, study_id: int, session_id: int, document: Mapping[str, Any]) -> int:
        """Keep what a re-measurement of the finalists came to; its id."""
        with self._database.write() as connection:
            return studies.save_verdict(connection, study_id, session_id, document, self._clock())

    def verdicts(self, study_id: int) -> list[VerdictRecord]:
        """Oldest first."""
        with self._database.read() as connection:
            return studies.list_verdicts(connection, study_id)

    # -- the life of a trial -------------------------------------------------------------------

    def propose(
        self,
        study_id: int,
        session_id: int,
        segment_id: int,
        proposals: Sequence[NewTrial],
        *,
        ask: NewAsk | None = None,
        worker: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> list[TrialRecord | None]:
        """Write trials down before they are run: one answer a proposal, in the same order.

        With them, where a strategy proposed them, the ``ask`` that they came of.

        They are ``waiting``, or ``running`` at once where a ``worker`` is named that begins with them.

        ``None`` where the study has a search trial of this configuration already, from whichever session:
        two searches of one study never measure the same. Numbers go on from the study's last one.
        """
        with self._database.write_directly() as direct:
            now = self._clock()
            written = trials.propose(
                direct, study_id, session_id, segment_id, proposals, worker, now + lease_seconds, now
            )
            if ask is not None:
                asks.add(direct, study_id, session_id, ask, written)
            return written

    def start(self, trial_id: int, worker: str, lease_seconds: float = LEASE_SECONDS) -> None:
        """A worker begins with the trial. One that is finished stays as it is."""
        with self._database.write_directly() as direct:
            now = self._clock()
            trials.start(direct, trial_id, worker, now + lease_seconds, now)

    def renew(self, trial_ids: Sequence[int], lease_seconds: float = LEASE_SECONDS) -> None:
        """These trials, waiting or running, are alive. A trial that was taken for lost stays lost."""
        if trial_ids:
            with self._database.write() as connection:
                trials.renew(connection, trial_ids, self._clock() + lease_seconds)

    def finish(self, trial_id: int, outcome: Outcome, environment_hash: str | None = None) -> int:
        """Keep the outcome, its readings and its artefacts; all of it or nothing.

        Returns the trial's place in the study's order of results. The first result counts: a second
        one changes nothing and gets the same answer. A trial that was taken for lost takes its late
        result. An outcome that is itself ``lost`` is no result: the answer is -1.
        """
        if outcome.status in (Status.WAITING, Status.RUNNING):
            raise ValueError(f"a trial cannot finish as {outcome.status}")
        files = self._pack(outcome.artifacts)
        hashes = {role: content_hash(content) for role, content in outcome.artifacts.items()}
        with self._database.write_directly() as direct:
            now = self._clock()
            files.insert(direct, now)
            return trials.finish(direct, trial_id, outcome, environment_hash or "", hashes, now)

    def expire(self, study_id: int, now: float, *, alive: Collection[int] = ()) -> list[TrialRecord]:
        """Unfinished trials whose lease is out at ``now`` become lost; each is returned to one caller.

        Those of the sessions ``alive`` do not.
        """
        with self._database.write() as connection:
            return trials.expire(connection, study_id, now, alive)

    def retry(
        self,
        trial_id: int,
        *,
        session_id: int | None = None,
        segment_id: int | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> TrialRecord | None:
        """Put a lost trial back to waiting, for its next attempt, in the hands of ``session_id``.

        ``None`` where it is not lost any more: another session was quicker, or its late result came.
        Without a session or segment it stays with those that it had.
        """
        with self._database.write() as connection:
            until = self._clock() + lease_seconds
            return trials.retry(connection, trial_id, session_id, segment_id, until)

    # -- reading trials back -------------------------------------------------------------------

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
        with self._database.read() as connection:
            end = lookup.number_of_trials(connection, study_id)
        for first in range(0, end, _TRIALS_AT_ONCE):
            with self._database.read() as connection:
                part = list(brief.brief_between(connection, study_id, first, first + _TRIALS_AT_ONCE))
            yield from part

    def values_of(self, study_id: int, metrics: Sequence[str]) -> list[tuple[int, tuple[float, ...]]]:
        """``(number, values)`` of these metrics for each search trial that succeeded and has them all."""
        with self._database.read() as connection:
            return brief.values_of(connection, study_id, metrics)

    def numbers_of(self, study_id: int, hashes: Sequence[str]) -> dict[str, int]:
        """The numbers of the study's search trials whose configurations have these hashes, by hash."""
        with self._database.read() as connection:
            return lookup.numbers_of(connection, study_id, hashes)

    def last_finished(self, study_id: int, purpose: str | None = None) -> dict[int, float]:
        """When the last trial (of that purpose) of each session that finished any did so, by session id."""
        with self._database.read() as connection:
            return lookup.last_finished(connection, study_id, purpose)

    def results_from(self, study_id: int, first: int) -> tuple[int, list[ResultRecord]]:
        """What search trials came to, from the place ``first`` in the order of results on.

        The number is the place that the next result will have. Whoever asks with it the next time misses
        no result and sees none twice. Cheap where there is nothing new.
        """
        with self._database.read_directly() as direct:
            return lookup.results_from(direct, study_id, first)

    def proposed_from(self, study_id: int, first: int) -> tuple[int, list[tuple[int, Configuration]]]:
        """The next number, and what each search trial with the number ``first`` or a higher one tries."""
        with self._database.read_directly() as direct:
            return lookup.proposed_from(direct, study_id, first)

    def asks(self, study_id: int) -> list[AskRecord]:
        """Every ask that came to a trial, in the order in which they were written."""
        with self._database.read() as connection:
            return asks.list_asks(connection, study_id)

    def readings(self, trial_id: int) -> tuple[Reading, ...]:
        """Every reading of a trial, in the order in which they were taken."""
        with self._database.read() as connection:
            return lookup.list_readings(connection, trial_id)

    def readings_of(self, study_id: int) -> Iterator[tuple[int, tuple[Reading, ...]]]:
        """``(trial id, readings)`` for each trial that has any, by number.

        Fetched in parts, so that a long study needs little memory and no transaction stays open.
        """
        with self._database.read() as connection:
            end = lookup.number_of_trials(connection, study_id)
        for first in range(0, end, _TRIALS_AT_ONCE):
            with self._database.read() as connection:
                part = lookup.readings_between(connection, study_id, first, first + _TRIALS_AT_ONCE)
            yield from part

    def readings_in(self, trial_ids: Sequence[int]) -> list[tuple[int, tuple[Reading, ...]]]:
        """``(trial id, readings)`` for those of these trials that have any, by id."""
        found: list[tuple[int, tuple[Reading, ...]]] = []
        for first in range(0, len(trial_ids), _IN_ONE_QUERY):
            with self._database.read() as connection:
                found += lookup.readings_in(connection, trial_ids[first : first + _IN_ONE_QUERY])
        return sorted(found, key=lambda one: one[0])

    # -- reports of running trials -------------------------------------------------------------

    def report(self, trial_id: int, made: Sequence[Report]) -> None:
        """Keep what a running trial has reported, in this order."""
        if made:
            with self._database.write() as connection:
                reports.add(connection, trial_id, made)

    def reports(self, study_id: int, after: int = 0) -> list[ReportRecord]:
        """What the study's trials have reported past the report ``after``, oldest first."""
        with self._database.read() as connection:
            return reports.since(connection, study_id, after)

    def reports_of(self, trial_id: int) -> list[ReportRecord]:
        """What one trial has reported, oldest first."""
        with self._database.read() as connection:
            return reports.of_trial(connection, trial_id)

    # -- artefacts and environments ------------------------------------------------------------

    def put_artifact(self, content: bytes, kind: str) -> str:
        """Keep a file's content once; its hash (SHA-256)."""
        files = self._pack({kind: content})
        if files.packed:
            with self._database.write_directly() as direct:
                files.insert(direct, self._clock())
        return content_hash(content)

    def artifact(self, digest: str) -> bytes:
        """The content that :meth:`put_artifact` gave this hash."""
        with self._database.read() as connection:
            return contents.read_artifact(connection, digest)

    def put_environment(self, digest: str, document: Mapping[str, Any]) -> None:
        """Keep the description of an environment once, under its hash."""
        with self._database.write() as connection:
            contents.insert_environment(connection, digest, document, self._clock())

    def environment(self, digest: str) -> Mapping[str, Any]:
        """The description of that hash; empty where none is recorded or it did not arrive with its study."""
        with self._database.read() as connection:
            return contents.read_environment(connection, digest)

    # -- recipes of other stores ---------------------------------------------------------------

    def put_recipes(self, new: Iterable[NewRecipe]) -> None:
        """Keep recipes, all or none, each in the place of an earlier one of its name, device and case."""
        with self._database.write() as connection:
            recipes.put(connection, new, self._clock())

    def recipes(self, name: str | None = None) -> list[RecipeRecord]:
        """The imported recipes of one name or all, the newest first."""
        with self._database.read() as connection:
            return recipes.list_recipes(connection, name)

    # -- studies as a whole --------------------------------------------------------------------

    def tell(self, study_id: int, places: Mapping[int, int]) -> Iterator[portable.Told]:
        """A study as documents, of one moment: see :mod:`autotune.store.portable`."""
        with self._database.read() as connection:
            yield from portable.dump(connection, study_id, places)

    def find_same(self, document: Mapping[str, Any]) -> int | None:
        """The id of the study that a document of it tells of; ``None`` where it is not here."""
        with self._database.read() as connection:
            return portable.find_same(connection, document)

    def load(
        self,
        told: Sequence[int | Iterable[portable.Told]],
        environments: Mapping[str, Mapping[str, Any]],
        files: Iterable[tuple[str, bytes]],
    ) -> list[int]:
        """Write studies, all or none; their ids. In the place of one that is here already stands its id.

        ``environments`` by hash, ``files`` by kind: what is here already stays. The documents must be right.
        """
        with self._database.write() as connection:
            for digest, document in environments.items():
                contents.insert_environment(connection, digest, document, self._clock())
            for kind, content in files:
                packed = [contents.prepare(content, kind)]
                contents.insert_artifacts(Direct.through(connection), packed, self._clock())
            begun = [one if isinstance(one, int) else portable.begin(connection, one) for one in told]
            ids = {place: one if isinstance(one, int) else one.id for place, one in enumerate(begun)}
            for one in begun:
                if not isinstance(one, int):
                    portable.load(connection, one, ids)
        return list(ids.values())

    def kind_of(self, digest: str) -> str | None:
        """Of the artefact with this hash; ``None`` where there is none."""
        with self._database.read() as connection:
            return contents.kind_of(connection, digest)

    # -- deleting ------------------------------------------------------------------------------

    def loose(self, without: Collection[int] = ()) -> pruning.Loose:
        """What nothing refers to, or would if the studies ``without`` (their ids) were gone."""
        with self._database.read() as connection:
            return pruning.find_loose(connection, without)

    def delete(self, study_ids: Sequence[int] = (), session_ids: Sequence[int] = ()) -> pruning.Loose:
        """Delete studies and sessions with all that is of them, and what nothing refers to then."""
        with self._database.write() as connection:
            contents.delete_alone(connection)
            pruning.delete_sessions(connection, session_ids)
            for study_id in study_ids:
                pruning.delete_study(connection, study_id)
            return pruning.delete_loose(connection)

    # -- health --------------------------------------------------------------------------------

    def integrity(self) -> list[str]:
        """What is wrong with the database, each in a sentence; empty where all is well.

        On SQLite every page, index and reference is looked at; everywhere, that each trial has its readings.
        """
        with self._database.read() as connection:
            return integrity.findings(connection)

    # -- files -----------------------------------------------------------------------------------

    def _pack(self, files: Mapping[str, bytes]) -> contents.Files:
        """Compress those of ``files`` (by kind) that the store lacks, before any transaction begins."""

        def lacked(hashes: Iterable[str]) -> list[str]:
            with self._database.read_directly() as direct:
                return contents.missing(direct, hashes)

        return contents.Files.of(files, lacked)
