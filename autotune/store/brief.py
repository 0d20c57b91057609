"""Trials without the fields that only a view of a single trial needs: for tables and figures of a study.

A study may have a hundred thousand trials, each with up to 8 KiB of what its program printed. So they are
read in parts and without that output, and no part is kept once the caller asks for the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from autotune.measure.outcome import Estimate
from autotune.status import Status
from autotune.store.documents import GarbledError, decode_metrics, encode
from autotune.store.records import Document
from autotune.store.schema import SEARCHED, trials

MOST_OF_A_MESSAGE = 500
"""Characters of a message that are read."""


@dataclass(frozen=True, slots=True)
class BriefTrial:
    """These fields of a :class:`~autotune.store.records.TrialRecord`; the message is cut."""

    id: int
    number: int
    session_id: int
    segment_id: int
    purpose: str
    configuration: Document
    hash: str
    status: str
    strategy: str
    reason: Document
    told: int | None
    proposed_at: float
    started_at: float | None
    finished_at: float | None
    phases: Document
    metrics: dict[str, Estimate]
    message: str
    peak_memory: int | None
    facts: Document
    environment_hash: str


_FIELDS = tuple(BriefTrial.__dataclass_fields__)
_METRICS = _FIELDS.index("metrics")


def _column(name: str) -> sa.ColumnElement[Any]:
    if name == "message":
        return sa.func.substr(trials.c.message, 1, MOST_OF_A_MESSAGE)
    return trials.c[name]


_BETWEEN = (
    sa.select(*map(_column, _FIELDS))
    .where(
        trials.c.study_id == sa.bindparam("study_id"),
        trials.c.number >= sa.bindparam("first"),
        trials.c.number < sa.bindparam("past"),
    )
    .order_by(trials.c.number)
)


def brief_between(connection: sa.Connection, study_id: int, first: int, past: int) -> Iterator[BriefTrial]:
    """The study's trials, for whatever purpose, numbered ``first`` to ``past - 1``."""
    wanted = {"study_id": study_id, "first": first, "past": past}
    for row in connection.execute(_BETWEEN, wanted).all():
        values = list(row)
        values[_METRICS] = decode_metrics(values[_METRICS])
        yield BriefTrial(*values)


def values_of(
    connection: sa.Connection, study_id: int, names: Sequence[str]
) -> list[tuple[int, tuple[float, ...]]]:
    """``(number, values)`` of these metrics for each search trial that succeeded and has them all."""
    query = sa.select(trials.c.number, trials.c.metrics).where(
        trials.c.study_id == study_id, trials.c.status == Status.OK.value, sa.text(SEARCHED)
    )
    marks = [f'{encode(name)}:{{"value":' for name in names]
    found = []
    for number, text in connection.execute(query.order_by(trials.c.number)).all():
        values = [value for mark in marks if (value := _value_behind(mark, text)) is not None]
        if len(values) == len(marks):
            found.append((number, tuple(values)))
    return found


def facts_with(connection: sa.Connection, study_id: int, name: str) -> list[tuple[int, Document]]:
    """``(number, facts)`` of each search trial that has the fact ``name``, by number.

    The database leaves out the others, which are nearly all trials of a long study.
    """
    mentioned = sa.type_coerce(trials.c.facts, sa.Text).contains(f"{encode(name)}:", autoescape=True)
    query = sa.select(trials.c.number, trials.c.facts).where(
        trials.c.study_id == study_id, sa.text(SEARCHED), mentioned
    )
    found = connection.execute(query.order_by(trials.c.number)).all()
    return [(number, facts) for number, facts in found if name in facts]


def made_from(connection: sa.Connection, study_id: int, digest: str) -> list[int]:
    """The numbers of the search trials whose reason has this hash for a parent."""
    mentioned = sa.type_coerce(trials.c.reason, sa.Text).contains(encode(digest), autoescape=True)
    query = sa.select(trials.c.number, trials.c.reason).where(
        trials.c.study_id == study_id, sa.text(SEARCHED), mentioned
    )
    found = connection.execute(query.order_by(trials.c.number)).all()
    return [number for number, reason in found if digest in (reason.get("parent"), reason.get("other"))]


def tally(connection: sa.Connection, study_id: int) -> dict[tuple[int, str, str], int]:
    """How many trials the study has of each session, purpose and status."""
    kinds = (trials.c.session_id, trials.c.purpose, trials.c.status)
    query = sa.select(*kinds, sa.func.count()).where(trials.c.study_id == study_id).group_by(*kinds)
    return {(session, purpose, status): n for session, purpose, status, n in connection.execute(query)}


def _value_behind(mark: str, text: str) -> float | None:
    """The number behind ``mark`` in what ``encode_metrics`` wrote; ``None`` where it is not there.

    Ten times as fast as decoding all of ``text``. A quotation mark inside a name has a backslash before it,
    and the one that begins a name has none.
    """
    at = text.find(mark)
    while at > 0 and text[at - 1] == "\\":
        at = text.find(mark, at + 1)
    if at < 0:
        return None
    try:
        return float(text[at + len(mark) : text.index(",", at + len(mark))])
    except ValueError as error:
        raise GarbledError(error) from error
