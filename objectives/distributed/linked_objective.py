"""What objectives on devices of the test bed have in common: links, and numbers of what a workload says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

from testbed import network_for

from autotune.measure.groups.device import Device
from autotune.measure.groups.network import Network
from autotune.measure.groups.objective import GroupObjective
from autotune.measure.objective import Infeasible


class LinkedObjective(GroupObjective):
    """Base class: the ranks are connected as their devices say."""

    sources: ClassVar[tuple[str, ...]] = ("testbed/wire.c",)

    def network(self, devices: Sequence[Device]) -> Network:
        return network_for(devices)


def number(facts: Mapping[str, Any], name: str, where: str) -> float | None:
    """What ``facts`` say under ``name``; ``None`` where they do not, or ``null``.

    Raises :class:`Infeasible` for what is no number, such as ``4GiB``, and says ``where`` that is. Which
    numbers can be, :class:`~autotune.measure.groups.device.Device` and ``Link`` say.
    """
    value = facts.get(name)
    if value is None:
        return None
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise Infeasible(f"{where}.{name} should be a number, and is {value!r}")
    return float(value)
