"""Objectives of several processes: a group of ranks that is started, watched and killed as one.

The group belongs to the process that measures, a worker, and its ranks are that worker's descendants: what
kills the worker kills them, and what watches over it removes what they leave.
"""

from __future__ import annotations

import os
import pickle
import select
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from autotune.measure.clocks import monotonic
from autotune.measure.group_awake import KeptAwake
from autotune.measure.group_board import Board
from autotune.measure.group_device import Device, make_limits, spread, sweep_device_groups
from autotune.measure.group_failures import NetworkLost, RankState, slow_ranks, verdict, waits
from autotune.measure.group_messages import Call, Done, Entered, Go, Raised, Work
from autotune.measure.group_network import Joined, Loopback, Network
from autotune.measure.group_process import RankProcess
from autotune.measure.group_rank import CALLED
from autotune.measure.ownership import make_scratch
from autotune.measure.pinning import allowed_here

STALL_SECONDS = 7.0
"""Without a sign of life for so long, a rank hangs."""

START_SECONDS = 60.0
"""How long all ranks may take to join the network."""

FIRST_SECONDS = 60.0
"""How long a rank may take to its first sign in its first call, which imports what it needs."""

_WATCH_SECONDS = 0.2
"""How often signs of life are looked at. Answers and deaths wake the watch up at once."""

_GRACE_SECONDS = 0.3
"""How long to wait for what else happens when one rank has failed: the first cause is not the first news."""


@dataclass(frozen=True)
class Ran:
    """What came of a call that all ranks finished."""

    results: tuple[Any, ...]
    """By rank."""
    phases: tuple[Mapping[str, float], ...]
    """Seconds in each phase, by rank."""
    slow: tuple[str, ...] = ()
    """Which ranks were busy for much longer than the others, in words."""

    @property
    def facts(self) -> dict[str, object]:
        """To be kept with the trial."""
        return {"slow": list(self.slow)} if self.slow else {}


@dataclass
class _Life:
    """One incarnation of a group."""

    ranks: list[RankProcess]
    board: Board
    meeting: Path
    awake: KeptAwake = field(default_factory=lambda: KeptAwake(()))
    addresses: list[str] = field(default_factory=list)
    called: bool = False


