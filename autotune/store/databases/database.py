"""The database below a store: its transactions, and who may begin one.

There are two ways in. SQLAlchemy's connections serve all that is rare; what every trial needs goes to the
driver directly (:mod:`autotune.store.statements.prepared` says why), on SQLite through one connection that is
kept.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import sqlalchemy as sa

from autotune.errors import StoreError
from autotune.store.databases.address import Address
from autotune.store.databases.connect import begin_writing, reader, writer
from autotune.store.databases.failures import MOVED, explained
from autotune.store.databases.patience import Patience
from autotune.store.databases.values import placed
from autotune.store.documents import GarbledError
from autotune.store.statements.prepared import Direct


class Database:
    """Lends connections, each for one transaction. Raises :class:`StoreError` for whatever goes wrong in it.

    May be used by several threads at once, and only by the process that made it.
    """

    def __init__(self, address: Address, engine: sa.Engine, *, readonly: bool) -> None:
        self.address = address
        self.patience = Patience(address)
        self._engine = engine
        self._reader, self._writer = reader(engine), writer(engine)
        self._kept: sa.PoolProxiedConnection | None = None
        self._readonly = readonly
        self._pid = os.getpid()
        self._closed = False
        self._file = _identity(address.file)
        # SQLite has one writer at a time: threads queue here, rather than poll the database's lock.
        self._turn = nullcontext() if address.kind == "postgresql" else threading.RLock()
        self._reading_turn = self._turn if address.kind == "memory" else nullcontext()

    def close(self) -> None:
        """Let go of every connection. Harmless when repeated, and in a forked child."""
        if not self._closed:
            self._closed = True
            # A forked child must not touch its parent's connections, not even to close them.
            own = self._pid == os.getpid()
            if own and self._kept is not None:
                self._kept.close()
            self._engine.dispose(close=own)

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that sees one moment of the database, and never makes a writer wait."""
        self._require_open()
        explaining, reading = (
            explained(self.address, reading=self._readonly),
            self.patience.reading(self._reader),
        )
        with explaining, self._reading_turn, reading as connection, placed(connection):
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that is kept if the block ends well, and leaves no trace if not."""
        self._require_writable()
        with explained(self.address), self._turn, self.patience.writing(self._writer) as connection:
            yield connection

    @contextmanager
    def write_directly(self) -> Iterator[Direct]:
        """The same for what every trial needs: on SQLite without SQLAlchemy in the way."""
        if self.address.kind == "postgresql":
            with self.write() as connection:
                yield Direct.through(connection)
            return
        self._require_writable()
        with explained(self.address), self._turn:
            direct = self._direct()
            try:
                begin_writing(direct.driver)  # inside: who is interrupted there may have begun
                yield direct
                direct.driver.commit()
            except BaseException:
                direct.driver.rollback()
                raise

    @contextmanager
    def read_directly(self) -> Iterator[Direct]:
        """For what every trial looks at: each statement sees its own moment of the database."""
        if self.address.kind == "postgresql":
            with self.read() as connection:
                yield Direct.through(connection)
            return
        self._require_open()
        with explained(self.address), self._turn:
            try:
                yield self._direct()
            except GarbledError:
                with self._reader.connect() as connection, placed(connection):
                    raise

    def _direct(self) -> Direct:
        """SQLite's connection that is kept; it belongs to whoever has the turn."""
        if self._kept is None:
            self._kept = self._engine.raw_connection()
        return Direct(self._engine.dialect, self._kept.driver_connection)

    def _require_writable(self) -> None:
        self._require_open()
        if self._readonly:
            raise StoreError(f"the store {self.address.where} was opened for reading only")
        if self._file != _identity(self.address.file):
            raise MOVED.error(self.address)  # or else results would go to a file that nobody can find

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"the store {self.address.where} is closed")
        if self._pid != os.getpid():
            raise StoreError(
                f"the store {self.address.where} was opened by another process: open it again after a fork"
            )


def _identity(file: Path | None) -> tuple[int, int] | None:
    """What tells a file from another one that took its name."""
    try:
        found = None if file is None else file.stat()
    except OSError:
        return None
    return None if found is None else (found.st_dev, found.st_ino)
