"""Statements on studies, their segments, sessions and verdicts. Each runs in the caller's transaction."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from autotune.errors import InputError, Problem, nearest
from autotune.store.records import (
    NewStudy,
    SegmentRecord,
    SessionRecord,
    SpaceRevision,
    StudyRecord,
    VerdictRecord,
)
from autotune.store.schema import OPEN, segments, sessions, space_revisions, studies, trials, verdicts
from autotune.store.statements.prepared import Direct, Prepared

_STUDY = [c for c in studies.c if c.name not in ("next_number", "next_told")]

ENDED = 0.0
"""The lease of a trial whose session was closed: out, whatever the time."""


# -- studies -------------------------------------------------------------------------------------


def create_study(connection: sa.Connection, new: NewStudy, now: float) -> StudyRecord:
    fields = vars(new) | {"metrics": list(new.metrics), "created_at": now}
    result = connection.execute(sa.insert(studies).values(**fields, next_number=0, next_told=0))
    return StudyRecord(id=new_id(result), **fields)


def find_or_create_study(
    connection: sa.Connection, new: NewStudy, newer_than: int, now: float
) -> tuple[StudyRecord, bool]:
    """The newest study of this name and key with a larger id, or a new one; and whether it is new."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("LOCK TABLE studies IN SHARE ROW EXCLUSIVE MODE"))
    found = find_study(connection, new.name, new.key)
    if found is not None and found.id > newer_than:
        return found, False
    return create_study(connection, new, now), True


