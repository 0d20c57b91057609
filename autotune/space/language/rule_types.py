"""The types of the rule language, and which of them a knob can be."""

from __future__ import annotations

from autotune.space.configuration import Value
from autotune.space.knobs import (
    Assignment,
    Choice,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.knobs.knob import Knob

Type = frozenset[str]
"""What a node can be: ``number``, ``flag``, ``text``, ``list``, ``map``; several for mixed choices."""

NUMBER, FLAG, TEXT = frozenset({"number"}), frozenset({"flag"}), frozenset({"text"})
LIST, MAP = frozenset({"list"}), frozenset({"map"})
ARITHMETIC = NUMBER | FLAG  # as in Python, a flag counts as 0 or 1


def type_of(value: Value) -> Type:
    if isinstance(value, bool):
        return FLAG
    if isinstance(value, (int, float)):
        return NUMBER
    if isinstance(value, str):
        return TEXT
    return LIST if isinstance(value, tuple) else MAP


def type_of_values(values: tuple[Value, ...]) -> Type:
    return frozenset().union(*map(type_of, values))


def type_of_knob(knob: Knob) -> Type:
    match knob:
        case OrderedValues():
            return type_of_values(knob.values)
        case Choice():
            return type_of_values(knob.choices)
        case Flag():
            return FLAG
        case IntegerRange() | FloatRange():
            return NUMBER
        case Permutation():
            return LIST
        case Assignment():
            return MAP
    return type_of(knob.default)  # a kind of the user's own


def possible_values(knob: Knob) -> tuple[Value, ...] | None:
    """Everything that the knob, or each item of it, can be; ``None`` where that is a range."""
    match knob:
        case OrderedValues():
            return knob.values
        case Choice():
            return knob.choices
        case Permutation():
            return knob.items
        case Assignment():
            return knob.options
    return None


def comparable(one: Type, other: Type) -> bool:
    if one & ARITHMETIC and other & ARITHMETIC:
        return True
    return bool(one & other)


def is_a(type_: Type) -> str:
    names = {
        "number": "a number",
        "flag": "true or false",
        "text": "a text",
        "list": "a list",
        "map": "a map",
    }
    return "is " + " or ".join(names[name] for name in sorted(type_))