class ProcessGroup:
    """N processes, one a device, that run a function together; kept from call to call until something fails.

    ::

        group = ProcessGroup([Device(cpu=0.5, memory=2 << 30), Device()], network)
        ran = group.run(function, arguments...)     # function(rank, arguments...) in every rank
        ran.results                                  # what each returned

    ``function`` is one of a module that can be imported, or of the objective's own file. It is given a
    :class:`~autotune.measure.group_rank.Rank` (its number, the world, addresses, a rendezvous) and calls
    ``rank.beat(phase, step)`` as it goes. :meth:`run` returns when all have, or raises the signal that types
    the trial: :class:`~autotune.measure.group_failures.RankDied` (``crashed``),
    :class:`~autotune.measure.group_failures.RankSilent` (``timeout``; names the rank and its phase),
    :class:`~autotune.measure.objective.OutOfMemory` (the cap of a device), or whichever signal a rank
    raised. After a signal nothing of the group is left; the next call makes it anew.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        network: Network | None = None,
        stall: float = STALL_SECONDS,
        environment: Mapping[str, str] = MappingProxyType({}),
        preload: Sequence[str] = (),
    ) -> None:
        """``network``: the loopback interface where none is given. ``stall``: seconds without a sign of
        life. ``environment``: set for the ranks, beside what is set for this process. ``preload``: modules
        that ranks import as they start, before their quotas count."""
        self.devices = tuple(devices)
        self.network = Loopback() if network is None else network
        self.stall = stall
        self.environment = dict(environment)
        self.preload = tuple(preload)
        self._life: _Life | None = None
        self._made = 0

    @property
    def world(self) -> int:
        return len(self.devices)

    @property
    def facts(self) -> dict[str, object]:
        """What the ranks run on, for the trial: the network, and what was asked for and cannot be had."""
        facts: dict[str, object] = {"world": self.world, **self.network.facts}
        if self._life is not None:
            missing = {why for rank in self._life.ranks for why in rank.limits.missing}
            if missing:
                facts["missing"] = sorted(missing)
            if self._life.awake.cores:
                facts["kept_awake"] = list(self._life.awake.cores)
        return facts

    @property
    def shares(self) -> tuple[float, ...]:
        """The processor time that each rank gets per time by its quota; 1 where it has none."""
        made = self._life.ranks if self._life else ()
        quotas = [rank.limits.quota is not None for rank in made] or [False] * self.world
        return tuple(
            device.cpu if held and device.cpu else 1.0
            for device, held in zip(self.devices, quotas, strict=True)
        )

    @property
    def processes(self) -> frozenset[int]:
        """All processes of the group that live between calls."""
        if self._life is None:
            return frozenset()
        ranks = frozenset(rank.pid for rank in self._life.ranks)
        return ranks | self._life.awake.processes | self.network.processes

    @property
    def alive(self) -> bool:
        return self._life is not None and all(rank.exit_code is None for rank in self._life.ranks)

    def run(
        self, function: Work, *arguments: Any, seconds: float = float("inf"), stall: float | None = None
    ) -> Ran:
        """Call ``function(rank, *arguments)`` in every rank, and return what all returned.

        ``seconds``: a limit for the call; ``stall``: another patience with silent ranks than the group's.
        """
        call = Call.of(function, arguments)
        if self._life is not None and (not self.alive or self.network.failure()):
            self.close()
        life = self._life or self._start()
        patience = self.stall if stall is None else stall
        try:
            for rank in life.ranks:
                rank.answer = None
                life.board.write(rank.rank, 0, CALLED)  # before the call: then the slot is the rank's own
                rank.send(call)
            with life.awake:
                self._watch(life, patience, seconds)
        except BaseException:
            self.close()
            raise
        life.called = True
        answers = [rank.answer for rank in life.ranks]
        phases = tuple(answer.phases for answer in answers)
        results = tuple(pickle.loads(answer.result) for answer in answers)
        return Ran(results, phases, slow_ranks([_busy(seconds) for seconds in phases]))

    def close(self) -> None:
        """Kill all ranks with all that they started, and remove network and limits."""
        life, self._life = self._life, None
        if life is not None:
            _bury(life)
        self.network.close()

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- starting ------------------------------------------------------------------------------

    def _start(self) -> _Life:
        sweep_device_groups()
        self._made += 1
        board = Board.make(self.world)
        life = _Life([], Board(board, self.world), make_scratch("meeting"))
        devices = spread(self.devices, allowed_here())
        try:
            for number, (device, port) in enumerate(
                zip(devices, self.network.ports(self.world), strict=True)
            ):
                life.board.write(number, 0, "start")
                name = f"{id(self):x}-{self._made}-rank{number}"
                limits = make_limits(device, name)
                life.ranks.append(
                    RankProcess(
                        number,
                        self.world,
                        port,
                        limits,
                        device.cores,
                        board,
                        life.meeting,
                        self.environment,
                        self.preload,
                    )
                )
            life.awake = KeptAwake(
                {
                    core
                    for rank, device in zip(life.ranks, devices, strict=True)
                    if rank.limits.yields_to_idle
                    for core in device.cores
                }
            )
            self.network.connect(self._await_all(life))
            go = Go(tuple(life.addresses))
            for rank in life.ranks:
                rank.send(go)
        except BaseException:
            _bury(life)
            self.network.close()
            raise
        finally:
            os.close(board)
        self._life = life
        return life

    def _await_all(self, life: _Life) -> list[Joined]:
        """How all ranks have joined, with the descriptors that they sent."""
        joined: dict[int, Joined] = {}
        received: dict[int, list[int]] = {rank.rank: [] for rank in life.ranks}
        try:
            self._join(life, joined, received)
        except BaseException:
            for descriptor in (one for some in received.values() for one in some):
                os.close(descriptor)
            raise
        life.addresses = [joined[number].address for number in range(self.world)]
        return [replace(joined[number], descriptors=tuple(received[number])) for number in range(self.world)]

    def _join(self, life: _Life, joined: dict[int, Joined], received: dict[int, list[int]]) -> None:
        deadline = monotonic() + START_SECONDS
        while len(joined) < self.world:
            _wait(life.ranks, _WATCH_SECONDS)
            for rank in life.ranks:
                messages, descriptors = rank.receive()
                received[rank.rank] += descriptors
                for message in messages:
                    if isinstance(message, Entered):
                        joined[rank.rank] = message.joined
            late = monotonic() > deadline
            if late or any(rank.exit_code is not None for rank in life.ranks):
                raise verdict(
                    [rank.state(life.board) for rank in life.ranks],
                    monotonic(),
                    START_SECONDS if late else None,
                )

    # -- watching ------------------------------------------------------------------------------

    def _watch(self, life: _Life, stall: float, seconds: float) -> None:
        """Until all have answered; raises the signal that ends the trial."""
        begun = looked = heard = monotonic()
        while True:
            _wait([rank for rank in life.ranks if rank.answer is None], _WATCH_SECONDS)
            now = monotonic()
            if now - looked > 10 * _WATCH_SECONDS:
                begun += now - looked  # this process was stopped: no silence that it could have heard
                heard = now
            looked = now
            self._take(life)
            if all(isinstance(rank.answer, Done) for rank in life.ranks):
                return
            if self._broken(life):
                raise verdict(self._after_grace(life), monotonic())
            if why := self.network.failure():
                raise NetworkLost(f"the network between the ranks broke down: {why}")
            states = [rank.state(life.board) for rank in life.ranks]
            if now - begun > seconds:
                raise verdict(states, now, seconds)
            first = 0.0 if life.called else FIRST_SECONDS
            if any(_silent(state, now - heard, now, stall, first) for state in states):
                raise verdict(states, now)

    def _take(self, life: _Life) -> None:
        for rank in life.ranks:
            messages, _ = rank.receive()
            for message in messages:
                rank.answer = message

    def _broken(self, life: _Life) -> bool:
        return any(rank.exit_code is not None or isinstance(rank.answer, Raised) for rank in life.ranks)

    def _after_grace(self, life: _Life) -> list[RankState]:
        """How all stand a moment after one has failed."""
        deadline = monotonic() + _GRACE_SECONDS
        while (left := deadline - monotonic()) > 0:
            waiting = [rank for rank in life.ranks if rank.answer is None and rank.exit_code is None]
            if not waiting:
                break
            _wait(waiting, left)
            self._take(life)
        return [rank.state(life.board) for rank in life.ranks]


def _silent(state: RankState, heard: float, now: float, stall: float, first: float) -> bool:
    """Whether a rank gave no sign for too long, of the ``heard`` seconds in which one would be seen."""
    patience = max(stall, state.beat.within, first if state.beat.phase == CALLED else 0.0)
    return not state.finished and min(heard, now - state.beat.at) > patience


def _wait(ranks: Sequence[RankProcess], seconds: float) -> None:
    """Until something comes from one of the ranks; the end of a dead one's connection is something."""
    poll = select.poll()
    for rank in ranks:
        poll.register(rank.fileno(), select.POLLIN)
    poll.poll(max(0.0, seconds) * 1000)


def _bury(life: _Life) -> None:
    life.awake.close()
    for rank in life.ranks:
        rank.kill()
    for rank in life.ranks:
        rank.bury()
    life.board.close()
    with suppress(OSError):
        shutil.rmtree(life.meeting)


def _busy(phases: Mapping[str, float]) -> float:
    """Seconds of work: all but waiting for others."""
    return sum(seconds for phase, seconds in phases.items() if not waits(phase))
