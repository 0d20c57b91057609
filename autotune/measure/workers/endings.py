"""What a guardian and a session tell each other. Loads nothing heavy, so that a guardian starts quickly."""

from __future__ import annotations

from dataclasses import dataclass

OUTPUT = b"o"
"""Order to the guardian, followed by its number in digits: what was printed since the last time?
Answered by :class:`Output`."""
KILL = b"k"
"""Order: kill the worker with all its descendants. Answered by :class:`Ended`."""
SILENT = b"s"
"""Order: the worker has closed its connection. If it is not dead in a moment, kill it. :class:`Ended`."""


@dataclass(frozen=True)
class Ended:
    """The guardian's last words: how the worker's process ended, after all its descendants were killed."""

    exit_code: int | None
    signal: int | None
    peak_memory: int
    output: str
    killed: bool
    """Whether it was killed on the session's order."""


@dataclass(frozen=True)
class Output:
    """The last lines that the worker and what it started have written since they were last asked for."""

    text: str
    order: int
    """The number of the order that it answers, so that an answer that comes too late is recognised."""
