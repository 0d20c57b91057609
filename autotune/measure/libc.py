"""The few calls of the C library that Python lacks."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies (a *child subreaper*, Linux 3.4)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> bool:
    """Ask for ``by`` when the parent dies; ``False`` where it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, int(by))
    return os.getppid() == parent


def flush_c_output() -> None:
    """Write out what C code has printed and its library still holds."""
    ctypes.CDLL(None).fflush(None)


def trim_heap() -> None:
    """Give freed memory back to the kernel, where the C library can (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")
