"""Paths as people write them, to places that may not be there, or not take what is written."""

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

    Raises :class:`InputError` where nobody knows it: no such user, or one without a home folder.
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
    """Whether a file is there, or nobody lets us look: then whoever opens it is told why not."""
    try:
        return file.exists()
    except OSError:
        return True


@contextmanager
def written_whole(file: Path) -> Iterator[Path]:
    """Where to write what is to stand in ``file``: beside it, and it takes its place when the block ends.

    Where writing fails, on a full disk say, nothing is left of it, and what was in ``file`` is as it was. It
    keeps its permissions. What is no regular file (a pipe, ``/dev/stdout``), or lies where no file can be
    made, is written to directly. Raises what writing raises.
    """
    target = Path(os.path.realpath(file))  # resolve() has no words for links that lead in a circle
    if file.exists() and (not file.is_file() or _is_device(file) or not os.access(target.parent, os.W_OK)):
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


def _is_device(file: Path) -> bool:
    """Whether it stands for something that is open already, whatever that is: ``/dev/stdout``."""
    return file.absolute().is_relative_to("/dev") or file.absolute().is_relative_to("/proc")
