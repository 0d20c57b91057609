"""What the kernel knows of files: which file system they lie on, and what of them is not on the disk yet."""

from __future__ import annotations

import ctypes
import os
import re
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from autotune.measure.clocks import perf_counter

IN_MEMORY = ("tmpfs", "ramfs")
"""File systems on which nothing is ever written to a disk."""

_CACHESTAT = 451
"""The system call, by the number that it has on all architectures but Alpha's; Linux 6.5."""


_PROBES = 5


@dataclass(frozen=True)
class Cached:
    """Of a file, in pages."""

    held: int
    """In memory."""
    unwritten: int
    """Changed in memory and not yet on the disk, or on the way there."""


def cached(file: Path) -> Cached | None:
    """What of the file the kernel has in memory; ``None`` where it does not say."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    whole, found = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
    descriptor = os.open(file, os.O_RDONLY)
    try:
        if libc.syscall(ctypes.c_long(_CACHESTAT), descriptor, whole, found, 0) != 0:
            return None
    finally:
        os.close(descriptor)
    return Cached(held=int(found[0]), unwritten=int(found[1]) + int(found[2]))


def file_system(folder: Path) -> str:
    """The type of the file system that a folder lies on, as ``ext4``; ``unknown`` where nobody says."""
    place, found = str(folder.resolve()), ("", "unknown")
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return found[1]
    for line in mounts:
        own, _, of_type = line.partition(" - ")
        mounted = unescaped(own.split()[4])
        inside = place == mounted or place.startswith(mounted.rstrip("/") + "/")
        if inside and len(mounted) >= len(found[0]):
            found = (mounted, of_type.split()[0])
    return found[1]


def unescaped(path: str) -> str:
    """A path as ``mountinfo`` writes it, with blanks and the like in octal."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def sync_seconds(folder: Path) -> float:
    """What it takes to bring a page to the disk: the median of a few that are appended to a file."""
    taken = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(_PROBES):
            file.write(bytes(4096))
            began = perf_counter()
            os.fdatasync(file.fileno())
            taken.append(perf_counter() - began)
    return statistics.median(taken)


def written_bytes() -> int | None:
    """What this process has handed to the kernel to be written so far; ``None`` where nobody counts."""
    try:
        counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    except OSError:
        return None
    return int(counts["wchar"])
