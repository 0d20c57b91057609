"""What a database's refusal means for the reader: what happened, what is safe, what to do.

Failures are told apart by the codes of SQLite (https://www.sqlite.org/rescode.html) and PostgreSQL
(SQLSTATE), never by their text, which changes with version and language.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from autotune.errors import StoreError
from autotune.store.databases.address import Address
from autotune.store.documents import GarbledError

BUSY_SECONDS = 30
"""How long a writer waits for another one before it gives up."""


@dataclass(frozen=True)
class Trouble:
    """One kind of failure. ``what`` follows the name of the store; ``then`` says what to do."""

    what: str
    then: str
    safe: str = "Every trial that was finished is safe."

    def error(self, address: Address, detail: str = "") -> StoreError:
        said = f" ({detail})" if detail else ""
        return StoreError(
            " ".join(filter(None, (f"the store {address.where} {self.what}{said}.", self.safe, self.then)))
        )


_AGAIN = "run the same command again: a search goes on where it stood."

FULL = Trouble("cannot grow: the disk is full", f"Make space, then {_AGAIN}")
REFUSED_BY_SYSTEM = Trouble(
    "could not be read or written: the disk is full, a quota or a limit on file sizes is reached, "
    "or the disk fails",
    f"Make space or raise the limit (ulimit -f, quota), then {_AGAIN}",
)
READ_ONLY = Trouble(
    "may not be written",
    f"Check the owner and mode of the file and its folder, or choose another with --store; then {_AGAIN}",
)
BUSY = Trouble(
    f"is held by another program that is writing to it (we wait up to {BUSY_SECONDS} s)",
    f"End that program or wait for it, then {_AGAIN}",
)
CANNOT_OPEN = Trouble(
    "cannot be opened",
    "Check that its folder exists and that you may read and write there, or choose another with --store.",
)
DAMAGED = Trouble(
    "is damaged",
    "Keep a copy of the file, and save what can be read with: sqlite3 FILE .recover | sqlite3 NEW.db",
    safe="Nothing more was written to it.",
)
BY_HAND = "What was altered by hand can be put right with SQL."
ALTERED = Trouble(
    "is damaged",
    f"All that is wrong is listed by: autotune doctor --store URL. {BY_HAND} {DAMAGED.then}",
    safe="Nothing more was written to it.",
)
NOT_A_DATABASE = Trouble(
    "is not an SQLite database",
    "Choose another file with --store, or unpack it first if it is compressed.",
    safe="It was left as it is.",
)
MOVED = Trouble(
    "was moved or deleted while it was in use", "Put it back, or start again to make a new one.", safe=""
)
NO_MEMORY = Trouble("could not be used: the machine is out of memory", f"Free some, then {_AGAIN}")
TOO_BIG = Trouble(
    "refuses something larger than a database may hold (1 GB)", "Keep large files out of the artefacts."
)
DANGLING = Trouble(
    "refuses what refers to a study, session, segment or trial that it does not hold",
    "Open the study in this store first.",
)
UNREACHABLE = Trouble(
    "cannot be reached",
    f"Check address, user and password (also PGPASSWORD, ~/.pgpass) and that the server runs; then {_AGAIN}",
)
FORBIDDEN = Trouble("refuses this user", "Ask its owner for the right to create and write tables.")
UNREADABLE = Trouble(
    "refuses this user",
    "Ask its owner for the right to read: GRANT SELECT ON ALL TABLES IN SCHEMA public TO this user.",
)
OTHER = Trouble("failed", f"Check it with: autotune doctor --store URL; then {_AGAIN}")

_SQLITE = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR: REFUSED_BY_SYSTEM,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_AUTH: READ_ONLY,
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_PROTOCOL: BUSY,
    sqlite3.SQLITE_CANTOPEN: CANNOT_OPEN,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: NOT_A_DATABASE,
    sqlite3.SQLITE_NOMEM: NO_MEMORY,
    sqlite3.SQLITE_TOOBIG: TOO_BIG,
}
_SQLITE_EXTENDED = {
    sqlite3.SQLITE_READONLY_DBMOVED: MOVED,
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: DANGLING,
}
# Longest match first: a code of five characters, its class of two.
_POSTGRESQL = {
    "53100": FULL,
    "53200": NO_MEMORY,
    "53300": UNREACHABLE,
    "25006": READ_ONLY,
    "42501": FORBIDDEN,
    "55P03": BUSY,
    "40P01": BUSY,
    "23503": DANGLING,
    "54000": TOO_BIG,
    "08": UNREACHABLE,
    "28": UNREACHABLE,
    "3D": UNREACHABLE,
    "57": UNREACHABLE,
    "58": REFUSED_BY_SYSTEM,
    "XX": DAMAGED,
}


def is_lost(error: sa.exc.DBAPIError) -> bool:
    """Whether a PostgreSQL server is gone, or this connection to it."""
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        return _no_answer(error.orig)
    return state[:2] == "08" or state in ("57P01", "57P02", "57P03")


def _no_answer(cause: BaseException | None) -> bool:
    """Whether psycopg, without a code from the server, says that it never reached it or lost it.

    What it refuses itself, such as a text with a NUL in it, has no code either.
    """
    return type(cause).__name__ in ("OperationalError", "ConnectionTimeout")


@contextmanager
def explained(address: Address, *, reading: bool = False) -> Iterator[None]:
    """Turn whatever the database raises inside into a :class:`StoreError` for the reader.

    ``reading``: nothing more than that is asked of it.
    """
    try:
        yield
    except (sa.exc.DBAPIError, sqlite3.Error) as error:
        raise explain(error, address, reading=reading) from error
    except sa.exc.TimeoutError as error:  # no free connection in the pool
        raise BUSY.error(address, "too many threads use it at once") from error
    except GarbledError as error:
        raise (ALTERED if error.place else DAMAGED).error(address, error.detail) from error
    except UnicodeDecodeError as error:  # SQLite checks no text, and gives what lies in the file
        raise DAMAGED.error(address, str(error)) from error


def is_damage(error: sa.exc.DBAPIError) -> bool:
    """Whether SQLite says that the file itself is corrupt."""
    code: int = getattr(error.orig, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_CORRUPT


def explain(error: BaseException, address: Address, *, reading: bool = False) -> StoreError:
    """The :class:`StoreError` that says what ``error`` means."""
    cause = (error.orig or error) if isinstance(error, sa.exc.DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        trouble = _SQLITE_EXTENDED.get(code) or _SQLITE.get(code & 0xFF, OTHER)
        return trouble.error(address, f"{cause}; SQLite says {getattr(cause, 'sqlite_errorname', code)}")
    state = getattr(cause, "sqlstate", None)
    if state is not None:
        trouble = _POSTGRESQL.get(state) or _POSTGRESQL.get(state[:2], OTHER)
        trouble = UNREADABLE if reading and trouble is FORBIDDEN else trouble
    else:
        trouble = UNREACHABLE if address.kind == "postgresql" and _no_answer(cause) else OTHER
    first = str(cause).strip().splitlines()
    return trouble.error(address, first[0] if first else type(cause).__name__)