def list_studies(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[StudyRecord]:
    """Oldest first."""
    rows = connection.execute(sa.select(*_STUDY).where(*conditions).order_by(studies.c.id)).all()
    counts = _counts(connection, [row.id for row in rows])
    return [StudyRecord(**row._mapping, counts=counts[row.id]) for row in rows]


def named(name: str | None) -> list[sa.ColumnElement[bool]]:
    """The condition that picks the studies of this name; none where it is ``None``."""
    return [] if name is None else [studies.c.name == name]


def find_study(connection: sa.Connection, name: str, key: str) -> StudyRecord | None:
    """The newest study of this name and key."""
    newest = sa.select(sa.func.max(studies.c.id)).where(studies.c.name == name, studies.c.key == key)
    found = list_studies(connection, studies.c.id == newest.scalar_subquery())
    return found[0] if found else None


def look_up_study(connection: sa.Connection, wanted: str | int | None) -> StudyRecord:
    """By name (the newest of it), ``name#id``, ``#id`` or id; the newest of all for ``None``."""
    known = connection.execute(sa.select(studies.c.id, studies.c.name).order_by(studies.c.id)).all()
    if not known:
        raise InputError(
            Problem("there is no study in this store yet", hint="make one with: autotune search SPACE")
        )
    chosen = _choose([(row.id, row.name) for row in known], wanted)
    if chosen is None:
        raise InputError(_unknown([(row.id, row.name) for row in known], str(wanted)))
    return list_studies(connection, studies.c.id == chosen)[0]


_MOST_NAMED = 6
"""The most studies that a message lists."""


def _unknown(known: Sequence[tuple[int, str]], wanted: str) -> Problem:
    """The problem that a study is not there. Lists those that are, newest first; as ids if an id is wrong."""
    name, newest_first = wanted.partition("#")[0], list(reversed(known))
    names = list(dict.fromkeys(own for _, own in newest_first))
    if name in names or wanted.removeprefix("#").isdigit():
        hint = ""
        found = [f"{own}#{i}" for i, own in newest_first if own == name or name not in names]
    else:
        hint, found = nearest(name, names), names
    expected = ", ".join(found[:_MOST_NAMED]) + (", ..." if len(found) > _MOST_NAMED else "")
    return Problem(f"there is no study {wanted!r} in this store", expected=expected, hint=hint)


def _choose(known: Sequence[tuple[int, str]], wanted: str | int | None) -> int | None:
    if wanted is None:
        return known[-1][0]
    if isinstance(wanted, str):
        newest = {name: number for number, name in known}
        if wanted in newest:
            return newest[wanted]
        parts = re.fullmatch(r"(?:(?P<name>.*)#)?(?P<id>\d{1,18})", wanted.strip(), re.DOTALL)
        if parts is None:
            return None
        name, number = parts["name"] or "", int(parts["id"])
        return number if any(i == number and name in ("", n) for i, n in known) else None
    return wanted if any(i == wanted for i, _ in known) else None


def update_space(
    connection: sa.Connection,
    study_id: int,
    spec_text: str,
    document: Mapping[str, Any],
    space_hash: str,
    now: float,
) -> None:
    """Replace the space file of a study; where its space differs, the earlier one is kept as a revision."""
    lock_study(Direct.through(connection), study_id)
    columns = (studies.c.id, sa.literal(now), studies.c.spec_text, studies.c.document, studies.c.space_hash)
    kept = ["study_id", "replaced_at", "spec_text", "document", "space_hash"]
    connection.execute(
        sa.insert(space_revisions).from_select(
            kept, sa.select(*columns).where(studies.c.id == study_id, studies.c.space_hash != space_hash)
        )
    )
    connection.execute(
        sa.update(studies)
        .where(studies.c.id == study_id)
        .values(spec_text=spec_text, document=document, space_hash=space_hash)
    )


def update_key(connection: sa.Connection, study_id: int, key: str, identity: Mapping[str, Any]) -> None:
    """Replace the key of a study, and the identity that it follows from; its space may be another by now."""
    lock_study(Direct.through(connection), study_id)
    document = connection.scalar(sa.select(studies.c.document).where(studies.c.id == study_id))
    assert document is not None
    values = {"key": key, "document": {**document, "identity": identity}}
    connection.execute(sa.update(studies).where(studies.c.id == study_id).values(**values))


def list_space_revisions(connection: sa.Connection, study_id: int) -> list[SpaceRevision]:
    columns = [c for c in space_revisions.c if c.name != "id"]
    query = sa.select(*columns).where(space_revisions.c.study_id == study_id).order_by(space_revisions.c.id)
    return [SpaceRevision(**row._mapping) for row in connection.execute(query)]


def count_trials(connection: sa.Connection, study_id: int) -> dict[str, int]:
    """How many search trials of the study stand in each status."""
    return _counts(connection, [study_id])[study_id]


def _counts(connection: sa.Connection, study_ids: Sequence[int]) -> defaultdict[int, dict[str, int]]:
    counts: defaultdict[int, dict[str, int]] = defaultdict(dict)
    t = trials.c
    query = sa.select(t.study_id, t.status, sa.func.count()).where(t.purpose == "search")
    if len(study_ids) == 1:
        query = query.where(t.study_id == study_ids[0])
    for study_id, status, number in connection.execute(query.group_by(t.study_id, t.status)):
        counts[study_id][status] = number
    return counts


_LOCK_STUDY = Prepared(
    sa.select(studies.c.next_number)
    .where(studies.c.id == sa.bindparam("study_id"))
    .with_for_update(key_share=True)  # rows that refer to the study may still be added beside
)


def lock_study(direct: Direct, study_id: int) -> int:
    """Hold the study until the transaction ends; its next trial number.

    SQLite has only one writer, so that there it only reads the number.
    """
    found = _LOCK_STUDY.row(direct, {"study_id": study_id})
    if found is None:
        raise InputError(f"there is no study #{study_id} in this store")
    return int(found[0])


# -- segments ------------------------------------------------------------------------------------


def open_segment(
    connection: sa.Connection,
    study_id: int,
    document: Mapping[str, Any],
    hashes: Mapping[str, str],
    reason: str,
    unless: Callable[[SegmentRecord], bool],
    now: float,
) -> SegmentRecord:
    """A new segment, or the latest one if that will do."""
    lock_study(Direct.through(connection), study_id)
    latest = latest_segment(connection, study_id)
    if latest is not None and unless(latest):
        return latest
    fields: dict[str, Any] = {
        "study_id": study_id,
        "number": 0 if latest is None else latest.number + 1,
        "document": document,
        "artifacts": hashes,
        "reason": reason,
        "created_at": now,
    }
    return SegmentRecord(id=new_id(connection.execute(sa.insert(segments).values(**fields))), **fields)


def latest_segment(connection: sa.Connection, study_id: int) -> SegmentRecord | None:
    query = sa.select(segments).where(segments.c.study_id == study_id)
    row = connection.execute(query.order_by(segments.c.number.desc()).limit(1)).one_or_none()
    return None if row is None else SegmentRecord(**row._mapping)


def read_segment(connection: sa.Connection, segment_id: int) -> SegmentRecord:
    row = connection.execute(sa.select(segments).where(segments.c.id == segment_id)).one_or_none()
    if row is None:
        raise InputError(f"there is no segment {segment_id} in this store")
    return SegmentRecord(**row._mapping)


# -- sessions and verdicts -----------------------------------------------------------------------


def open_session(connection: sa.Connection, now: float, **fields: Any) -> int:
    return new_id(
        connection.execute(sa.insert(sessions).values(**fields, started_at=now, finished_at=None, reason=""))
    )


def close_session(connection: sa.Connection, session_id: int, reason: str, now: float) -> None:
    """The first close counts. The leases of what the session still holds end with it."""
    closing = sa.update(sessions).where(sessions.c.id == session_id, sessions.c.finished_at.is_(None))
    connection.execute(closing.values(finished_at=now, reason=reason))
    study_id = sa.select(sessions.c.study_id).where(sessions.c.id == session_id).scalar_subquery()
    held = (
        sa.select(trials.c.id)
        .where(trials.c.study_id == study_id, trials.c.session_id == session_id, sa.text(OPEN))
        .order_by(trials.c.id)
        .with_for_update()
    )
    connection.execute(sa.update(trials).where(trials.c.id.in_(held)).values(lease_until=ENDED))


def list_sessions(connection: sa.Connection, study_id: int) -> list[SessionRecord]:
    query = sa.select(sessions).where(sessions.c.study_id == study_id).order_by(sessions.c.id)
    return [SessionRecord(**row._mapping) for row in connection.execute(query)]


def save_verdict(
    connection: sa.Connection, study_id: int, session_id: int, document: Mapping[str, Any], now: float
) -> int:
    fields = {"study_id": study_id, "session_id": session_id, "document": document, "created_at": now}
    return new_id(connection.execute(sa.insert(verdicts).values(**fields)))


def list_verdicts(connection: sa.Connection, study_id: int) -> list[VerdictRecord]:
    query = sa.select(verdicts).where(verdicts.c.study_id == study_id).order_by(verdicts.c.id)
    return [VerdictRecord(**row._mapping) for row in connection.execute(query)]


def new_id(result: sa.CursorResult[Any]) -> int:
    """The id of the one row that was inserted."""
    key = result.inserted_primary_key
    assert key is not None  # one row was inserted, and every such table has a key
    number: int = key[0]
    return number
