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

    For this process that is what a memory cap counts: mapped files, libraries among them, are left out, since
    their pages can be dropped. For a child they are included. The kernel's high-water mark of this process is
    reset at the start (Linux 4.0); where that is not possible, the peak is that of its whole life. The kernel
    has only one mark for all children so far, so a child counts where it exceeds the earlier ones, or where
    :meth:`note` is called for it.
    """

    def __init__(self) -> None:
        self._children = _largest_child()
        self._noted = 0
        forget_peak()

    def note(self, peak: int) -> None:
        """Count a child that has ended, whose peak was so many bytes."""
        self._noted = max(self._noted, peak)

    def read(self) -> int:
        """The peak in bytes."""
        children = _largest_child()
        return max(peak_resident(), children if children > self._children else 0, self._noted)


def forget_peak() -> None:
    """Reset the high-water mark of this process to what it uses now, where the kernel allows it."""
    with suppress(OSError):
        _CLEAR.write_text(_RESET_PEAK)


def peak_resident() -> int:
    """The largest resident size of this process since its mark was reset, without mapped files, in bytes."""
    found = {"VmHWM": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "RssFile": 0} | _status()
    return max(found["VmHWM"] - found["RssFile"], 0)


def resident() -> int:
    """What this process has in memory now, without mapped files, in bytes; 0 where that is unknown."""
    found = {"VmRSS": 0, "RssFile": 0} | _status()
    return max(found["VmRSS"] - found["RssFile"], 0)


def _status() -> dict[str, int]:
    """The sizes in ``/proc/self/status`` by name, in bytes; empty where it cannot be read."""
    found = {}
    with suppress(OSError, ValueError):
        for line in _STATUS.read_text().splitlines():
            name, _, value = line.partition(":")
            if value.endswith(" kB"):
                found[name] = 1024 * int(value.split()[0])
    return found


def _largest_child() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
