"""Objectives of several processes: a group of ranks that is started, watched and killed as one.

The group belongs to a measuring worker, and its ranks are descendants of that worker: they are killed
together with it, and its guardian removes what they leave behind.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from autotune.measure.facts import MISSING
from autotune.measure.groups.device import Device
from autotune.measure.groups.failures import slow_ranks, waits
from autotune.measure.groups.life import GroupLife
from autotune.measure.groups.messages import Call, Work
from autotune.measure.groups.network import Loopback, Network

STALL_SECONDS = 7.0
"""A rank without a sign of life for so long counts as hanging."""


@dataclass(frozen=True)
class Ran:
    """The results of a call that all ranks finished."""

    results: tuple[Any, ...]
    """What the function returned in each rank."""
    phases: tuple[Mapping[str, float], ...]
    """Seconds in each phase, for each rank."""
    slow: tuple[str, ...] = ()
    """Which ranks were busy for much longer than the others, in words."""

    @property
    def facts(self) -> dict[str, object]:
        """Facts to keep with the trial."""
        return {"slow": list(self.slow)} if self.slow else {}


class ProcessGroup:
    """One process for each device, which run a function together; kept from call to call until one fails.

    ::

        group = ProcessGroup([Device(cpu=0.5, memory=2 << 30), Device()], network)
        ran = group.run(function, arguments...)     # function(rank, arguments...) in every rank
        ran.results                                  # what each returned

    ``function`` must be in a module that can be imported, or in the file of the objective. It is called with
    a :class:`~autotune.measure.groups.rank.Rank` (its number, the world, addresses, a folder to meet in) and
    has to call ``rank.beat(phase, step)`` now and then. :meth:`run` returns when all ranks have, or raises
    the signal that ends the trial: :class:`~autotune.measure.groups.failures.RankDied` (``crashed``),
    :class:`~autotune.measure.groups.failures.RankSilent` (``timeout``; names the rank and its phase),
    :class:`~autotune.measure.objective.OutOfMemory` (the cap of a device), or the signal that a rank raised.
    After a signal nothing of the group is left; the next call makes it anew.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        network: Network | None = None,
        stall: float = STALL_SECONDS,
        environment: Mapping[str, str] = MappingProxyType({}),
        preload: Sequence[str] = (),
    ) -> None:
        """``network``: default: the loopback interface. ``stall``: how many seconds a rank may give no sign
        of life. ``environment``: variables of the ranks, added to those of this process. ``preload``: modules
        that ranks import as they start, before their quotas count."""
        self.devices = tuple(devices)
        self.network = Loopback() if network is None else network
        self.stall = stall
        self.environment = dict(environment)
        self.preload = tuple(preload)
        self._life: GroupLife | None = None
        self._made = 0

    @property
    def world(self) -> int:
        return len(self.devices)

    @property
    def facts(self) -> dict[str, object]:
        """Facts for the trial: the network, the cores kept awake, and limits that cannot be made here."""
        facts: dict[str, object] = {"world": self.world, **self.network.facts}
        if self._life is not None:
            missing = {why for rank in self._life.ranks for why in rank.limits.missing}
            if missing:
                facts[MISSING] = sorted(missing)
            if self._life.awake.cores:
                facts["kept_awake"] = list(self._life.awake.cores)
        return facts

    @property
    def shares(self) -> tuple[float, ...]:
        """The processor time per time that the quota of each rank allows; 1 where it has none."""
        made = self._life.ranks if self._life else ()
        quotas = [rank.limits.quota is not None for rank in made] or [False] * self.world
        return tuple(
            device.cpu if held and device.cpu else 1.0
            for device, held in zip(self.devices, quotas, strict=True)
        )

    @property
    def processes(self) -> frozenset[int]:
        """The ids of all processes of the group that live between calls."""
        if self._life is None:
            return frozenset()
        return self._life.processes | self.network.processes

    def run(
        self, function: Work, *arguments: Any, seconds: float = float("inf"), stall: float | None = None
    ) -> Ran:
        """Call ``function(rank, *arguments)`` in every rank, and return what all returned.

        ``seconds``: a time limit for the call; ``stall``: if given, replaces that of the group.
        """
        call = Call.of(function, arguments)
        try:
            answers = self._living().call(call, self.stall if stall is None else stall, seconds)
        except BaseException:
            self.close()
            raise
        results = tuple(pickle.loads(answer.result) for answer in answers)
        phases = tuple(answer.phases for answer in answers)
        return Ran(results, phases, slow_ranks([_busy(seconds) for seconds in phases]))

    def _living(self) -> GroupLife:
        """The ranks, made anew where one of them or the network has failed since the last call."""
        if self._life is not None and (not self._life.alive or self.network.failure()):
            self.close()
        if self._life is None:
            self._made += 1
            name = f"{id(self):x}-{self._made}"
            self._life = GroupLife(self.devices, self.network, self.environment, self.preload, name)
        return self._life

    def close(self) -> None:
        """Kill all ranks with all that they started, and remove network and limits."""
        life, self._life = self._life, None
        if life is not None:
            life.close()
        self.network.close()

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _busy(phases: Mapping[str, float]) -> float:
    """Seconds of work: all but waiting for others."""
    return sum(seconds for phase, seconds in phases.items() if not waits(phase))
