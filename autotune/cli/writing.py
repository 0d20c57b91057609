"""Files that a verb writes for the user."""

from __future__ import annotations

from pathlib import Path

from autotune.errors import InputError, OutputError, Problem
from autotune.paths import written_whole


def write_text(file: Path, text: str) -> None:
    """Write ``text`` to ``file``, whose folder is made if it is missing.

    An existing file is replaced, and stays as it is if the text cannot be written in full. Raises
    :class:`OutputError` if it cannot be written, and :class:`InputError` if it is a database.
    """
    from autotune.interop.foreign_databases import refuse_database

    refuse_database(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(file) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError.of(file, error) from error


def refuse_existing(file: Path, force: bool, source: Path) -> None:
    """Raise :class:`InputError` if ``file`` exists, unless ``force`` allows to overwrite it.

    ``source`` is the file that the verb reads, which is never overwritten.
    """
    if not file.exists():
        return
    if source.exists() and file.samefile(source):
        raise InputError(Problem(f"{file} is the file to read: it would be lost", hint="choose another -o"))
    if not force:
        raise InputError(Problem(f"{file} exists", hint="choose another -o, or add --force"))
