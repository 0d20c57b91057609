"""Paths as people write them, and files that are replaced as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autotune.errors import InputError, Problem


def expanded(written: str | os.PathLike[str]) -> Path:
    """``written`` with the home folder in the place of ``~`` or ``~user``.

    Raises :class:`InputError` if there is no such user, or the user has no home folder.
    """
    try:
        return Path(written).expanduser()
    except RuntimeError:
        user = Path(written).parts[0]
        whose = f"of the user {user[1:]!r} " if len(user) > 1 else ""
        message = f"{os.fspath(written)}: the home folder {whose}that {user} stands for is not known"
        raise InputError(
            Problem(message, hint="write the path in full, or begin it with ./ if it is a name")
        ) from None


def may_be_there(file: Path) -> bool:
    """Whether ``file`` exists; also true where we may not look, since opening it will then say why."""
    try:
        return file.exists()
    except OSError:
        return True


@contextmanager
def written_whole(file: Path) -> Iterator[Path]:
    """Give a draft beside ``file`` to write to; it replaces ``file`` when the block ends.

    If writing fails (on a full disk, say), the draft is removed and ``file`` is left as it was. ``file``
    keeps its permissions. What is no regular file (a pipe, ``/dev/stdout``), or lies in a folder where no
    file can be made, is written to directly. Raises what writing raises.
    """
    target = Path(os.path.realpath(file))  # Path.resolve() raises RuntimeError for links that form a loop
    as_it_is = not file.is_file() or _is_open_already(file) or not os.access(target.parent, os.W_OK)
    if file.exists() and as_it_is:
        yield file
        return
    draft = target.with_name(f".part-{os.getpid()}-{secrets.token_hex(4)}{target.suffix}")
    try:
        yield draft
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


_OPEN_ALREADY = ("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd", "/proc")


def _is_open_already(file: Path) -> bool:
    """Whether it is a name for something that is open already; other files below ``/dev`` lie in memory."""
    return any(map(file.absolute().is_relative_to, _OPEN_ALREADY))
