"""Files that a verb writes for the user."""

from __future__ import annotations

from pathlib import Path

from autotune.errors import InputError, Problem
from autotune.paths import written_whole


def write_text(file: Path, text: str) -> None:
    """Write ``text`` to ``file``, with its folder where that is missing; over what is there, but no database.

    What is there stays as it is where the whole text cannot be written.

    Raises :class:`InputError` where it cannot be written.
    """
    from autotune.interop.foreign_databases import refuse_database

    refuse_database(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(file) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(Problem(f"cannot write {file}: {error.strerror or error}")) from error


def refuse_existing(file: Path, force: bool, source: Path) -> None:
    """Raise :class:`InputError` where a file would be written over that nobody said may be.

    ``source`` is what the verb reads: nothing is ever written over that.
    """
    if not file.exists():
        return
    if source.exists() and file.samefile(source):
        raise InputError(Problem(f"{file} is what is to be read: it would be lost", hint="choose another -o"))
    if not force:
        raise InputError(Problem(f"{file} exists", hint="choose another -o, or say --force"))
