"""The few calls of the C library that Python lacks."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_M_MMAP_THRESHOLD = -3
_IN_OPEN = 0x20
_CLONE_NEWUSER = 0x10000000


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies (a *child subreaper*, Linux 3.4)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> bool:
    """Ask for ``by`` when the parent dies; ``False`` where it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, int(by))
    return os.getppid() == parent


def dying_with_parent() -> Callable[[], None]:
    """What a child does before it becomes a program, so that it dies with this process.

    All that it needs is looked up before the fork.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the kernel knew
            os._exit(1)

    return before_exec


def leave_namespace(flag: int, what: str) -> None:
    """Into a namespace of one's own, of the kind that ``flag`` says (``CLONE_NEW...``); of a user namespace,
    where the machine allows no other.

    Raises ``OSError`` where none can be made, with ``what`` it was for.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flag) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    if ctypes.get_errno() != errno.EPERM or libc.unshare(_CLONE_NEWUSER | flag) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no namespace {what} can be made: {os.strerror(number)}")
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
    with suppress(OSError):
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def flush_c_output() -> None:
    """Write out what C code has printed and its library still holds."""
    ctypes.CDLL(None).fflush(None)


def map_large_blocks(least: int) -> None:
    """Let each block of ``least`` bytes or more be mapped by itself (glibc), and unmapped when it is freed.

    Otherwise the heap grows by gaps between blocks, which depend on everything that came before: the peak of
    the same training varies by some 4 %. Mapping costs time. For a process that is started anew, the variable
    ``MALLOC_MMAP_THRESHOLD_`` does the same.
    """
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    if option is not None:
        option(_M_MMAP_THRESHOLD, least)


def trim_heap() -> None:
    """Give freed memory back to the kernel, where the C library can (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def watch_openings(path: str) -> int:
    """A descriptor that is readable once somebody on this machine has opened the file (inotify, Linux).

    Raises ``OSError`` where inotify is missing, or there are too many such watches.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        raise OSError(errno.ENOSYS, "inotify")
    watch: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if watch < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    if libc.inotify_add_watch(watch, os.fsencode(path), ctypes.c_uint32(_IN_OPEN)) < 0:
        error = ctypes.get_errno()
        os.close(watch)
        raise OSError(error, "inotify_add_watch")
    return watch


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")
