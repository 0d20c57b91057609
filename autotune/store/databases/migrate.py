"""Bringing a database's schema up to date.

One cheap SELECT tells whether there is anything to do; only then is alembic loaded, which is slow to import.
The migrations say how tables come to be. An empty SQLite database gets the tables that they lead to, exactly
and at once, so that a first search need not wait for the migrations.
"""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from autotune.errors import StoreError
from autotune.store.databases.address import Address
from autotune.store.schema import VERSION, VERSION_TABLE, metadata

MIGRATIONS = Path(__file__).parent.parent / "migrations"

_LOCK = 0x61757475  # an arbitrary number that every autotune takes for its advisory lock ("autu")

_ALEMBIC = threading.Lock()
"""Held while alembic runs: its context is one for the whole process, so that of two threads one would migrate
the other's database. Whoever waits for it has its database already, so no circle can come of it."""


def version_of(connection: sa.Connection) -> str | None:
    """The version of the schema, or ``None`` where there is none yet."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    version: str | None = connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}"))
    return version


def is_current(connection: sa.Connection, address: Address) -> bool:
    """Whether the schema is as this program knows it; ``False`` where it is older or not there.

    Raises :class:`StoreError` where the schema is newer, or the database belongs to another program.
    """
    version = version_of(connection)
    if version is None and (clash := _clashing(connection)):
        # Another process may have made them since the first look.
        version = version_of(connection)
        if version is None:
            names = ", ".join(clash[:4]) + (" ..." if len(clash) > 4 else "")
            raise StoreError(
                f"the store {address.where} holds the tables of another program ({names}). "
                "It was left as it is. Choose another with --store."
            )
    if version is not None and version > VERSION:
        raise StoreError(
            f"the store {address.where} was written by a newer autotune (schema {version}; this one "
            f"knows {VERSION}). It was left as it is. Install a newer autotune, or choose another store."
        )
    return version == VERSION


def upgrade(connection: sa.Connection, address: Address, *, migrations: Path = MIGRATIONS) -> None:
    """Run the missing migrations inside the transaction that ``connection`` is in: all of them or none."""
    if connection.dialect.name == "postgresql":  # SQLite's writer is alone anyway
        connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    if migrations == MIGRATIONS and is_current(connection, address):
        return  # another process was quicker
    if migrations == MIGRATIONS and connection.dialect.name == "sqlite" and version_of(connection) is None:
        _make(connection)
        return
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _ALEMBIC:
        command.upgrade(config, "head")


def _make(connection: sa.Connection) -> None:
    """The tables that all migrations end with, in an empty database of SQLite."""
    for statement in _statements_of_all_tables():
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} (version_num) VALUES (?)", (VERSION,))


@cache
def _statements_of_all_tables() -> tuple[str, ...]:
    """What makes them in SQLite. To put it into words takes longer than to do it."""
    said: list[str] = []

    def say(statement: Any, *_: object, **__: object) -> None:
        said.append(str(statement.compile(dialect=engine.dialect)))

    engine = sa.create_mock_engine("sqlite://", say)
    metadata.create_all(engine, checkfirst=False)
    # As alembic makes it.
    column = sa.Column("version_num", sa.String(32), nullable=False)
    key = sa.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc")
    sa.Table(VERSION_TABLE, sa.MetaData(), column, key).create(engine, checkfirst=False)
    return tuple(said)


def _clashing(connection: sa.Connection) -> list[str]:
    """Tables that cannot stand beside ours: any in a file of SQLite, or those with one of our names."""
    there = set(sa.inspect(connection).get_table_names())
    return sorted(there if connection.dialect.name == "sqlite" else there & set(metadata.tables))
