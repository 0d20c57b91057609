"""The store: where every study, trial and reading is kept.

A trial is written when it is proposed, when it starts and when it finishes, each in one transaction::

    propose ─▶ waiting ─ start ─▶ running ─ finish ─▶ ok, wrong, crashed ...      told = 0, 1, 2 ...
                  │ ▲                │ pause (told, too)   ▲
                  │ └──── retry ─────│──────┐              │ finish (a late result)
                  └──── expire ──────┴──▶ lost ────────────┘

An unfinished trial has a *lease* that its session renews. A trial whose lease ran out, because the worker
died or the session was closed, becomes ``lost`` with the next :meth:`Store.expire`, and can be tried again.

Once a call has returned, what it wrote is kept, whatever happens to the process afterwards.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, Self

from autotune.measure.outcome import Outcome, Reading, Report
from autotune.status import Status
from autotune.store import portable
from autotune.store.databases.address import read_address
from autotune.store.databases.database import Database
from autotune.store.databases.opening import open_engine
from autotune.store.databases.patience import begins_again, harmless_twice
from autotune.store.reader import StoreReader
from autotune.store.records import (
    NewAsk,
    NewRecipe,
    NewStudy,
    NewTrial,
    Place,
    SegmentRecord,
    StudyRecord,
    TrialRecord,
)
from autotune.store.statements import asks, contents, pruning, recipes, reports, studies, trials
from autotune.store.statements.prepared import Direct
from autotune.store.statements.room import Room

LEASE_SECONDS = 60.0
"""How long a trial that was handed out may stay without a sign of life before another session takes it for
lost, unless that session can see that its process lives."""


def _is_result(_: object, trial_id: int, outcome: Outcome, environment_hash: str | None = None) -> bool:
    """Whether writing it twice is harmless: the readings of a lost trial would be added each time."""
    return outcome.status.finished


@begins_again
class Store(StoreReader):
    """A database of studies. Get one from :meth:`open`; close it, or use it in a ``with`` block.

    May be used by several threads at once. Belongs to the process that opened it: after a fork, open
    another. Any number of processes may have the same store open.

    Every method may raise :class:`~autotune.errors.StoreError` where the database fails (full disk, lost
    server ...). The call that failed has then written nothing, all earlier ones are kept, and the
    store can be used again as soon as the cause is gone. A name or an id that is not in the store
    raises :class:`~autotune.errors.InputError`.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        super().__init__(database)
        self._clock = clock

    # -- opening and closing ---------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str] | None = None,
        *,
        readonly: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Store:
        """Open the store at ``url``: see :func:`~autotune.store.databases.address.read_address`.

        A store that is not there is made, with its folder, and one of an older version is brought up to
        date; with ``readonly`` it must exist and not be empty. ``clock`` gives the time in UTC POSIX seconds.
        """
        address = read_address(url)
        return cls(Database(address, open_engine(address, readonly=readonly), readonly=readonly), clock)

    @property
    def url(self) -> str:
        """Where the store is, as it may be printed and recorded: absolute, with a password masked."""
        return str(self._database.address)

    def waiting(self, note: Callable[[str], None]) -> AbstractContextManager[None]:
        """Inside, a server that is away is waited for, for up to a minute, and ``note`` is told."""
        return self._database.patience.waiting(note)

    def close(self) -> None:
        """Let go of the database. Harmless when repeated, and in a forked child."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- studies ---------------------------------------------------------------------------------

    def create_study(self, new: NewStudy, environment: Mapping[str, Any] | None = None) -> StudyRecord:
        """Write a new study, and the ``environment`` that its ``environment_hash`` stands for."""
        with self._database.write() as connection:
            contents.describe(connection, new.environment_hash, environment, self._clock())
            return studies.create_study(connection, new, self._clock())

    def find_or_create_study(
        self, new: NewStudy, environment: Mapping[str, Any] | None = None, *, newer_than: int = 0
    ) -> tuple[StudyRecord, bool]:
        """The newest study of this name and key, or a new one; and whether it is new.

        ``newer_than``: the id of a study that will not do, nor will any before it.
        One step: of two searches that begin at once, one makes the study and the other joins it.
        """
        with self._database.write() as connection:
            contents.describe(connection, new.environment_hash, environment, self._clock())
            return studies.find_or_create_study(connection, new, newer_than, self._clock())

    def update_space(
        self, study_id: int, spec_text: str, document: Mapping[str, Any], space_hash: str
    ) -> None:
        """The space of a living study has changed; the earlier one is kept as a revision."""
        with self._database.write() as connection:
            studies.update_space(connection, study_id, spec_text, document, space_hash, self._clock())

    def update_key(self, study_id: int, key: str, identity: Mapping[str, Any]) -> None:
        """The source of a living study has changed, and with it the key and its ``identity``."""
        with self._database.write() as connection:
            studies.update_key(connection, study_id, key, identity)

    # -- segments, sessions, verdicts ------------------------------------------------------------

    def open_segment(
        self,
        study_id: int,
        document: Mapping[str, Any],
        artifacts: Mapping[str, bytes],
        reason: str,
        *,
        unless: Callable[[SegmentRecord], bool] = lambda latest: False,
    ) -> SegmentRecord:
        """Freeze the objective's source: ``document`` describes it, ``artifacts`` are its files by role.

        ``unless``: whether the latest segment will do, which is then the answer. Looked at in the same step,
        so that of two searches that find the same change at once, one begins the segment.
        """
        files = self._pack(artifacts)
        with self._database.write() as connection:
            files.insert(Direct.through(connection), self._clock())
            now = self._clock()
            return studies.open_segment(connection, study_id, document, files.hashes, reason, unless, now)

    def open_session(
        self,
        study_id: int,
        settings: Mapping[str, Any],
        environment_hash: str,
        pid: int,
        host: str,
        environment: Mapping[str, Any] | None = None,
    ) -> int:
        """Note that a run of the loop begins, in the ``environment`` that the hash stands for; its id."""
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

    @harmless_twice()
    def close_session(self, session_id: int, reason: str) -> None:
        """Note that it ended, and why. The leases of the trials that it still holds end with it."""
        with self._database.write() as connection:
            studies.close_session(connection, session_id, reason, self._clock())

    def save_verdict(self, study_id: int, session_id: int, document: Mapping[str, Any]) -> int:
        """Keep what a re-measurement of the finalists came to; its id."""
        with self._database.write() as connection:
            return studies.save_verdict(connection, study_id, session_id, document, self._clock())

    # -- the life of a trial ---------------------------------------------------------------------

    def propose(
        self,
        place: Place,
        proposals: Sequence[NewTrial],
        *,
        ask: NewAsk | None = None,
        rooms: Sequence[Room] = (),
        worker: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> list[TrialRecord | None]:
        """Write trials down before they are run; one item for each proposal, in the same order.

        An item is ``None`` where the study has a search trial of this configuration already, from whichever
        session: two searches of one study never measure the same. Numbers go on from the study's last one.
        The list ends early where one of ``rooms`` (what budgets leave for search trials) is full.

        The trials are ``waiting``, or ``running`` at once where a ``worker`` is named. ``ask`` is written
        with them: the call of a strategy that they came from.
        """
        with self._database.write_directly() as direct:
            now = self._clock()
            written = trials.propose(direct, place, proposals, rooms, worker, now + lease_seconds, now)
            if ask is not None:
                asks.add(direct, place, ask, written, len(proposals))
            return written

    @harmless_twice()
    def start(self, trial_id: int, worker: str, lease_seconds: float = LEASE_SECONDS) -> None:
        """A worker begins with the trial. One that is finished stays as it is."""
        with self._database.write_directly() as direct:
            now = self._clock()
            trials.start(direct, trial_id, worker, now + lease_seconds, now)

    def report(self, trial_id: int, made: Sequence[Report]) -> None:
        """Keep what a running trial has reported, in this order."""
        if made:
            with self._database.write() as connection:
                reports.add(connection, trial_id, made)

    @harmless_twice()
    def pause(self, trial_id: int, step: int, outcome: Outcome) -> int:
        """Keep what is known of a trial that is paused after ``step``; its place in the order of results.

        Written once for each step. Where the trial has finished, nothing is written, and the place returned
        is that of its result.
        """
        with self._database.write_directly() as direct:
            return trials.pause(direct, trial_id, step, outcome)

    @harmless_twice()
    def renew(self, trial_ids: Sequence[int], lease_seconds: float = LEASE_SECONDS) -> None:
        """These trials, waiting or running, are alive. A trial that was taken for lost stays lost."""
        if trial_ids:
            with self._database.write() as connection:
                trials.renew(connection, trial_ids, self._clock() + lease_seconds)

    @harmless_twice()
    def keep_readings(
        self, taken: Sequence[tuple[int, int, Sequence[Reading]]], lease_seconds: float = LEASE_SECONDS
    ) -> None:
        """Keep readings of trials that go on: for each its id, how many were kept before, and those since."""
        with self._database.write_directly() as direct:
            until = self._clock() + lease_seconds
            for trial_id, first, new in sorted(taken, key=lambda one: one[0]):
                trials.keep_readings(direct, trial_id, first, new, until)

    @harmless_twice(_is_result)
    def finish(self, trial_id: int, outcome: Outcome, environment_hash: str | None = None) -> int:
        """Keep the outcome, its readings and its artefacts; all of it or nothing.

        Returns the trial's place in the study's order of results. The first result counts: a second
        one changes nothing and gets the same answer. A trial that was taken for lost takes its late
        result. An outcome that is itself ``lost`` is no result: the answer is -1.
        """
        if outcome.status in (Status.WAITING, Status.RUNNING):
            raise ValueError(f"a trial cannot finish as {outcome.status}")
        files = self._pack(outcome.artifacts)
        with self._database.write_directly() as direct:
            now = self._clock()
            files.insert(direct, now)
            return trials.finish(direct, trial_id, outcome, environment_hash or "", files.hashes, now)

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
        counts: bool = True,
    ) -> TrialRecord | None:
        """Put a lost trial back to waiting, for its next attempt, in the hands of ``session_id``.

        ``counts``: whether the attempt that was lost is counted.

        ``None`` where it is not lost any more: another session was quicker, or its late result came.
        Without a session or segment it stays with those that it had.
        """
        with self._database.write() as connection:
            until = self._clock() + LEASE_SECONDS
            return trials.retry(connection, trial_id, session_id, segment_id, until, counts)

    # -- artefacts, recipes ----------------------------------------------------------------------

    def put_artifact(self, content: bytes, kind: str) -> str:
        """Keep a file's content once; its hash (SHA-256)."""
        files = self._pack({kind: content})
        if files.packed:
            with self._database.write_directly() as direct:
                files.insert(direct, self._clock())
        return files.hashes[kind]

    def _pack(self, files: Mapping[str, bytes]) -> contents.Files:
        """Compress those of ``files`` (by kind) that the store lacks, before any transaction begins."""

        def lacked(hashes: Iterable[str]) -> list[str]:
            with self._database.read_directly() as direct:
                return contents.missing(direct, hashes)

        return contents.Files.of(files, lacked)

    def put_recipes(self, new: Iterable[NewRecipe]) -> None:
        """Keep recipes, all or none, each in the place of an earlier one of its name, device and case."""
        with self._database.write() as connection:
            recipes.put(connection, new, self._clock())

    # -- studies as a whole ----------------------------------------------------------------------

    def load(
        self,
        told: Sequence[int | Iterable[portable.Told]],
        environments: Mapping[str, Mapping[str, Any]],
        files: Iterable[tuple[str, bytes]],
    ) -> list[int]:
        """Write studies, all or none, and return their ids; a study that is here already is given as its id.

        ``environments`` come by hash, ``files`` with their kind; those that are here already stay as they
        are. The documents must have been checked before.
        """
        with self._database.write() as connection:
            for digest, document in environments.items():
                contents.describe(connection, digest, document, self._clock())
            direct = Direct.through(connection)
            for kind, content in files:
                lacked = partial(contents.missing, direct)
                contents.Files.of({kind: content}, lacked).insert(direct, self._clock())
            begun = [one if isinstance(one, int) else portable.begin(connection, one) for one in told]
            ids = {place: one if isinstance(one, int) else one.id for place, one in enumerate(begun)}
            for one in begun:
                if not isinstance(one, int):
                    portable.load(connection, one, ids)
        return list(ids.values())

    def delete(self, study_ids: Sequence[int] = (), session_ids: Sequence[int] = ()) -> pruning.Loose:
        """Delete studies and sessions with all their rows, then what nothing refers to, which is returned."""
        with self._database.write() as connection:
            contents.delete_alone(connection)
            pruning.delete_sessions(connection, session_ids)
            for study_id in study_ids:
                pruning.delete_study(connection, study_id)
            return pruning.delete_loose(connection)
