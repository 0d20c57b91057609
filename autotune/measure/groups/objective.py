"""The base of objectives that run in several processes: it keeps one group for as long as it fits."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from autotune.measure.groups.device import Device
from autotune.measure.groups.group import STALL_SECONDS, ProcessGroup
from autotune.measure.groups.network import Loopback, Network
from autotune.measure.objective import Context, Objective


class GroupObjective(Objective):
    """Subclasses call :meth:`group` in ``check`` and ``measure``, and run functions on what it returns.

    Starting ranks and loading their libraries takes seconds. So a group is kept from trial to trial, and made
    anew only when other devices or another environment are asked for, or when a rank failed. The space file
    should have ``measure: {cores: N}``, since the ranks share the cores that the search has claimed.
    """

    preload: ClassVar[tuple[str, ...]] = ()
    """Modules that ranks import as they start, before their quotas count."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        for module in self.preload:
            if importlib.util.find_spec(module.partition(".")[0]) is None:
                raise ModuleNotFoundError(f"the ranks need {module}, which is not installed here")
        self._group: ProcessGroup | None = None
        self._asked: object = None

    def group(
        self,
        devices: Sequence[Device],
        *,
        stall: float = STALL_SECONDS,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> ProcessGroup:
        """A group on these devices; the present one, if it was asked for in the same way."""
        asked = (tuple(devices), dict(environment))
        if self._group is None or asked != self._asked:
            if self._group is not None:
                self._group.close()
            self._group = ProcessGroup(
                tuple(devices), self.network(devices), stall, environment, self.preload
            )
            self._asked = asked
        self._group.stall = stall
        return self._group

    def network(self, devices: Sequence[Device]) -> Network:
        """The network between the devices; default: the loopback interface, whatever links they ask for."""
        asked = any(device.link is not None for device in devices)
        return Loopback("this objective has no other network" if asked else "")

    def standing(self) -> frozenset[int]:
        return self._group.processes if self._group is not None else frozenset()

    def tidy(self) -> None:
        """End the group. A worker that is closed ends it as well."""
        if self._group is not None:
            self._group.close()

    def __getstate__(self) -> Any:
        raise TypeError("an objective with processes cannot be pickled")
