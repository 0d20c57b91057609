"""What the operators and functions of the rule language compute: the same when folding and when compiled.

Everything here has Python's own meaning, except that a number which grows too large is refused at once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from autotune.space.configuration import FrozenMap, Value
from autotune.space.language.syntax import BinaryOperator, ComparisonOperator, FunctionName, UnaryOperator

MOST_BITS = 1_024
"""Integers beyond this are refused: a float holds no more, and nobody counts that far."""


class TooLargeError(ArithmeticError):
    """A result too large to be meant."""


Undefined = (ArithmeticError, ValueError)
"""What a computation without a result raises: division by zero, log2 of -1, overflow."""


def power(base: float, exponent: float) -> float:
    """``base ** exponent`` where that is a real number of bearable size."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and base != 0 and math.log2(abs(base)) * exponent > MOST_BITS:
        raise TooLargeError(f"the power is too large (beyond 2**{MOST_BITS})")
    result: object = base**exponent
    if isinstance(result, complex):
        raise ValueError("a root of a negative number")
    return result  # type: ignore[return-value]  # a float or an int


def ceildiv(one: float, other: float) -> float:
    """``one / other`` rounded up, exactly also for large integers."""
    return -(-one // other)


def count(assignment: Mapping[str, Value], option: Value) -> int:
    """How many items are assigned to ``option``."""
    return sum(value == option for value in assignment.values())


BINARY: dict[BinaryOperator, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": power,
}
UNARY: dict[UnaryOperator, Callable[[Any], Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "not": operator.not_,
}
COMPARE: dict[ComparisonOperator, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda one, many: one in many,
    "not in": lambda one, many: one not in many,
}
FUNCTION: dict[FunctionName, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "ceildiv": ceildiv,
    "log2": math.log2,
    "len": len,
    "count": count,
}


def checked(value: Value) -> Value:
    """``value``; raises :class:`TooLargeError` for a number that is too large, infinite or NaN."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise TooLargeError(f"the number is too large (beyond 2**{MOST_BITS})")
    if isinstance(value, float) and not math.isfinite(value):
        raise TooLargeError("the number is too large (beyond 1.7e308)")
    return value


def lookup(facts: Mapping[str, Value], path: str) -> Value | None:
    """The fact at a dotted path, ``None`` where there is none: ``shape.m`` in nested maps."""
    found: Value = facts if isinstance(facts, FrozenMap) else FrozenMap(facts)
    for part in path.split("."):
        if not isinstance(found, FrozenMap) or part not in found:
            return None
        found = found[part]
    return found
