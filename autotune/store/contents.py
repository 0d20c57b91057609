"""What is stored once and named by its hash: artefacts (files' contents) and environments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from autotune.errors import InputError
from autotune.store.documents import content_hash, pack, unpack
from autotune.store.prepared import Direct, Prepared
from autotune.store.schema import artifacts, environments


@dataclass(frozen=True)
class Packed:
    """An artefact made ready outside of any transaction, so that compressing holds nobody up."""

    hash: str
    kind: str
    size: int
    encoding: str
    content: bytes


def prepare(content: bytes, kind: str) -> Packed:
    encoding, stored = pack(content)
    return Packed(content_hash(content), kind, len(content), encoding, stored)


def missing(connection: sa.Connection, hashes: Iterable[str]) -> set[str]:
    """Those of ``hashes`` that the store does not hold yet."""
    wanted = set(hashes)
    query = sa.select(artifacts.c.hash).where(artifacts.c.hash.in_(sorted(wanted)))
    return wanted - set(connection.scalars(query))


_INSERT_ARTIFACT = Prepared(
    lambda dialect: _insert_once(dialect, artifacts), columns=[c.name for c in artifacts.c]
)


def insert_artifacts(direct: Direct, packed: Sequence[Packed], now: float) -> None:
    """Store what is not there yet; sorted, so that two writers cannot wait for each other."""
    if packed:
        ordered = sorted(packed, key=lambda p: p.hash)
        _INSERT_ARTIFACT.run_for_each(direct, [vars(p) | {"created_at": now} for p in ordered])


def read_artifact(connection: sa.Connection, digest: str) -> bytes:
    query = sa.select(artifacts.c.encoding, artifacts.c.content).where(artifacts.c.hash == digest)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise InputError(f"the store holds no artefact {digest!r}")
    return unpack(row.encoding, row.content)


def kind_of(connection: sa.Connection, digest: str) -> str | None:
    """Of the artefact with this hash; ``None`` where there is none."""
    kind: str | None = connection.scalar(sa.select(artifacts.c.kind).where(artifacts.c.hash == digest))
    return kind


def insert_environment(
    connection: sa.Connection, digest: str, document: Mapping[str, Any], now: float
) -> None:
    row = {"hash": digest, "document": document, "created_at": now}
    connection.execute(_insert_once(connection.dialect, environments), row)


def read_environment(connection: sa.Connection, digest: str) -> Mapping[str, Any]:
    """Empty where there is none of this hash."""
    query = sa.select(environments.c.document).where(environments.c.hash == digest)
    row = connection.execute(query).one_or_none()
    return {} if row is None else row.document


def _insert_once(dialect: Dialect, table: sa.Table) -> sa.Insert:
    """An insert that leaves a row which is there already as it is."""
    if dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as insert_postgresql

        return insert_postgresql(table).on_conflict_do_nothing()
    from sqlalchemy.dialects.sqlite import insert as insert_sqlite

    return insert_sqlite(table).on_conflict_do_nothing()
