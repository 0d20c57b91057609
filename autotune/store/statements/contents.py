"""What is stored once and named by its hash: artefacts (files' contents) and environments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from autotune.errors import InputError
from autotune.store.documents import content_hash, pack, unpack
from autotune.store.schema import artifacts, environments
from autotune.store.statements.prepared import Direct, Prepared, Values, insert_into

_PRUNING = int.from_bytes(b"autotune")
"""An advisory lock, any number that nobody else uses: shared by all that write contents, and held alone by
whoever deletes loose ones. A transaction takes it before every other lock, so that there is no deadlock."""
_LOOSE_STAYS = Prepared(sa.select(sa.func.pg_advisory_xact_lock_shared(sa.literal(_PRUNING, sa.BigInteger))))

_KNOWN = Prepared(sa.select(artifacts.c.hash).where(artifacts.c.hash == sa.bindparam("hash")))


def keep_loose(direct: Direct) -> None:
    """Until the transaction ends, nobody deletes what nothing refers to yet. SQLite has only one writer."""
    if direct.dialect.name == "postgresql":
        _LOOSE_STAYS.rows(direct, {})


def delete_alone(connection: sa.Connection) -> None:
    """Until the transaction ends nobody begins to refer to contents."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.literal(_PRUNING, sa.BigInteger))))


def missing(direct: Direct, hashes: Iterable[str]) -> list[str]:
    """Those of ``hashes`` that the store does not hold yet."""
    return [digest for digest in hashes if _KNOWN.row(direct, {"hash": digest}) is None]


_INSERT_ARTIFACT = Prepared(
    lambda dialect: _insert_once(dialect, artifacts), columns=[c.name for c in artifacts.c]
)


@dataclass(frozen=True)
class Files:
    """Files to be stored, those that the store lacked a moment ago already packed.

    They are packed outside of any transaction, so that compressing holds nobody up.
    """

    hashes: Mapping[str, str]
    """By kind."""
    plain: Mapping[str, tuple[str, bytes]]
    """Kind and content, by hash."""
    packed: Mapping[str, Values]
    """Their rows but for the time, by hash."""

    @classmethod
    def of(cls, files: Mapping[str, bytes], lacked: Callable[[Iterable[str]], Iterable[str]]) -> Self:
        """``files`` by kind. ``lacked`` says which hashes the store does not hold."""
        hashes = {kind: content_hash(content) for kind, content in files.items()}
        plain = {hashes[kind]: (kind, content) for kind, content in files.items()}
        return cls(hashes, plain, {d: _packed(d, *plain[d]) for d in (lacked(plain) if plain else ())})

    def insert(self, direct: Direct, now: float) -> None:
        """Store them, as part of the transaction that refers to them.

        One that was there when we looked may have been deleted since, because nothing referred to it.
        """
        if not self.plain:
            return
        keep_loose(direct)
        gone = missing(direct, [digest for digest in self.plain if digest not in self.packed])
        rows = {**self.packed, **{digest: _packed(digest, *self.plain[digest]) for digest in gone}}
        # Sorted, so that two writers cannot wait for each other.
        _INSERT_ARTIFACT.run_for_each(direct, [{**rows[d], "created_at": now} for d in sorted(rows)])


def _packed(digest: str, kind: str, content: bytes) -> Values:
    encoding, stored = pack(content)
    return {"hash": digest, "kind": kind, "size": len(content), "encoding": encoding, "content": stored}


def read_artifact(connection: sa.Connection, digest: str) -> bytes:
    query = sa.select(artifacts.c.encoding, artifacts.c.content).where(artifacts.c.hash == digest)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise InputError(f"the store holds no artefact {digest!r}")
    return unpack(row.encoding, row.content)


def kind_of(connection: sa.Connection, digest: str) -> str | None:
    """The kind of the artefact with this hash; ``None`` where there is none."""
    kind: str | None = connection.scalar(sa.select(artifacts.c.kind).where(artifacts.c.hash == digest))
    return kind


def describe(
    connection: sa.Connection, digest: str, environment: Mapping[str, Any] | None, now: float
) -> None:
    """Keep an environment, if one is given, in the transaction that refers to it: before that it could be
    deleted as loose."""
    if environment is not None:
        keep_loose(Direct.through(connection))
        row = {"hash": digest, "document": environment, "created_at": now}
        connection.execute(_insert_once(connection.dialect, environments), row)


def read_environment(connection: sa.Connection, digest: str) -> Mapping[str, Any]:
    """Empty where there is none of this hash."""
    query = sa.select(environments.c.document).where(environments.c.hash == digest)
    row = connection.execute(query).one_or_none()
    return {} if row is None else row.document


def _insert_once(dialect: Dialect, table: sa.Table) -> sa.Insert:
    """An insert that leaves a row which is there already as it is."""
    once: sa.Insert = insert_into(dialect, table).on_conflict_do_nothing()
    return once
