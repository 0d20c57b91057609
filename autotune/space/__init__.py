"""What may be chosen: knobs, constraints, the feasible set, distances, space.yaml."""

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
