"""The protocol between a program that opens :func:`autotune.run` and the worker that started it.

For each start of the program the worker makes a folder and names the document in it by the variable
``AUTOTUNE_RUN``. It is the name of a file, since an open descriptor would not reach the ranks below a
launcher::

    run.json   worker ─▶ program   the knobs, and when a report is wanted at once
    socket     program ─▶ worker   one JSON object a packet: hello, report, facts, end
               worker ─▶ program   a packet once a report that ``awaits`` it was decided upon
    board      worker ─▶ program   shared memory: the order to stop; and what the ranks tell each other
    read       program ─▶ worker   an empty file: it has read the knobs, though it sends nothing

Only the standard library is imported, and little of it: this is loaded in training scripts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "AUTOTUNE_RUN"
FORMAT = 2

DOCUMENT = "run.json"
SOCKET = "socket"
BOARD = "board"
READ = "read"

ANSWER = b"decided"

LARGEST_BYTES = 1 << 18
"""The most bytes of a packet. The kernel's own limit may be lower."""

BOARD_BYTES = 1 << 16
"""A sparse file: only the words in use take memory."""

ORDER = 0
"""Word of the board (64 bits each): not 0 where the run is to stop."""
OWNER = 1
"""Word of the board: the process that reports."""
AGREED = 8
"""First of the words in which ranks write down when they stop; see :mod:`autotune.hook.runs.ranks`."""

_LONGEST_ADDRESS = 107
"""Bytes; the kernel's limit for the path of a socket."""


@contextmanager
def socket_address(folder: str) -> Iterator[str]:
    """The address of the socket in ``folder``, however long its path is."""
    path = f"{folder}/{SOCKET}"
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield path
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)
