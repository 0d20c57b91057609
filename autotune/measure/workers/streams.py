"""What a process prints to. An objective may close it, or put something of its own in its place."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

_NUMBERS = {"stdout": 1, "stderr": 2}


def line_buffered(number: int) -> TextIO:
    """To a descriptor. A block buffer would lose the last words of a process that crashes."""
    return os.fdopen(number, "w", buffering=1, closefd=False, errors="replace")


class Streams:
    """Standard output and error as they are now, which :meth:`restore` makes of them again."""

    def __init__(self) -> None:
        self._objects = {name: getattr(sys, name) for name in _NUMBERS}
        self._descriptors: dict[int, int] = {}
        for number in _NUMBERS.values():
            with suppress(OSError):  # closed, and to stay so
                self._descriptors[number] = os.dup(number)

    def restore(self) -> None:
        """Write out what they still hold, and undo what was done to them."""
        for name, number in _NUMBERS.items():
            for stream in (getattr(sys, name, self._objects[name]), self._objects[name]):
                with suppress(Exception):  # whatever stands there need not be a stream
                    stream.flush()
            with suppress(OSError, KeyError):
                os.dup2(self._descriptors[number], number)
            if getattr(self._objects[name], "closed", False):
                self._objects[name] = line_buffered(number)
            setattr(sys, name, self._objects[name])
