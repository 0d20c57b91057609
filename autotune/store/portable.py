"""A study as documents without a database's own numbers, and back: what an archive is made of.

A study is told as a stream of documents, each with the name of its part, in this order: one ``study``, then
any number of ``space_revisions``, ``segments``, ``sessions``, ``asks``, ``trials``, ``pauses``, ``readings``,
``reports`` and ``verdicts``. Documents refer to sessions by their position among those of the study, to
segments and trials by their numbers, and to other studies by a number (their *place*) that the caller gives
each. Each function runs in the caller's transaction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import sqlalchemy as sa

from autotune.store.documents import decode, encode
from autotune.store.schema import (
    asks,
    pauses,
    readings,
    reports,
    segments,
    sessions,
    space_revisions,
    studies,
    trials,
    verdicts,
)
from autotune.store.statements.studies import new_id

Document: TypeAlias = dict[str, Any]
Told: TypeAlias = tuple[str, Document]
"""The name of a part, and one of its documents."""

PARTS = (
    "study",
    "space_revisions",
    "segments",
    "sessions",
    "asks",
    "trials",
    "pauses",
    "readings",
    "reports",
    "verdicts",
)

_OWN = {"id", "study_id", "session_id", "segment_id", "parent_id", "trial_id"}
_AT_ONCE = 1000
"""Rows that are in memory at a time."""


def columns(table: sa.Table) -> list[sa.Column[Any]]:
    """The columns that a document of a table has."""
    return [column for column in table.c if column.name not in _OWN]


# -- out ----------------------------------------------------------------------------------------


def dump(connection: sa.Connection, study_id: int, places: Mapping[int, int]) -> Iterator[Told]:
    """Tell a study. ``places`` has the place of each study that is told along with it, by its id."""
    study = connection.execute(sa.select(studies).where(studies.c.id == study_id)).one()
    parent = {"parent": places.get(study.parent_id)}
    yield "study", _document(dict(study._mapping), studies) | parent
    for row in _rows(connection, space_revisions, study_id, space_revisions.c.id):
        yield "space_revisions", _document(row, space_revisions)
    numbers = {}
    for row in _rows(connection, segments, study_id, segments.c.number):
        numbers[row["id"]] = row["number"]
        yield "segments", _document(row, segments)
    order: dict[int, int] = {}
    for row in _rows(connection, sessions, study_id, sessions.c.id):
        order[row["id"]] = len(order)
        document = _document(row, sessions)
        yield "sessions", document | {"settings": renumbered(document["settings"], places.get)}
    for row in _rows(connection, asks, study_id, asks.c.id):
        yield "asks", {"session": order[row["session_id"]], **_document(row, asks)}
    labels = _labels(connection, places)
    yield from _dump_trials(connection, study_id, order, numbers, labels)
    for row in _rows(connection, verdicts, study_id, verdicts.c.id):
        yield "verdicts", {"session": order[row["session_id"]], **_document(row, verdicts)}


def _dump_trials(
    connection: sa.Connection,
    study_id: int,
    order: Mapping[int, int],
    numbers: Mapping[int, int],
    labels: Mapping[str, str],
) -> Iterator[Told]:
    for row in _rows(connection, trials, study_id, trials.c.number):
        place = {"session": order[row["session_id"]], "segment": numbers[row["segment_id"]]}
        document: Document = place | _document(row, trials)
        document["metrics"] = decode(document["metrics"])
        document["reason"] = _relabelled(document["reason"], labels)
        yield "trials", document
    for row in _rows_of(connection, _of_trials(pauses, study_id).order_by(pauses.c.told)):
        document = {"trial": row["number"], **_document(row, pauses)}
        yield "pauses", document | {"metrics": decode(document["metrics"])}
    query = _of_trials(readings, study_id).order_by(trials.c.number, readings.c.seq)
    for number, these in groupby(connection.execute(query).yield_per(_AT_ONCE), lambda row: int(row.number)):
        taken = [[r.metric, _number(r.value), _number(r.at), r.discarded, r.context] for r in these]
        yield "readings", {"trial": number, "readings": taken}
    for row in _rows_of(connection, _of_trials(reports, study_id).order_by(reports.c.id)):
        yield "reports", {"trial": row["number"], **_document(row, reports)}


def _of_trials(table: sa.Table, study_id: int) -> sa.Select[Any]:
    """The rows of a table that refer to trials of a study, each with the number of its trial."""
    whole = sa.select(trials.c.number, table).join(trials, trials.c.id == table.c.trial_id)
    return whole.where(trials.c.study_id == study_id)


def _rows(
    connection: sa.Connection, table: sa.Table, study_id: int, by: sa.Column[Any]
) -> Iterator[Mapping[str, Any]]:
    return _rows_of(connection, sa.select(table).where(table.c.study_id == study_id).order_by(by))


def _rows_of(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[Mapping[str, Any]]:
    for row in connection.execute(query).yield_per(_AT_ONCE):
        yield dict(row._mapping)


def _document(row: Mapping[str, Any], table: sa.Table) -> Document:
    return {column.name: row[column.name] for column in columns(table)}


def _number(value: float) -> float | None:
    """A number for a document, in which NaN is null."""
    return None if math.isnan(value) else value


# -- names of other studies -----------------------------------------------------------------------


def renumbered(settings: Document, place: Callable[[int], int | None]) -> Document:
    """Settings of a session with the id of each source (an earlier study) replaced by ``place`` of it.

    A source whose study is not known (any more) becomes ``None``.
    """
    sources = settings.get("sources")
    if not isinstance(sources, list):
        return settings
    return settings | {"sources": [source | {"study": place(source["study"])} for source in sources]}


def _labels(connection: sa.Connection, places: Mapping[int, int]) -> dict[str, str]:
    """``{label here: label in an archive}`` for each study that has a place."""
    query = sa.select(studies.c.id, studies.c.name).where(studies.c.id.in_(sorted(places)))
    return {f"{name}#{number}": f"study:{places[number]}" for number, name in connection.execute(query)}


def _relabelled(reason: Document, labels: Mapping[str, str]) -> Document:
    """The reason of a proposal with other labels for the studies that it learned from."""
    sources = reason.get("sources")
    if not isinstance(sources, dict):
        return reason
    return reason | {"sources": {labels.get(name, name): weight for name, weight in sources.items()}}


# -- in -----------------------------------------------------------------------------------------


def find_same(connection: sa.Connection, study: Mapping[str, Any]) -> int | None:
    """The id of the study that a ``study`` document describes; ``None`` where the store does not have it."""
    c = studies.c
    same = (c.name == study["name"], c.key == study["key"], c.created_at == study["created_at"])
    found: int | None = connection.scalar(sa.select(sa.func.max(c.id)).where(*same))
    return found


@dataclass(frozen=True)
class Begun:
    """A study of which only the row in ``studies`` is written, so that others can refer to it."""

    id: int
    parent: int | None
    """The place of its parent among the studies that are told together."""
    rest: Iterator[Told]


def begin(connection: sa.Connection, told: Iterable[Told]) -> Begun:
    """Write the row of a study, which comes first in what is ``told``.

    The rows of all studies are written before anything that refers to them, since studies may refer to each
    other in any order: the one that began first may later have learned from one that began after it.
    """
    rest = iter(told)
    _, document = next(rest)
    row = dict(document)
    parent = row.pop("parent", None)
    return Begun(_insert(connection, studies, row), parent, rest)


def load(connection: sa.Connection, begun: Begun, ids: Mapping[int, int]) -> None:
    """Write the rest of a study. ``ids`` has the ids of all studies told with it, by their places.

    The documents must have been checked before; they are not checked here.
    """
    if begun.parent is not None and begun.parent in ids:
        own = studies.c.id == begun.id
        connection.execute(sa.update(studies).where(own).values(parent_id=ids[begun.parent]))
    loading = _Loading(connection, begun.id, ids)
    for part, documents in groupby(begun.rest, lambda one: one[0]):
        loading.take(part, (document for _, document in documents))


class _Loading:
    """One study on its way into the tables."""

    def __init__(self, connection: sa.Connection, study_id: int, ids: Mapping[int, int]) -> None:
        self._connection = connection
        self.study_id = study_id
        self._ids = ids
        self._sessions: dict[int, int] = {}
        self._segments: dict[int, int] = {}
        self._trials: dict[int, int] = {}
        places = {number: place for place, number in ids.items()}
        self._labels = {told: here for here, told in _labels(connection, places).items()}

    def take(self, part: str, documents: Iterator[Document]) -> None:
        match part:
            case "segments":
                for document in documents:
                    self._segments[document["number"]] = _insert(
                        self._connection, segments, self._own(document)
                    )
            case "sessions":
                for document in documents:
                    settings = renumbered(document["settings"], self._ids.get)
                    moved = self._own(document) | {"settings": settings}
                    self._sessions[len(self._sessions)] = _insert(self._connection, sessions, moved)
            case "trials":
                self._insert_many(trials, map(self._trial, documents))
                own = sa.select(trials.c.number, trials.c.id).where(trials.c.study_id == self.study_id)
                self._trials = {row.number: row.id for row in self._connection.execute(own)}
            case "pauses":
                self._insert_many(pauses, map(self._pause, documents))
            case "readings":
                self._insert_many(readings, (row for one in documents for row in self._readings(one)))
            case "reports":
                self._insert_many(
                    reports, ({"trial_id": self._trials[d.pop("trial")], **d} for d in documents)
                )
            case "space_revisions":
                self._insert_many(space_revisions, map(self._own, documents))
            case "asks" | "verdicts":
                table = asks if part == "asks" else verdicts
                self._insert_many(table, (self._in_session(document) for document in documents))
            case _:
                raise ValueError(f"a study has no part {part!r}")

    def _own(self, document: Document) -> Document:
        return document | {"study_id": self.study_id}

    def _in_session(self, document: Document) -> Document:
        session = self._sessions[document.pop("session")]
        return self._own(document) | {"session_id": session}

    def _trial(self, document: Document) -> Document:
        segment = self._segments[document.pop("segment")]
        moved = self._in_session(document) | {"segment_id": segment, "metrics": encode(document["metrics"])}
        return moved | {"reason": _relabelled(document["reason"], self._labels)}

    def _pause(self, document: Document) -> Document:
        trial = self._trials[document.pop("trial")]
        return self._own(document) | {"trial_id": trial, "metrics": encode(document["metrics"])}

    def _readings(self, document: Document) -> Iterator[Document]:
        trial = self._trials[document["trial"]]
        for seq, (metric, value, at, discarded, context) in enumerate(document["readings"]):
            yield {
                "trial_id": trial,
                "seq": seq,
                "metric": metric,
                "value": value,
                "at": at,
                "discarded": discarded,
                "context": context,
            }

    def _insert_many(self, table: sa.Table, rows: Iterable[Document]) -> None:
        """Many rows with one statement, since building a statement takes longer than writing a row."""
        for some in _in_parts(rows):
            self._connection.execute(sa.insert(table), some)


def _insert(connection: sa.Connection, table: sa.Table, row: Document) -> int:
    return new_id(connection.execute(sa.insert(table).values(**row)))


def _in_parts(rows: Iterable[Document]) -> Iterator[Sequence[Document]]:
    part: list[Document] = []
    for row in rows:
        part.append(row)
        if len(part) == _AT_ONCE:
            yield part
            part = []
    if part:
        yield part
