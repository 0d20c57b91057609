"""Opening a database: is it there, is it ours, is it of today? Made or brought up to date where it is not."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa

from autotune.errors import InputError, Problem, StoreError
from autotune.store.databases.address import Address, read_address
from autotune.store.databases.connect import altering, make_engine, use_wal
from autotune.store.databases.failures import CANNOT_OPEN, NOT_A_DATABASE, READ_ONLY, explained
from autotune.store.databases.migrate import is_current, upgrade, version_of

SMALLEST = 512
"""Bytes: no SQLite database is smaller, and SQLite would take a shorter text for an empty one."""


class EmptyStoreError(InputError):
    """A store that was opened for reading is not there yet, or nothing was ever written to it."""


def open_engine(address: Address, *, readonly: bool) -> sa.Engine:
    """An engine on a database whose schema is up to date.

    A database that is not there is made, unless it is opened ``readonly``. Raises
    :class:`~autotune.errors.StoreError`.
    """
    if readonly and address.kind == "memory":
        message = f"the store {address} is in memory, where there is nothing to read yet"
        hint = "name the file that the studies are in: --store FILE"
        raise InputError(Problem(message, None, "a store with a file, or a server's", hint))
    with explained(address, reading=readonly):
        if address.file is not None:
            _make_where_missing(address, address.file, readonly=readonly)
        engine = make_engine(address, readonly=readonly)
        try:
            _bring_up_to_date(engine, address, readonly=readonly)
        except BaseException:
            engine.dispose()
            raise
        return engine


def _make_where_missing(address: Address, file: Path, *, readonly: bool) -> None:
    try:
        _require_place(address, file, readonly=readonly)
        if not file.exists():
            _require_no_rest(file)
            _create(address, file)
    except OSError as error:  # a folder that may not be looked into, a name that is too long
        what = error.strerror or str(error)
        where = f": {error.filename}" if error.filename not in (None, str(file)) else ""
        raise CANNOT_OPEN.error(address, f"{what}{where}") from error


def _require_place(address: Address, file: Path, *, readonly: bool) -> None:
    if file.is_dir():
        raise StoreError(f"the store {file} is a folder; name a file in it, such as {file / 'autotune.db'}")
    if file.exists():
        # By its size alone: opening and closing the file here would drop the locks that another
        # connection of this process holds on it (https://www.sqlite.org/howtocorrupt.html, 2.2).
        if 0 < file.stat().st_size < SMALLEST:
            raise NOT_A_DATABASE.error(address)
        if not readonly and not all(os.access(place, os.W_OK) for place in (file, file.parent)):
            raise READ_ONLY.error(address)
    elif readonly:
        raise EmptyStoreError(f"there is no store at {file} yet; one is made by: autotune search SPACE")
    else:
        file.parent.mkdir(parents=True, exist_ok=True)


def _require_no_rest(file: Path) -> None:
    """Refuse to make a database beside what is left of one: SQLite would write that into the new one."""
    rest = [f"{file}{ending}" for ending in ("-wal", "-journal") if Path(f"{file}{ending}").exists()]
    # Looked at last: what another process makes at this moment is there before anything beside it.
    if rest and not file.exists():
        raise StoreError(
            f"the store {file} is gone, but what was last written to it is still in {' and '.join(rest)}:"
            f" put the store back in its place, or delete {'it' if len(rest) == 1 else 'them'} too"
            " to begin a new one"
        )


def _create(address: Address, file: Path) -> None:
    """Make the database beside its place and move it there whole, so that nobody ever meets half of one.

    Of several processes that do so at once, one is first and the others take what it made.
    """
    draft = read_address(file.with_name(f"{file.name}.{secrets.token_hex(4)}.new"))
    assert draft.file is not None
    try:
        engine = make_engine(draft, readonly=False)
        try:
            _bring_up_to_date(engine, address, readonly=False)
        finally:
            engine.dispose()
        _move_unless_there(draft.file, file)
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):  # where nothing may be written, what went wrong has been said
                Path(f"{draft.file}{ending}").unlink()


def _move_unless_there(draft: Path, file: Path) -> None:
    try:
        file.hardlink_to(draft)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        if not file.exists():
            draft.rename(file)


def _upgrade_for_reader(address: Address) -> None:
    """Bring an older database up to date for somebody who only reads, with connections that may write."""
    changing = make_engine(address, readonly=False)
    try:
        with explained(address):
            _bring_up_to_date(changing, address, readonly=False)
    except StoreError as error:
        raise StoreError(
            f"the store {address.where} was made by an older autotune, and must be brought up to date before"
            f" this one can read it: somebody who may write to it has to open it, as a search does. {error}"
        ) from error
    finally:
        changing.dispose()


def _bring_up_to_date(engine: sa.Engine, address: Address, *, readonly: bool) -> None:
    with engine.connect() as connection:
        current = is_current(connection, address)
        empty = not current and version_of(connection) is None
    if readonly and empty:  # a reader makes no tables
        hint = "studies get there by: autotune search SPACE"
        raise EmptyStoreError(Problem(f"there is nothing in the store {address.where} yet", hint=hint))
    if readonly and not current:
        _upgrade_for_reader(address)
    elif not readonly:
        if not current:
            with altering(engine) as connection:
                upgrade(connection, address)
        if address.kind == "sqlite":
            use_wal(engine)
