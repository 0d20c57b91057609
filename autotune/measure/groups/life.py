"""The ranks of a process group from their start to their end, watched while they work."""

from __future__ import annotations

import os
import select
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress

from autotune.measure.clocks import monotonic
from autotune.measure.cores.pinning import allowed_here
from autotune.measure.groups.awake import KeptAwake
from autotune.measure.groups.board import Board
from autotune.measure.groups.device import Device, make_limits, spread, sweep_device_groups
from autotune.measure.groups.failures import RankState, verdict
from autotune.measure.groups.messages import Call, Done, Go, Raised
from autotune.measure.groups.network import Network
from autotune.measure.groups.process import RankProcess
from autotune.measure.groups.rank import CALLED, RankBirth
from autotune.measure.objective import Lost
from autotune.measure.ownership import make_scratch

START_SECONDS = 120.0
"""How long all ranks may take to join the network, as long as a worker may take to start: on a machine that
others keep busy, importing PyTorch three times at once took more than a minute."""

FIRST_SECONDS = 60.0
"""How long the first sign of life in a rank's first call may take, since that call imports what it needs."""

_WATCH_SECONDS = 0.2
"""The time between two looks at signs of life. Answers and deaths are noticed at once."""

_GRACE_SECONDS = 0.3
"""How long to wait for other ranks after one has failed: the first failure that is seen may not be the
cause."""


class GroupLife:
    """Ranks that have joined ``network``. Close them after a signal; the owner of the network closes that."""

    def __init__(
        self,
        devices: Sequence[Device],
        network: Network,
        environment: Mapping[str, str],
        preload: tuple[str, ...],
        name: str,
    ) -> None:
        """``name`` distinguishes its control groups from those of other groups of this process."""
        sweep_device_groups()
        self.ranks: list[RankProcess] = []
        self.awake = KeptAwake(())
        self._network = network
        self._was_called = False
        with Board.make(len(devices)) as memory:
            self._board = Board(memory.fileno(), len(devices))
            self._meeting = make_scratch("meeting")
            try:
                self._start(spread(devices, allowed_here()), memory.fileno(), environment, preload, name)
                self._join()
            except BaseException:
                self.close()
                raise

    @property
    def alive(self) -> bool:
        return all(rank.exit_code is None for rank in self.ranks)

    @property
    def processes(self) -> frozenset[int]:
        return frozenset(rank.pid for rank in self.ranks) | self.awake.processes

    def call(self, call: Call, stall: float, seconds: float) -> list[Done]:
        """The answers of all ranks; raises the signal that ends the trial.

        ``stall``: how many seconds a rank may give no sign of life; ``seconds``: a limit for the whole call.
        """
        for rank in self.ranks:
            self._board.write(rank.number, 0, CALLED)  # before the call: then the slot is the rank's own
            rank.call(call)
        with self.awake:
            self._watch(stall, seconds)
        self._was_called = True
        return [rank.answer for rank in self.ranks if isinstance(rank.answer, Done)]

    def close(self) -> None:
        """Kill all ranks with all that they started, and remove their limits."""
        self.awake.close()
        for rank in self.ranks:
            rank.kill()
        for rank in self.ranks:
            rank.bury()
        self._board.close()
        with suppress(OSError):
            shutil.rmtree(self._meeting)

    # -- starting ------------------------------------------------------------------------------

    def _start(
        self,
        devices: Sequence[Device],
        board: int,
        environment: Mapping[str, str],
        preload: tuple[str, ...],
        name: str,
    ) -> None:
        world, meeting = len(devices), str(self._meeting)
        awake: set[int] = set()
        for number, (device, port) in enumerate(zip(devices, self._network.ports(world), strict=True)):
            self._board.write(number, 0, "start")
            limits = make_limits(device, f"{name}-rank{number}")
            birth = RankBirth(os.getpid(), number, world, board, meeting, device.cores, preload)
            try:
                self.ranks.append(RankProcess(birth, port, limits, environment))
            except BaseException:
                limits.remove()  # there is no rank yet whose end would remove them
                raise
            awake |= set(device.cores) if limits.yields_to_idle else set()
        self.awake = KeptAwake(awake)

    def _join(self) -> None:
        """Wait until all ranks have joined the network, then let them begin."""
        deadline = monotonic() + START_SECONDS
        while not all(rank.has_joined for rank in self.ranks):
            self._hear(self.ranks, _WATCH_SECONDS)
            late = monotonic() > deadline
            if late or not self.alive:
                raise verdict(self._states(), monotonic(), START_SECONDS if late else None)
        joined = [rank.hand_over() for rank in self.ranks]
        self._network.connect(joined)
        go = Go(tuple(one.address for one in joined))
        for rank in self.ranks:
            rank.send(go)

    # -- watching ------------------------------------------------------------------------------

    def _watch(self, stall: float, seconds: float) -> None:
        """Wait until all have answered; raises the signal that ends the trial."""
        begun = looked = heard = monotonic()
        while True:
            self._hear(self._unanswered(), _WATCH_SECONDS)
            now = monotonic()
            if now - looked > 10 * _WATCH_SECONDS:
                begun += now - looked  # this process itself was stopped, and could not hear any rank
                heard = now
            looked = now
            if all(isinstance(rank.answer, Done) for rank in self.ranks):
                return
            self._require_health()
            states = self._states()
            if now - begun > seconds:
                raise verdict(states, now, seconds)
            first = 0.0 if self._was_called else FIRST_SECONDS
            if any(_silent(state, now - heard, now, stall, first) for state in states):
                raise verdict(states, now)

    def _require_health(self) -> None:
        """Raise the signal that ends the trial where a rank has failed, or their network."""
        if not self.alive or any(isinstance(rank.answer, Raised) for rank in self.ranks):
            self._give_grace()
            raise verdict(self._states(), monotonic())
        if why := self._network.failure():
            raise Lost(f"the network between the ranks broke down: {why}")

    def _give_grace(self) -> None:
        """Wait a moment for news of the other ranks after one has failed."""
        deadline = monotonic() + _GRACE_SECONDS
        while (left := deadline - monotonic()) > 0:
            waiting = [rank for rank in self._unanswered() if rank.exit_code is None]
            if not waiting:
                break
            self._hear(waiting, left)

    def _unanswered(self) -> list[RankProcess]:
        return [rank for rank in self.ranks if rank.answer is None]

    def _states(self) -> list[RankState]:
        return [rank.state(self._board) for rank in self.ranks]

    def _hear(self, waited_for: Sequence[RankProcess], seconds: float) -> None:
        """Wait until one of ``waited_for`` sends something or dies, and take what has come from all ranks."""
        poll = select.poll()
        for rank in waited_for:
            poll.register(rank.fileno(), select.POLLIN)
        poll.poll(max(0.0, seconds) * 1000)
        for rank in self.ranks:
            rank.take()


def _silent(state: RankState, heard: float, now: float, stall: float, first: float) -> bool:
    """Whether a rank was silent for too long; only the last ``heard`` seconds are known to count."""
    patience = max(stall, state.beat.within, first if state.beat.phase == CALLED else 0.0)
    return not state.finished and min(heard, now - state.beat.at) > patience
