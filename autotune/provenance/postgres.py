"""The programs of a PostgreSQL server: those that a variable names, else the newest that is installed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autotune.provenance import asking

FOLDER = "AUTOTUNE_POSTGRES"
"""The variable that names the folder of the programs, where the newest that is found is not meant."""
NEEDED = ("initdb", "postgres", "pgbench", "psql")
INSTALLED = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "usr/local/pgsql/bin", "opt/homebrew/bin")
"""Where packages put them, below the root, beside the PATH."""
REMEDY = f"apt install postgresql, or let {FOLDER} name the folder of its programs"

_SECONDS = 10.0


class NoServerError(LookupError):
    """There is none; the message says where none is."""


@dataclass(frozen=True)
class ServerPrograms:
    """A folder with all that are :data:`NEEDED`."""

    folder: Path
    version: str
    """As ``15.18``."""


def server_programs(root: Path = Path("/")) -> ServerPrograms:
    """What the variable names, else the newest on the PATH or where packages put them.

    Raises :class:`NoServerError`.
    """
    named = os.environ.get(FOLDER)
    folders = [Path(named)] if named else _folders(root)
    found = [programs for folder in folders if (programs := _programs(folder))]
    if not found:
        where = f"in {named} ({FOLDER})" if named else "on the PATH, or where packages put it"
        raise NoServerError(f"no PostgreSQL server {where}: {', '.join(NEEDED)} are needed, in one folder")
    return max(found, key=lambda one: [int(number) for number in re.findall(r"\d+", one.version)])


def _folders(root: Path) -> Iterator[Path]:
    on_path = shutil.which("postgres") or shutil.which("initdb")
    if on_path:
        yield Path(on_path).resolve().parent
    for pattern in INSTALLED:
        yield from root.glob(pattern)


def _programs(folder: Path) -> ServerPrograms | None:
    if not all(os.access(folder / name, os.X_OK) for name in NEEDED):
        return None
    try:
        said = asking.answer(asking.start([str(folder / "postgres"), "-V"]), _SECONDS)
    except OSError:
        return None
    version = re.search(r"\d+(\.\d+)*", said.stdout) if said else None
    return ServerPrograms(folder, version[0]) if version else None
