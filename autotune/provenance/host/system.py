"""Tolerant reading of ``/proc`` and ``/sys``: whatever is not there is ``None``, never an exception.

Containers hide files, ARM lacks others, and some files of ``/sys`` exist but refuse to be read. All
that code here ever asks of the kernel goes through :class:`System`, so that a machine can be
described by a folder with a few files in it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_LIMIT = 256 * 1024
"""Bytes that are read of a file, which in ``/proc`` may be of any length."""


@dataclass(frozen=True)
class System:
    """The files of a machine, below ``root``: this machine's own, or a copy of another's."""

    root: Path = Path("/")

    @property
    def live(self) -> bool:
        """Whether this is the running machine, so that the C library may be asked as well."""
        return self.root == Path("/")

    def path(self, name: str) -> Path:
        """Where the absolute path ``name`` lies below the root."""
        return self.root / name.lstrip("/")

    def text(self, name: str, limit: int = _LIMIT) -> str | None:
        """The first ``limit`` bytes of a file, stripped of blanks and zero bytes at both ends."""
        try:
            with self.path(name).open("rb", buffering=0) as file:
                return file.read(limit).decode(errors="replace").strip(" \t\r\n\0")
        except OSError:
            return None

    def number(self, name: str) -> int | None:
        """The integer that a file holds."""
        return as_int(self.text(name, 64))

    def names(self, folder: str) -> tuple[str, ...]:
        """The sorted names in a folder; empty where there is no such folder."""
        try:
            return tuple(sorted(os.listdir(self.path(folder))))  # noqa: PTH208
        except OSError:
            return ()

    def exists(self, name: str) -> bool:
        try:
            return self.path(name).exists()
        except OSError:
            return False

    def fields(self, name: str, limit: int = _LIMIT) -> dict[str, str]:
        """The ``key: value`` lines of a file such as ``/proc/meminfo``; the first of a key counts."""
        return key_values(self.text(name, limit) or "", ":")

    def sysconf(self, name: str) -> int | None:
        """``os.sysconf`` of the running machine; ``None`` for a copied one or an unknown value."""
        if not self.live or name not in os.sysconf_names:
            return None
        try:
            value = os.sysconf(name)
        except (OSError, ValueError):
            return None
        return value if value > 0 else None


def key_values(text: str, separator: str) -> dict[str, str]:
    """``key <separator> value`` lines as a dictionary, both sides stripped; the first of a key counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, mark, value = line.partition(separator)
        if mark:
            found.setdefault(key.strip(), value.strip())
    return found


def as_int(text: str | None) -> int | None:
    """An integer in base 10, or ``None``."""
    try:
        return int(text) if text else None
    except ValueError:
        return None


def as_bytes(text: str | None) -> int | None:
    """A size as ``/sys`` writes it (``48K``, ``32M``) or as ``/proc/meminfo`` does (``12 kB``)."""
    if not text:
        return None
    digits = text.rstrip("kKmMgGiB \t")
    unit = text[len(digits) :].strip().lower()[:1]
    number = as_int(digits.strip())
    scale = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(unit)
    return None if number is None or number < 0 or scale is None else number * scale


def cpu_list(text: str | None) -> tuple[int, ...]:
    """The processors in a list such as ``0-3,8,10-11``; what cannot be read is left out."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, mark, last = part.strip().partition("-")
        low, high = as_int(first), as_int(last.partition(":")[0]) if mark else as_int(first)
        if low is not None and high is not None and 0 <= low <= high < 1 << 20:
            found.update(range(low, high + 1))
    return tuple(sorted(found))
