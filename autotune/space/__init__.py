"""What may be chosen: knobs, constraints, the feasible set, distances, space.yaml.

Each name is loaded when it is first used: a worker needs configurations, and none of the machinery of spaces.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autotune.space.configuration import Configuration, FrozenMap, Value
    from autotune.space.knobs import (
        Assignment,
        Choice,
        Flag,
        FloatRange,
        IntegerRange,
        OrderedValues,
        Permutation,
    )
    from autotune.space.knobs.knob import Cell, Knob
    from autotune.space.language.rule import Rule
    from autotune.space.space import Space

_HOME = {
    "Assignment": "autotune.space.knobs",
    "Cell": "autotune.space.knobs.knob",
    "Choice": "autotune.space.knobs",
    "Configuration": "autotune.space.configuration",
    "Flag": "autotune.space.knobs",
    "FloatRange": "autotune.space.knobs",
    "FrozenMap": "autotune.space.configuration",
    "IntegerRange": "autotune.space.knobs",
    "Knob": "autotune.space.knobs.knob",
    "OrderedValues": "autotune.space.knobs",
    "Permutation": "autotune.space.knobs",
    "Rule": "autotune.space.language.rule",
    "Space": "autotune.space.space",
    "Value": "autotune.space.configuration",
}
"""Where each public name lives."""


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'autotune.space' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME)


__all__ = [
    "Assignment",
    "Cell",
    "Choice",
    "Configuration",
    "Flag",
    "FloatRange",
    "FrozenMap",
    "IntegerRange",
    "Knob",
    "OrderedValues",
    "Permutation",
    "Rule",
    "Space",
    "Value",
]
