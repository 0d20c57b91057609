"""Stopping all ranks of a training after the same step, without any rank waiting for another.

The order to stop may come at any moment, so the ranks see it at different steps. Until it comes, a check is
one read of shared memory. From then on, each check takes a lock and writes how far its rank is. When all
ranks have done so, the last of them writes the first step that is ahead of all ranks. No rank can have
passed that step, since every check now takes the lock::

    going ──order seen──▶ present ──all are──▶ agreed on step s ──step s is done──▶ stops
                            │  ▲
                            └──┘ the next check, further on

A rank that never checks is no deadlock. Nothing is agreed, all go on, and the search ends them later.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autotune.measure.commands.run_protocol import AGREED, BOARD_BYTES, ORDER

STEPS, READS = 1, 2
"""What ranks count by: the steps that they report, or how often they have read ``should_stop``."""

_KIND, _RUN, _AT = AGREED, AGREED + 1, AGREED + 2
"""Words of the board: what is agreed to count by (0: not agreed), in which run, and the count to stop at."""

_PLACES = 16
_PLACE = 4
"""From word ``_PLACES`` on, each rank has ``_PLACE`` words: its run (from 1), last step + 1, stride, and
reads. The stride is the distance between its last two reports; 0 if there is only one."""

_LOCK_SECONDS = 2.0
_FURTHEST = 1000
"""How many strides ahead a step is looked for that ranks of different strides have in common."""


@dataclass(frozen=True)
class Rank:
    """Which of how many processes of a training this is."""

    number: int = 0
    count: int = 1


_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("LOCAL_RANK", "WORLD_SIZE"),  # Lightning says no more to the processes that it starts
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def find_rank(known: tuple[int, int] | None = None) -> Rank:
    """This process's rank, by ``torch.distributed`` if that is set up, or else by the launcher's variables.

    ``known`` is the rank and the number of ranks as the script gave them, which comes first. Without any of
    these, the process is the only one.
    """
    if known is not None:
        return Rank(*known)
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        return Rank(dist.get_rank(), dist.get_world_size())
    for number, count in _VARIABLES:
        try:
            found = Rank(int(os.environ[number]), int(os.environ[count]))
        except (KeyError, ValueError):
            continue
        if 0 <= found.number < found.count:
            return found
    return Rank()


class Stop:
    """Says whether this rank must stop, during one run of its process."""

    def __init__(self, words: memoryview | None, board: str, rank: Rank) -> None:
        self._words = words
        self._board = board
        self._pid = os.getpid()
        self._rank = rank
        self._run = 1
        self._step = -1
        self._stride = 0
        self._reads = 0
        self._agreed: tuple[int, int] | None = None
        if (_PLACES + _PLACE * rank.count) * 8 > BOARD_BYTES:
            self._words = None
        if rank.count > 1:
            self._locked(self._begin)

    def after(self, step: int) -> bool:
        """Whether all ranks must stop now that ``step`` is done."""
        if step > self._step >= 0:
            self._stride = step - self._step
        self._step = max(step, self._step)
        return self._check(STEPS)

    def asked(self) -> bool:
        """Whether all ranks must stop; counts as a read of ``should_stop``."""
        self._reads += 1
        return self._check(READS)

    def forget(self) -> None:
        """Read the board no more."""
        self._words = None

    def _check(self, kind: int) -> bool:
        if self._words is None or not self._words[ORDER]:
            return False
        if self._rank.count == 1:
            return True
        if self._agreed is None:
            self._locked(self._settle)
        if self._agreed is None:
            return False
        by, at = self._agreed
        return self._step >= at if by == STEPS else kind == READS and self._reads >= at

    # -- under the lock ------------------------------------------------------------------------

    def _locked(self, act: Callable[[memoryview], None]) -> None:
        """Call ``act`` while no other rank does. A rank that cannot get the lock gives up the board."""
        words = self._words
        if words is None or os.getpid() != self._pid:
            return
        try:
            lock = os.open(self._board, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            self._words = None  # the search has gone, and its folder with it
            return
        try:
            if _lock(lock):
                act(words)
            else:
                self._words = None
        finally:
            os.close(lock)

    def _begin(self, words: memoryview) -> None:
        """Write that another run of this rank has begun."""
        place = _PLACES + _PLACE * self._rank.number
        self._run = words[place] + 1
        self._write(words)

    def _settle(self, words: memoryview) -> None:
        if not words[_KIND]:
            self._write(words)
            self._agree(words)
        if not words[_KIND]:
            return
        if words[_RUN] < self._run:  # an earlier run, which all have left
            self._agreed = (STEPS, -1)
        else:
            self._agreed = (words[_KIND], words[_AT])

    def _write(self, words: memoryview) -> None:
        place = _PLACES + _PLACE * self._rank.number
        for offset, word in enumerate((self._run, self._step + 1, self._stride, self._reads)):
            words[place + offset] = word

    def _agree(self, words: memoryview) -> None:
        places = range(_PLACES, _PLACES + _PLACE * self._rank.count, _PLACE)
        runs, done, strides, reads = ([words[p + offset] for p in places] for offset in range(_PLACE))
        if set(runs) != {self._run}:
            return
        if all(done):
            kind, at = STEPS, meeting([d - 1 for d in done], strides) if all(strides) else None
        elif all(reads):
            kind, at = READS, max(reads) + 1
        else:
            return
        if at is not None:
            words[_RUN], words[_AT] = self._run, at
            words[_KIND] = kind


def meeting(steps: Sequence[int], strides: Sequence[int]) -> int | None:
    """The first step ahead of all ranks that each of them will report, advancing by its own stride.

    ``None`` if there is none within :data:`_FURTHEST` strides.

    >>> meeting([7, 8], [1, 1])
    9
    >>> meeting([13, 10], [1, 10])
    20
    """
    widest = max(range(len(steps)), key=lambda i: strides[i])
    step = steps[widest]
    for _ in range(_FURTHEST):
        step += strides[widest]
        if step > max(steps) and all((step - s) % d == 0 for s, d in zip(steps, strides, strict=True)):
            return step
    return None


def _lock(descriptor: int) -> bool:
    """Take the lock, which others hold for microseconds; false if a rank that was halted keeps it."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(1e-4)
        except OSError:
            return False
        else:
            return True
