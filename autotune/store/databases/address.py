"""Where a store is: a database URL, or simply a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote_plus

import sqlalchemy as sa

from autotune.errors import InputError, Problem
from autotune.paths import expanded

DEFAULT_URL = "sqlite:///results/autotune.db"
VARIABLE = "AUTOTUNE_STORE"
IN_MEMORY = "sqlite://"
MEMORY_FILE = ":memory:"
"""What SQLite calls it, instead of a file's name."""


def default_url() -> str:
    """What the variable ``AUTOTUNE_STORE`` says, or ``sqlite:///results/autotune.db``."""
    return os.environ.get(VARIABLE, "").strip() or DEFAULT_URL


@dataclass(frozen=True)
class Address:
    """``file`` is the absolute path of an SQLite database, ``None`` for one in memory and for PostgreSQL."""

    kind: Literal["sqlite", "memory", "postgresql"]
    url: sa.URL
    file: Path | None = None

    def __str__(self) -> str:
        """As it may be printed and recorded: a password is masked, a file's path is absolute."""
        if self.file is not None:
            return f"sqlite:///{self.file}"
        shown = self.url.update_query_dict(dict.fromkeys(self._passwords, "***"))
        return shown.render_as_string(hide_password=True).replace(quote_plus("***"), "***")

    @property
    def without_password(self) -> str:
        """As it can be typed again: a password then comes from ``PGPASSWORD`` or ``~/.pgpass``."""
        bare = self.url.difference_update_query(self._passwords)._replace(password=None)
        return bare.render_as_string()

    @property
    def _passwords(self) -> list[str]:
        return [name for name in self.url.query if "password" in name.lower()]

    @property
    def where(self) -> str:
        """How a message names it."""
        return str(self.file) if self.file is not None else str(self)


def read_address(text: str | os.PathLike[str] | None) -> Address:
    """The address that ``text`` gives; :func:`default_url` where it is ``None`` or empty.

    A text without ``://`` is the path of an SQLite file; ``~`` is the home folder. ``:memory:``, as SQLite
    has it, and ``sqlite://`` are a store that ends with the process.

    Raises :class:`InputError` for what is no address.
    """
    if not isinstance(text, str | os.PathLike | None):
        raise InputError(Problem(f"the store is of the type {type(text).__name__}", expected=_EXPECTED))
    written = os.fspath(text) if text else default_url()
    if written == MEMORY_FILE:
        return Address("memory", sa.make_url(IN_MEMORY))
    if "://" not in written:
        return _file(expanded(written))
    try:
        url = sa.make_url(written)
    except (sa.exc.ArgumentError, ValueError) as error:
        message = "the store's address cannot be read: not a database URL"
        raise InputError(
            Problem(message, expected=_EXPECTED, hint=_ENCODE if "@" in written else "")
        ) from error
    backend = url.get_backend_name()
    if backend == "sqlite":
        if not url.database or url.database == MEMORY_FILE:
            return Address("memory", sa.make_url(IN_MEMORY))
        return _file(Path(url.database))
    if "@" in (url.host or ""):  # the rest of the password, which would be printed as part of the host
        raise InputError(
            Problem(
                "the store's address has two '@', so that it is not clear where the password ends",
                hint=_ENCODE,
            )
        )
    if backend in ("postgresql", "postgres"):
        return Address("postgresql", url.set(drivername="postgresql+psycopg"))
    raise InputError(Problem(f"a store cannot be kept in {backend!r}", expected=_EXPECTED))


_ENCODE = (
    "in a password write @ as %40, : as %3A and / as %2F, or give the password by PGPASSWORD or ~/.pgpass"
)
_EXPECTED = "a file such as results/autotune.db, sqlite:///FILE, or postgresql://USER@HOST/DATABASE"


def _file(path: Path) -> Address:
    path = path.absolute()  # a later change of folder must not lead new connections elsewhere
    return Address("sqlite", sa.URL.create("sqlite", database=str(path)), path)
