"""A table of keys and values in SQLite, as a configuration has it. Loads nothing but the standard library.

``synchronous`` is no knob: it is EXTRA, which is FULL and besides writes the folder through once a rollback
journal was deleted. So in each of the journal modes what was acknowledged survives a loss of power.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DEFAULT: Mapping[str, Any] = {
    "page_size": 4096,
    "journal": "delete",
    "checkpoint": 1000,
    "cache_kib": 2000,
    "mmap_mib": 0,
    "clustered": False,
    "compress": 0,
}
"""What SQLite does that is told nothing."""

DURABLE = ("delete", "truncate", "persist", "wal")
"""Journals that a transaction survives in, and by which one that was broken off is taken back."""
EXTRA = 3
"""``PRAGMA synchronous``."""
_PACKED, _PLAIN = b"\1", b"\0"

Row = tuple[bytes, bytes]


class Table:
    """Open in this process. Every call is a transaction of its own, over when it returns."""

    def __init__(self, file: Path, knobs: Mapping[str, Any]) -> None:
        self.file, self.knobs = file, {**DEFAULT, **knobs}
        self._level = int(self.knobs["compress"])
        self._database = sqlite3.connect(file, isolation_level=None)
        self._set("page_size", self.knobs["page_size"])
        self._set("journal_mode", self.knobs["journal"])
        self._set("synchronous", EXTRA)
        self._set("cache_size", -int(self.knobs["cache_kib"]))
        self._set("mmap_size", int(self.knobs["mmap_mib"]) << 20)
        self._set("wal_autocheckpoint", self.knobs["checkpoint"])

    def _set(self, pragma: str, value: object) -> None:
        self._database.execute(f"PRAGMA {pragma} = {value}")

    def setting(self, pragma: str) -> Any:
        return self._database.execute(f"PRAGMA {pragma}").fetchone()[0]

    def fill(self, rows: Iterable[Row]) -> None:
        """Make the table, and put the rows in as they come, with nothing that survives a loss of power."""
        for pragma, value in (("journal_mode", "OFF"), ("synchronous", "OFF"), ("cache_size", -(1 << 20))):
            self._set(pragma, value)
        without = " WITHOUT ROWID" if self.knobs["clustered"] else ""
        self._database.execute(
            f"CREATE TABLE kv (key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL){without}"
        )
        self._database.execute("BEGIN IMMEDIATE")
        packed = ((key, self._pack(value)) for key, value in rows)
        self._database.executemany("INSERT INTO kv VALUES (?, ?)", packed)
        self._database.execute("COMMIT")

    def close(self) -> None:
        self._database.close()

    # -- operations ----------------------------------------------------------------------------

    def read(self, key: bytes) -> bytes | None:
        found = self._database.execute("SELECT value FROM kv WHERE key = ?", (key,)).fetchone()
        return None if found is None else self._unpack(found[0])

    def scan(self, key: bytes, count: int) -> list[Row]:
        sql = "SELECT key, value FROM kv WHERE key >= ? ORDER BY key LIMIT ?"
        return [(key, self._unpack(value)) for key, value in self._database.execute(sql, (key, count))]

    def all(self) -> list[Row]:
        """Every row, by key."""
        found = self._database.execute("SELECT key, value FROM kv ORDER BY key")
        return [(key, self._unpack(value)) for key, value in found]

    def begin(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def put(self, removed: bytes | None, key: bytes, value: bytes) -> None:
        if removed is not None:
            self._database.execute("DELETE FROM kv WHERE key = ?", (removed,))
        sql = "INSERT INTO kv VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self._database.execute(sql, (key, self._pack(value)))

    def commit(self) -> None:
        self._database.execute("COMMIT")

    def write(self, changes: Iterable[Any]) -> None:
        """Rows together or not at all. They are on the disk when this returns."""
        self.begin()
        for change in changes:
            self.put(change.removed, change.key, change.value)
        self.commit()

    def checkpoint(self) -> None:
        """Do what was put off: bring a write-ahead log into the database. Its file stays, for the next."""
        self._database.execute("PRAGMA wal_checkpoint(RESTART)")

    # -- what it is like -----------------------------------------------------------------------

    def files(self) -> list[Path]:
        """The database, and what of its journals is there."""
        named = (self.file.with_name(self.file.name + suffix) for suffix in ("", "-wal", "-journal"))
        return [path for path in named if path.exists()]

    def fault(self) -> str:
        """What is wrong with its structure; empty: nothing."""
        found = str(self.setting("integrity_check"))
        return "" if found == "ok" else found

    def _pack(self, value: bytes) -> bytes:
        if not self._level:
            return value
        packed = zlib.compress(value, self._level)
        return _PACKED + packed if len(packed) < len(value) else _PLAIN + value

    def _unpack(self, stored: bytes) -> bytes:
        if not self._level:
            return stored
        return zlib.decompress(stored[1:]) if stored[:1] == _PACKED else stored[1:]
