"""Paths as people write them, to places that may not be there or not be looked at."""

from __future__ import annotations

import os
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
