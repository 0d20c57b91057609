"""Freezing files: what was in them, by content."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from autotune.provenance.document import Documented

KEPT_BYTES = 16 << 20
"""A larger file of an objective (a recording, a model) is hashed, but its contents are not kept."""
_FOLDER_FILES = 2000
"""The most files of a folder that are looked at: it may hold data."""
_GENERATED = frozenset({"__pycache__", "node_modules", "build", "dist"})

Signature = tuple[tuple[str, int, int, int], ...]
"""Path, time of modification in ns, size and inode of each file; zeros for a missing one."""


@dataclass(frozen=True)
class FrozenFile(Documented):
    """A file by content. ``sha256`` is ``None`` where it could not be read; ``kept`` says whether its
    contents are among the artefacts."""

    name: str
    bytes: int
    sha256: str | None
    kept: bool


def is_file(path: Path) -> bool:
    """Whether a file is there.

    ``Path.is_file`` raises where a name is longer than a file's can be, or a folder may not be searched.
    """
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    """Whether a folder is there, in the same way."""
    return os.path.isdir(path)  # noqa: PTH112


def held_open(status: os.stat_result) -> bool:
    """Whether this process has the file open, other than as its standard streams.

    It must not be opened once more: closing it again drops the locks that this process holds on it, as its
    database does on its store (https://www.sqlite.org/howtocorrupt.html, 2.2). Another program then takes the
    database for one that nobody uses, and deletes what was just written.
    """
    descriptors = Path("/dev/fd")
    for number in (int(one.name) for one in descriptors.iterdir()) if is_folder(descriptors) else ():
        try:
            held = os.fstat(number)
        except OSError:  # the descriptor of the listing itself, which is closed by now
            continue
        if number > 2 and (held.st_dev, held.st_ino) == (status.st_dev, status.st_ino):
            return True
    return False


def freeze(path: Path, name: str) -> tuple[FrozenFile, bytes | None]:
    """Hash a file; hand back its contents too where they are at most :data:`KEPT_BYTES` bytes."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or held_open(status):  # a pipe would never end
            return FrozenFile(name, 0, None, False), None
        digest, size, kept = hashlib.sha256(), 0, bytearray()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size += len(block)
                if size <= KEPT_BYTES:
                    kept += block
    except OSError:
        return FrozenFile(name, 0, None, False), None
    whole = size <= KEPT_BYTES
    return FrozenFile(name, size, digest.hexdigest(), whole), bytes(kept) if whole else None


def named(paths: Iterable[Path | str]) -> dict[str, Path]:
    """The files, by a name that does not depend on where the tree lies: relative to their common folder.

    A folder stands for all files in it but hidden and generated ones, also behind links to folders.
    """
    files = sorted({Path(os.path.abspath(file)) for path in paths for file in _expand(Path(path))})  # noqa: PTH100
    if not files:
        return {}
    common = Path(os.path.commonpath([file.parent for file in files]))
    return {file.relative_to(common).as_posix(): file for file in files}


def signature(paths: Iterable[Path | str]) -> Signature:
    """What changes when somebody edits one of the files, without reading any: some microseconds a file."""
    return tuple(_sign(file) for path in paths for file in _expand(Path(path)))


def _sign(path: Path) -> tuple[str, int, int, int]:
    try:
        status = path.stat()
    except OSError:
        return str(path), 0, 0, 0
    return str(path), status.st_mtime_ns, status.st_size, status.st_ino


def _expand(path: Path) -> Iterator[Path]:
    if not is_folder(path):
        yield path
        return
    found, seen = 0, {os.path.realpath(path)}
    for folder, folders, files in os.walk(path, followlinks=True):
        shown = sorted(f for f in folders if not f.startswith(".") and f not in _GENERATED)
        real = {name: os.path.realpath(Path(folder, name)) for name in shown}
        folders[:] = [name for name in shown if real[name] not in seen]  # a link may lead back
        seen.update(real.values())
        for file in sorted(files):
            if not file.startswith(".") and not file.endswith(".pyc"):
                yield Path(folder, file)
                found += 1
                if found == _FOLDER_FILES:
                    return
