"""What the kernel says of a process or of one of its threads (``/proc/PID/stat``)."""

from __future__ import annotations


def stat_of(folder: object) -> list[bytes]:
    """The fields from the state on: the parent is the second, the start in clock ticks since boot the 20th.

    ``folder`` is ``/proc/PID``, or that of a thread. Raises ``OSError`` where there is no such process.
    """
    with open(f"{folder}/stat", "rb") as file:  # noqa: PTH123 - it is called for each process of the machine
        # The name in parentheses may hold blanks and parentheses itself.
        return file.read().rpartition(b")")[2].split()
