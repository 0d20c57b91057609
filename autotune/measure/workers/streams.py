"""Standard output and error of a process: an objective may close them or replace them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

_NUMBERS = {"stdout": 1, "stderr": 2}


def line_buffered(number: int) -> TextIO:
    """A text stream to a descriptor. A block buffer would lose the last output of a process that crashes."""
    return os.fdopen(number, "w", buffering=1, closefd=False, errors="replace")


class Streams:
    """Standard output and error as they are now; :meth:`restore` restores them."""

    def __init__(self) -> None:
        self._objects = {name: getattr(sys, name) for name in _NUMBERS}
        self._descriptors: dict[int, int] = {}
        for number in _NUMBERS.values():
            with suppress(OSError):  # it is closed, and stays so
                self._descriptors[number] = os.dup(number)

    def restore(self) -> None:
        """Write out what they still hold, and undo what was done to them."""
        for name, number in _NUMBERS.items():
            for stream in (getattr(sys, name, self._objects[name]), self._objects[name]):
                with suppress(Exception):  # the objective may have put anything there
                    stream.flush()
            with suppress(OSError, KeyError):
                os.dup2(self._descriptors[number], number)
            if getattr(self._objects[name], "closed", False):
                self._objects[name] = line_buffered(number)
            setattr(sys, name, self._objects[name])
