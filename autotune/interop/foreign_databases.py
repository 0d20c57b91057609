"""Databases that other tools are to write to: never one that holds studies of autotune.

Both have tables called ``studies`` and ``trials``, and a tool that finds some of its own makes the rest.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa

from autotune.errors import InputError, Problem
from autotune.store.schema import VERSION_TABLE

SQLITE = b"SQLite format 3\0"
"""What a database of SQLite begins with."""


def is_database(file: Path) -> bool:
    """Whether it is a database of SQLite. What cannot be read is for others to say; a pipe is not read."""
    try:
        if not file.is_file():
            return False
        with file.open("rb") as opened:
            return opened.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def refuse_database(file: Path) -> None:
    """Raise :class:`InputError` where a text is to be written over a database: studies may be all that is in
    it."""
    if is_database(file):
        raise InputError(Problem(f"{file} is a database", hint="choose another file"))


def refuse_store(url: str) -> None:
    """Raise :class:`InputError` where the database is a store of autotune's.

    What is no address of one, is not there or does not answer is for the tool to say.
    """
    try:
        address = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return
    sqlite = address.get_backend_name() == "sqlite"
    if sqlite and (not address.database or not is_database(Path(address.database))):
        return
    if is_store(address):
        shown = address.render_as_string(hide_password=True)
        raise InputError(Problem(f"{shown} is a store of autotune's", hint="choose another database"))


def is_store(address: sa.URL) -> bool:
    """Whether a database that is there has tables of autotune's; not where it does not answer."""
    with suppress(sa.exc.SQLAlchemyError, ImportError):
        engine = sa.create_engine(address)
        try:
            return sa.inspect(engine).has_table(VERSION_TABLE)
        finally:
            engine.dispose()
    return False
