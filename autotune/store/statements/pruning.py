"""Statements that delete: whole studies, replicates of verifications, and what nobody refers to.

Each function runs in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from autotune.store.schema import (
    artifacts,
    asks,
    environments,
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
from autotune.store.statements.parts import in_parts

WRITTEN, TAKEN_IN = "archive manifest", "archive manifest, imported"
"""Kinds of artefacts that are kept although nothing refers to them: the manifests of archives that were
written from a store, and of those that were imported into it."""


@dataclass(frozen=True)
class Loose:
    """What nothing in the store refers to."""

    artifacts: Mapping[str, int] = field(default_factory=dict)
    """Bytes as stored, by hash."""
    environments: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(self.artifacts.values())


def find_loose(connection: sa.Connection, without: Collection[int] = ()) -> Loose:
    """What nothing refers to, or would if the studies ``without`` were gone."""
    gone = sorted(without)
    own = [table.c.study_id.not_in(gone) for table in (segments, trials, sessions)]
    referred = set[str]()
    for column, condition in ((segments.c.artifacts, own[0]), (trials.c.artifacts, own[1])):
        query = sa.select(column).where(condition, sa.cast(column, sa.Text) != "{}")
        for (roles,) in connection.execute(query):
            referred.update(roles.values())
    size = sa.func.length(artifacts.c.content)
    stored = connection.execute(
        sa.select(artifacts.c.hash, size).where(artifacts.c.kind.not_in((WRITTEN, TAKEN_IN)))
    )
    named = set[str]()
    places = (
        (sessions.c.environment_hash, own[2]),
        (trials.c.environment_hash, own[1]),
        (studies.c.environment_hash, studies.c.id.not_in(gone)),
    )
    for column, condition in places:
        named.update(connection.scalars(sa.select(column).where(condition).distinct()))
    known = connection.scalars(sa.select(environments.c.hash).order_by(environments.c.hash))
    return Loose(
        {digest: number for digest, number in stored if digest not in referred},
        tuple(digest for digest in known if digest not in named),
    )


def delete_loose(connection: sa.Connection) -> Loose:
    """Delete what nothing refers to, and say what that was."""
    loose = find_loose(connection)
    _delete(connection, artifacts.c.hash, list(loose.artifacts))
    _delete(connection, environments.c.hash, list(loose.environments))
    return loose


def delete_study(connection: sa.Connection, study_id: int) -> None:
    """Delete a study with all its rows. Studies that followed it have no parent then."""
    connection.execute(sa.update(studies).where(studies.c.parent_id == study_id).values(parent_id=None))
    _delete_trials(connection, trials.c.study_id == study_id)
    for table in (asks, verdicts, sessions, segments, space_revisions):
        connection.execute(sa.delete(table).where(table.c.study_id == study_id))
    connection.execute(sa.delete(studies).where(studies.c.id == study_id))


def delete_sessions(connection: sa.Connection, session_ids: Sequence[int]) -> None:
    """Delete sessions with their trials."""
    for these in in_parts(session_ids):
        _delete_trials(connection, trials.c.session_id.in_(these))
        connection.execute(sa.delete(sessions).where(sessions.c.id.in_(these)))


def _delete_trials(connection: sa.Connection, which: sa.ColumnElement[bool]) -> None:
    """Delete the trials that meet the condition ``which``, with all rows that refer to them."""
    own = sa.select(trials.c.id).where(which)
    for table in (readings, reports, pauses):
        connection.execute(sa.delete(table).where(table.c.trial_id.in_(own)))
    connection.execute(sa.delete(trials).where(which))


def _delete(connection: sa.Connection, column: sa.Column[str], values: Sequence[str]) -> None:
    for some in in_parts(values):
        connection.execute(sa.delete(column.table).where(column.in_(some)))
