"""A line on stderr while something takes long that prints nothing by itself."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import click

LONG = 3.0
"""Seconds after which the line is written."""

READING_A_SPACE = "reading the space, and the recording if it replays one: Ctrl-C ends it"


@contextmanager
def said_if_long(text: str, quiet: bool = False) -> Iterator[None]:
    """Write ``text`` to stderr once the block has taken :data:`LONG` seconds, unless ``quiet``.

    This uses the process's alarm (``SIGALRM``) and not a thread, since no thread may exist when workers are
    forked. An alarm that was set before is set again afterwards.
    """

    def say(number: int, frame: FrameType | None) -> None:
        with suppress(OSError, RuntimeError):  # RuntimeError: stderr was being written to
            click.echo(text, err=True)

    if quiet:
        yield
        return
    began = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, 0)  # first: an earlier alarm must not call say()
    handler = signal.signal(signal.SIGALRM, say)
    signal.setitimer(signal.ITIMER_REAL, LONG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        rest = max(left - (time.monotonic() - began), 1e-3) if left else 0.0
        signal.setitimer(signal.ITIMER_REAL, rest, interval)
