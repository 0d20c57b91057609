"""Several searches on one machine: each measures on cores of its own or, where none are left, in turns.

Two measurements on the same core at once mean nothing, so there is only one at a time on each core (and on
each GPU: :mod:`autotune.measure.gpu.claims`). A search *claims* the physical cores that it measures on for as
long as it runs, and other searches choose among the rest. A search that finds too few free cores shares those
of others, and then each measurement waits for its *turn*.

Claims and turns are locks on files (``flock``), which the kernel frees when the process ends, however it
ends. Containers on one machine do not see each other's locks unless they have the same folder
``AUTOTUNE_LOCKS``.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import InputError, Problem
from autotune.measure.cores.pinning import Cores, allowed_here, choose_cores, siblings_here
from autotune.paths import expanded

VARIABLE = "AUTOTUNE_LOCKS"
"""The variable with the folder of the locks, which must be the same for all searches on a machine."""

_USUAL = (Path("/run/lock"), Path("/dev/shm"), Path("/tmp"))
"""Folders that all users share. The first two are emptied by a reboot."""

LOOK_AGAIN_SECONDS = 0.01
"""The time between two looks whether the turn has come."""

SLICE_SECONDS = 1.0
"""How long a turn may be kept for readings that follow each other. If each of them queued again behind trials
that take seconds, a finale whose readings take microseconds would take minutes."""


def locks_folder() -> Path:
    """Where the locks are: the folder in the variable, else the first usual one that all users can write to.

    That holds for root as well: it does not use a folder that only root can write to, where other users have
    no locks.
    """
    if given := os.environ.get(VARIABLE, "").strip():
        return _made(expanded(given))
    return shared_folder(_USUAL) or Path(tempfile.gettempdir())


def _made(folder: Path) -> Path:
    """``folder``, made where it is missing: without it every lock would be free, and nobody would notice."""
    try:
        folder.mkdir(parents=True)
        folder.chmod(0o1777)  # as /tmp: other users must be able to lock there too, whatever the umask
    except OSError as error:
        if not folder.is_dir():
            said = f"{VARIABLE} names {str(folder)!r}, which is not a folder and cannot be made"
            expected = "a folder that all searches on this machine have in common"
            raise InputError(Problem(f"{said}: {error.strerror}", expected=expected)) from error
    return folder


def shared_folder(places: Sequence[Path]) -> Path | None:
    """The first folder in which everybody may make files, and nobody may remove those of others."""
    return next((place for place in places if _is_shared(place)), None)


def _is_shared(place: Path) -> bool:
    try:
        mode = place.stat().st_mode
    except OSError:
        return False
    open_to_all = stat.S_ISVTX | stat.S_IWOTH | stat.S_IXOTH
    # The second is no tautology: a file system may be read only.
    return mode & open_to_all == open_to_all and os.access(place, os.W_OK | os.X_OK)


class FileLock:
    """A lock on a file, which is made where it is missing and never removed. Where there can be no such file,
    the lock is always free."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path)

    def take(self, *, wait: bool = False) -> bool:
        """Take the lock; returns whether it is ours now. With ``wait`` it waits for it."""
        if self._file is None:
            return True
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError:
            return True  # this file system has no locks
        return True

    def release(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # this file system has no locks
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release it for good. May be called again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Turn:
    """One measurement at a time on some cores, and on a GPU, in the order in which the searches came.

    For each core (and GPU) there are two locks: the one who measures holds the turn, and the next in line
    holds the gate, so that a search which has just measured queues behind it. All take the locks in the same
    order, so that no two wait for each other.
    """

    def __init__(self, folder: Path, physical: Sequence[int], gpu: str = "") -> None:
        names = [*(f"core-{core}" for core in sorted(physical)), *([f"gpu-{gpu}"] if gpu else [])]
        self._gates = [FileLock(folder / f"autotune-{name}.gate") for name in names]
        self._turns = [FileLock(folder / f"autotune-{name}.turn") for name in names]
        self._had = 0
        """How many of the locks are ours, gates first."""
        self.held = not names
        """Whether it is our turn."""
        self._keeps = False
        self._since = 0.0
        """When the turn that is being kept began."""

    def begin(self) -> bool:
        """Whether it is our turn; if not, we are queued for it now, and this is to be called again."""
        order = [*self._gates, *self._turns]
        while self._had < len(order):
            if not order[self._had].take():
                return False
            self._had += 1
        for gate in self._gates:
            gate.release()
        self.held = True
        return True

    def end(self) -> None:
        """Let the next one have its turn, or leave the queue."""
        if self._had:
            for lock in (*self._gates, *self._turns):
                lock.release()
            self._had, self.held = 0, False

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn, and end it after the block, unless it is :meth:`kept`."""
        waited = not self.held
        while not self.begin():
            time.sleep(LOOK_AGAIN_SECONDS)
        if waited and self._keeps:
            self._since = time.monotonic()
        try:
            yield
        finally:
            if not self._keeps or time.monotonic() - self._since > SLICE_SECONDS:
                self.end()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside the block a turn that is taken is not ended before it has lasted :data:`SLICE_SECONDS`."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False
            self.end()

    def close(self) -> None:
        self.end()
        for lock in (*self._gates, *self._turns):
            lock.close()


@dataclass(frozen=True)
class Place:
    """The cores that a search works on. Close it in the end."""

    cores: Cores
    turn: Turn
    claims: tuple[FileLock, ...] = ()

    @property
    def remark(self) -> str:
        """What to tell the user about shared cores; empty where the cores are its own."""
        if not self.cores.shared:
            return ""
        which = ", ".join(map(str, self.cores.measuring))
        return (
            f"other searches measure on this machine and leave no core: this one takes turns with them on"
            f" {'core' if len(self.cores.measuring) == 1 else 'cores'} {which}, which takes longer"
        )

    def close(self) -> None:
        self.turn.close()
        for claim in self.claims:
            claim.close()


def find_place(wanted: int, folder: Path | None = None, gpu: str = "") -> Place:
    """Claim ``wanted`` cores to measure on; where others leave too few, share theirs. 0: not pinned.

    The turn of the place is for these cores and, where one is named, for a GPU.
    """
    folder = folder or locks_folder()
    allowed = allowed_here()
    siblings = {cpu: siblings_here(cpu) for cpu in allowed}
    if wanted <= 0:
        return Place(choose_cores(wanted, allowed, siblings), Turn(folder, (), gpu))
    choosing = FileLock(folder / "autotune-cores.choosing")
    choosing.take(wait=True)  # others for as long as it takes to look at all cores
    try:
        every = sorted(set(map(min, siblings.values())))
        claims = {core: FileLock(folder / f"autotune-core-{core}.claim") for core in every}
        free = {core for core, claim in claims.items() if claim.take()}
        taken = frozenset(cpu for cpu in allowed if min(siblings[cpu]) not in free)
        cores = choose_cores(wanted, allowed, siblings, taken)
        physical = {min(siblings[cpu]) for cpu in cores.measuring}
        ours = set() if cores.shared else physical
        for core in claims.keys() - ours:
            claims[core].close()
        return Place(cores, Turn(folder, sorted(physical), gpu), tuple(claims[core] for core in ours))
    finally:
        choosing.close()


def _open(path: Path) -> int | None:
    """Open it for reading only, which is enough for a lock: the file may belong to another user.

    No link is followed, and opening never waits for a pipe that somebody put there.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    for more in (0, os.O_CREAT | os.O_EXCL, 0):
        try:
            file = os.open(path, flags | more, 0o644)
        except (FileNotFoundError, FileExistsError):
            continue
        except OSError:
            return None
        if more:
            os.fchmod(file, 0o644)  # whatever the umask says
        return file
    return None
