"""Which store a notebook shows: the one that ``AUTOTUNE_STORE`` names, or else the recorded studies."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from pathlib import Path

from autotune.errors import InputError, Location, Problem
from autotune.paths import written_whole
from autotune.ready import ready_root
from autotune.store.databases.address import VARIABLE
from autotune.store.schema import VERSION

RECORDED = "recorded.db.gz"
"""The recorded studies, beside the notebooks: a SQLite store, compressed."""


def notebook_store(recorded: str | os.PathLike[str] = RECORDED) -> str:
    """The URL or path of the store to open. The recorded studies are unpacked into a temporary folder, once.

    ``recorded`` is relative to the current folder, usually that of the notebook; if it does not exist, the
    file in the package is taken. Raises :class:`~autotune.errors.InputError` if there is neither, or it is
    damaged.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return chosen
    file = Path(recorded)
    if not file.exists():
        file = ready_root() / "results" / RECORDED
    try:
        packed = file.read_bytes()
    except OSError as error:
        raise InputError(
            Problem(
                f"there are no recorded studies at {Path(recorded).absolute()}",
                expected=f"{VARIABLE}, or the notebook's own folder as the current one",
            )
        ) from error
    digest = hashlib.sha256(packed).hexdigest()[:16]
    # The name has the schema's version: another version of autotune may have migrated its copy.
    folder = f"autotune-recorded-{os.getuid()}-{VERSION}-{digest}"
    unpacked = Path(tempfile.gettempdir()) / folder / "recorded.db"
    if not unpacked.exists():
        try:
            content = gzip.decompress(packed)
        except (OSError, EOFError, zlib.error) as error:  # cut short, or a pointer of Git LFS
            message = f"the recorded studies cannot be unpacked: {error}"
            raise InputError(Problem(message, Location(str(file)), hint="fetch the file again")) from error
        _write(content, unpacked)
    return str(unpacked)


def _write(content: bytes, unpacked: Path) -> None:
    """Write the file as a whole or not at all, in a folder that only this user can write to."""
    unpacked.parent.mkdir(mode=0o700, exist_ok=True)
    if unpacked.parent.stat().st_uid != os.getuid():
        raise InputError(f"{unpacked.parent} belongs to somebody else")
    with written_whole(unpacked) as draft:
        draft.write_bytes(content)
