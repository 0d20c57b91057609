"""Numbers of what a workload says of a device or a link."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from autotune.measure.objective import Infeasible


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
