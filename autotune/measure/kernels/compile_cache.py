"""Results of compilers, kept across searches: a folder of files named by keys of everything that went in.

An entry is one file: a line of JSON (key, hash of the content, facts), then the content. It is written under
another name and then renamed, so a writer that is killed leaves nothing half done, and two writers of one
entry do not disturb each other. An entry whose hash does not fit is ignored and removed. When the folder
grows past its limit, the entries that were not used for longest are removed.

Nothing here knows what a compiler is. The key must hold everything that the result depends on, which is up to
the caller (:mod:`autotune.measure.kernels.compiled_c`).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from autotune.errors import InputError
from autotune.paths import expanded

VARIABLE = "AUTOTUNE_CACHE"
"""The variable with the folder; ``off``: none. Default: ``autotune`` in ``$XDG_CACHE_HOME`` or
``~/.cache``."""

_NO = frozenset({"off", "no", "false", "0"})
_YES = frozenset({"", "on", "yes", "true", "1"})
"""Values of the variable that name no folder."""

MOST_BYTES = 2 * 2**30
"""Beyond that, what was not used for longest is deleted."""

FORMAT = 1
"""The version of the format of entries; part of every key."""

_KEPT = 0.8
"""The fraction of the limit that is left after clearing, so that not every new entry clears again."""

_STALE_SECONDS = 3600.0
"""An unfinished file that is older than this will not be finished any more."""

_UNFINISHED = ".unfinished-"


@dataclass(frozen=True)
class Compiled:
    """What a compiler made. ``facts`` are JSON: what it said, how long it took."""

    content: bytes
    facts: Mapping[str, object] = field(default_factory=dict)
    cached: bool = False
    """Whether it was made earlier, and nothing had to be compiled now."""


def cache_folder() -> Path | None:
    """Where the user's cache is; ``None`` where it is turned off, or the user has no home folder."""
    given = os.environ.get(VARIABLE, "").strip()
    if given.lower() in _NO:
        return None
    usual = os.environ.get("XDG_CACHE_HOME", "").strip()
    try:
        if given.lower() not in _YES:
            return expanded(given)
        return (Path(usual) if usual else expanded("~/.cache")) / "autotune" / "compiled"
    except InputError:  # in a container, as a user whom it does not know
        return None


def cache_key(**parts: str | bytes) -> str:
    """A hash of named parts, in whatever order they are given."""
    digest = hashlib.sha256(f"{FORMAT}".encode())
    for name, value in sorted(parts.items()):
        content = value.encode() if isinstance(value, str) else value
        digest.update(f"\0{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


class CompileCache:
    """A cache in ``folder``; with ``None`` nothing is kept. Failing to keep an entry never raises."""

    def __init__(self, folder: Path | None, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._most_bytes = most_bytes
        self._written: int | None = None
        """Bytes written since the folder was last looked through; ``None``: this process has not done so
        yet."""

    def get_or_make(self, key: str, make: Callable[[], Compiled]) -> Compiled:
        """What is kept under ``key``, else what ``make`` makes; where that raises, nothing is kept."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def get(self, key: str) -> Compiled | None:
        """The entry; ``None`` where there is none, or a damaged one."""
        if self.folder is None or not self._ours():
            return None
        path = self._path(key)
        try:
            head, _, content = path.read_bytes().partition(b"\n")
            entry = json.loads(head)
            if entry["key"] != key or entry["sha256"] != hashlib.sha256(content).hexdigest():
                raise ValueError("damaged")
            compiled = Compiled(content, entry["facts"], cached=True)
        except OSError:
            return None
        except (ValueError, KeyError, TypeError):
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)  # it was used just now
        return compiled

    def put(self, key: str, compiled: Compiled) -> None:
        """Keep it; where that fails (a full disk, no permission), it is compiled again next time."""
        if self.folder is None:
            return
        entry = {
            "key": key,
            "sha256": hashlib.sha256(compiled.content).hexdigest(),
            "facts": dict(compiled.facts),
        }
        text = json.dumps(entry).encode() + b"\n" + compiled.content
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._ours():
                return
            path = self._path(key)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_whole(path, text)
            self._make_room(len(text))

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / key

    def _ours(self) -> bool:
        """Whether nobody else can write there: what is found in it will be run."""
        try:
            found = (self.folder or Path()).stat()
        except OSError:
            return False
        return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

    def _make_room(self, written: int) -> None:
        """Look through the folder after the first entry of this process, and then now and then."""
        if self._written is not None and self._written + written < self._most_bytes / 16:
            self._written += written
            return
        self._written = 0
        entries = _entries(self.folder or Path())
        excess = sum(size for _, size, _ in entries) - self._most_bytes
        if excess <= 0:
            return
        excess += int((1 - _KEPT) * self._most_bytes)
        for _, size, path in entries:
            if excess <= 0:
                break
            with suppress(OSError):
                path.unlink()
            excess -= size


def _entries(folder: Path) -> list[tuple[float, int, Path]]:
    """``(last used, size, path)`` of each entry, oldest first. Old unfinished files are removed."""
    found = []
    now = time.time()
    for path in folder.glob("??/*"):
        with suppress(OSError):
            facts = path.stat()
            if _UNFINISHED not in path.name:
                found.append((facts.st_mtime, facts.st_size, path))
            elif now - facts.st_mtime > _STALE_SECONDS:
                path.unlink()
    return sorted(found)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that others see all of it or none, whatever happens and whoever else writes it."""
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name[:8]}{_UNFINISHED}", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
