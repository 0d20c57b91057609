"""The peak memory of one trial in a process that lives for many."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


class PeakMemory:
    """The most memory since it was made: of this process, or of a child that has ended.

    Of this process it is what a cap counts: files that are mapped, libraries among them, are left out, for
    their pages can be dropped; of a child they are included. The kernel's own high-water mark is set back at
    the start (Linux 4.0); where it cannot be, the answer is that of the process's whole life. Children count
    where they set a new record of theirs, and those of which :meth:`note` is told in any case.
    """

    def __init__(self) -> None:
        self._children = _largest_child()
        self._noted = 0
        forget_peak()

    def note(self, peak: int) -> None:
        """A child has ended that took so many bytes at most."""
        self._noted = max(self._noted, peak)

    def read(self) -> int:
        """Bytes."""
        children = _largest_child()
        return max(peak_resident(), children if children > self._children else 0, self._noted)


def forget_peak() -> None:
    """Set the high-water mark of this process back to what it has now, where the kernel lets it."""
    with suppress(OSError):
        _CLEAR.write_text(_RESET_PEAK)


def peak_resident() -> int:
    """Bytes: the largest resident size of this process since its mark was set back, without mapped files."""
    found = {"VmHWM": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "RssFile": 0} | _status()
    return max(found["VmHWM"] - found["RssFile"], 0)


def resident() -> int:
    """Bytes: what this process has in memory now, without mapped files; 0 where that cannot be told."""
    found = {"VmRSS": 0, "RssFile": 0} | _status()
    return max(found["VmRSS"] - found["RssFile"], 0)


def _status() -> dict[str, int]:
    """Bytes by name, as far as the kernel tells."""
    found = {}
    with suppress(OSError, ValueError):
        for line in _STATUS.read_text().splitlines():
            name, _, value = line.partition(":")
            if value.endswith(" kB"):
                found[name] = 1024 * int(value.split()[0])
    return found


def _largest_child() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
