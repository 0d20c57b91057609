"""Connections: how each database is set up, and how a transaction begins on it.

SQLite is in WAL mode, so that readers and the one writer never wait for each other, with
``synchronous=NORMAL``: a commit survives the death of any process; the death of the machine may take the
last ones, never the file. A writing transaction takes the lock when it begins (``BEGIN
IMMEDIATE``): it waits for its turn there, and cannot fail half-way because another was quicker.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import QueuePool, StaticPool

from autotune.errors import StoreError
from autotune.store.databases.address import Address
from autotune.store.databases.failures import BUSY_SECONDS

NAP_SECONDS = 0.0005
LONGEST_NAP_SECONDS = 0.02
"""Between two tries to begin writing: the first nap, and what doubling it comes to at most."""

WRITING = "autotune_writing"
"""The execution option of a connection whose transactions write."""


def make_engine(address: Address, *, readonly: bool) -> sa.Engine:
    """An engine whose plain connections read. See :func:`writer` for those that write."""
    if address.kind == "postgresql":
        return _postgresql(address, readonly=readonly)
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: _open_sqlite(address.file, readonly=readonly),
        # In memory the connection is the database: there is one, and the store lends it in turn.
        poolclass=StaticPool if address.file is None else QueuePool,
        **({} if address.file is None else {"max_overflow": -1}),
    )
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def writer(engine: sa.Engine) -> sa.Engine:
    """The same connections, for transactions that write."""
    return engine.execution_options(**{WRITING: True})


@contextmanager
def altering(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that may make tables again, while others refer to them.

    SQLite enforces no foreign keys in it, since it would take what is made again for gone. It lets that be
    switched outside of transactions only.
    """
    with writer(engine).connect() as connection:
        raw: Any = connection.connection.driver_connection if engine.dialect.name == "sqlite" else None
        if raw:
            raw.execute("PRAGMA foreign_keys = OFF")
        try:
            with connection.begin():
                yield connection
        finally:
            if raw:
                raw.execute("PRAGMA foreign_keys = ON")


def reader(engine: sa.Engine) -> sa.Engine:
    """The same connections, for transactions that see one moment, as SQLite's do anyway."""
    if engine.dialect.name != "postgresql":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ")


# -- SQLite --------------------------------------------------------------------------------------


def _open_sqlite(file: Path | None, *, readonly: bool) -> sqlite3.Connection:
    target = ":memory:"
    if file is not None:
        target = f"file:{quote(os.fsencode(file))}?{_mode(file, readonly=readonly)}"
    connection = sqlite3.connect(
        target,
        uri=file is not None,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # transactions begin where we say so
        check_same_thread=False,  # the pool hands a connection to one thread at a time
        cached_statements=256,
    )
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        if readonly:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _mode(file: Path, *, readonly: bool) -> str:
    """How to open ``file``. Even a reader of a WAL database writes beside it, where it may."""
    if not readonly:
        return "mode=rwc"
    if os.access(file, os.W_OK) and os.access(file.parent, os.W_OK):
        return "mode=rw"  # query_only forbids changes; the last to leave tidies the WAL up
    wal = Path(f"{file}-wal")
    if os.access(file.parent, os.W_OK) or (wal.exists() and wal.stat().st_size):
        return "mode=ro"
    return "mode=ro&immutable=1"  # a read-only medium: nothing can change, so no locks are needed


def _begin_sqlite(connection: sa.Connection) -> None:
    raw: Any = connection.connection.driver_connection
    if connection.get_execution_options().get(WRITING, False):
        begin_writing(raw)
    else:
        raw.execute("BEGIN")


def begin_writing(raw: sqlite3.Connection) -> None:
    """Wait for the write lock, in naps that begin short.

    SQLite's own waiting naps 1, 2, 5 ... 100 ms, where a transaction of ours is done in a fraction of one: of
    several writers some would nearly always sleep while the lock is free.
    """
    raw.execute("PRAGMA busy_timeout = 0")
    try:
        deadline = 0.0
        longest = NAP_SECONDS
        while not _begun(raw):
            now = time.monotonic()
            deadline = deadline or now + BUSY_SECONDS
            if now > deadline:
                raw.execute("BEGIN IMMEDIATE")  # once more, to say why not
                return
            time.sleep(random.uniform(longest / 2, longest))
            longest = min(2 * longest, LONGEST_NAP_SECONDS)
    finally:
        raw.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_SECONDS)}")


def _begun(raw: sqlite3.Connection) -> bool:
    try:
        raw.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def use_wal(engine: sa.Engine) -> None:
    """Switch the file to WAL, once for all, unless it is already. A database in memory has no such mode."""
    raw = engine.raw_connection()
    try:
        connection: Any = raw.driver_connection
        if connection.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
    finally:
        raw.close()


# -- PostgreSQL ----------------------------------------------------------------------------------


HOLDS_ALL_TEXT = ("UTF8", "SQL_ASCII")
"""Encodings of databases that keep every text: UTF-8, and the one that keeps bytes as they come."""


def _postgresql(address: Address, *, readonly: bool) -> sa.Engine:
    # Else it would be PGCLIENTENCODING or the database's own: of one that a server in the C locale made
    # (SQL_ASCII) psycopg gives bytes in the place of texts.
    encoding = {"client_encoding": "utf8"}
    try:
        engine = sa.create_engine(address.url, connect_args=encoding, pool_pre_ping=True, max_overflow=-1)
    except ImportError as error:
        raise StoreError(
            f"the store {address.where} needs the package psycopg: pip install 'psycopg[binary]'"
        ) from error

    def set_up(connection: Any, _: object) -> None:
        kept = connection.info.parameter_status("server_encoding")
        if not readonly and kept not in HOLDS_ALL_TEXT:
            connection.close()
            raise StoreError(
                f"the store {address.where} is in the encoding {kept}, which cannot hold every text that a "
                "trial may print. Make another: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
            )
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{BUSY_SECONDS}s'")
            cursor.execute(f"SET default_transaction_read_only = {'on' if readonly else 'off'}")
        connection.commit()

    event.listen(engine, "connect", set_up)
    return engine
