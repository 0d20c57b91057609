"""A folder in which several searches build and run a program: one at a time, each knowing whose build it is.

Locks and stamps lie where all searches of a machine look
(:func:`autotune.measure.cores.turns.locks_folder`), by the path of the folder. A stamp is the user's own:
the lock keeps another user's search out, but what that search has built is not noticed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from autotune.measure.cores.turns import FileLock, locks_folder


@contextmanager
def alone_at(path: Path, waiting: Callable[[], AbstractContextManager[None]] = nullcontext) -> Iterator[None]:
    """Inside, no other search uses the folder or file. The kernel frees the lock when the process ends.

    ``waiting`` is entered while this waits for another search.
    """
    lock = FileLock(_beside_the_locks(path, "alone"))
    try:
        if not lock.take():
            with waiting():
                lock.take(wait=True)
        yield
    finally:
        lock.close()


class BuildStamp:
    """Which configuration was built last in ``folder`` by ``owner``. To be used inside :func:`alone_at`.

    ``owner`` is a folder of one search that no other search has, so no build of another search is ever
    trusted.
    """

    def __init__(self, folder: Path, owner: Path) -> None:
        self._file = _beside_the_locks(folder, f"built-{os.getuid()}")
        self._owner = owner.absolute()

    def read(self) -> str:
        """What was built last, if by us; else empty."""
        try:
            ours = self._file.lstat().st_uid == os.getuid()
            owner, _, what = self._file.read_bytes().partition(b"\n")
        except OSError:
            return ""
        return os.fsdecode(what) if ours and owner == os.fsencode(self._owner) else ""

    def clear(self) -> None:
        """From now on, what is in the folder counts for no configuration."""
        with suppress(FileNotFoundError):
            self._file.unlink()

    def write(self, what: str) -> None:
        """Note that ``what`` was built. Where that cannot be written, it will be built again."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with suppress(OSError):
            file = os.open(self._file, flags, 0o600)
            try:
                os.write(file, os.fsencode(f"{self._owner}\n{what}"))
            finally:
                os.close(file)


def _beside_the_locks(path: Path, ending: str) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    return locks_folder() / f"autotune-path-{name}.{ending}"
