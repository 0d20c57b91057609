"""A word where something takes long that says nothing by itself."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import click

LONG = 3.0
"""Seconds after which somebody who waits wonders."""

READING_A_SPACE = "reading the space, and the recording if it replays one: Ctrl-C ends it"


@contextmanager
def said_if_long(text: str, quiet: bool = False) -> Iterator[None]:
    """Write ``text`` to stderr once the block has taken :data:`LONG`, unless all is to be ``quiet``.

    By the alarm of the process, as no thread may be there when workers are forked. It is the command line's
    own; one that somebody else has set goes on afterwards.
    """

    def say(number: int, frame: FrameType | None) -> None:
        with suppress(OSError, RuntimeError):  # RuntimeError: stderr was being written to
            click.echo(text, err=True)

    if quiet:
        yield
        return
    began = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, 0)  # before the handler: it is not theirs
    handler = signal.signal(signal.SIGALRM, say)
    signal.setitimer(signal.ITIMER_REAL, LONG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        rest = max(left - (time.monotonic() - began), 1e-3) if left else 0.0
        signal.setitimer(signal.ITIMER_REAL, rest, interval)
