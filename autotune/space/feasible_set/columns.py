"""Evaluating rules for whole columns of configurations, to the last bit as for one at a time.

A :class:`Column` holds the values of an expression for many configurations. Integers stay exact:
the range of every result is bounded by the ranges of its operands before it is computed, and if
64 bits might not hold it, or if numpy and Python might round differently (``log2``, ``**``), the
column falls back to Python's own arithmetic, once for each distinct combination of operands.

Which values are undefined is kept beside them. ``ABSENT``: a knob that is needed does not exist;
``INVALID``: it cannot be computed (a division by zero, ``log2(0)``). As in a scalar evaluation from
left to right, the first one met wins.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.configuration import Value
from autotune.space.language.compute import BINARY, COMPARE, FUNCTION, Undefined
from autotune.space.language.syntax import ComparisonOperator

Array = NDArray[Any]

DEFINED, ABSENT, INVALID = 0, 1, 2

EXACT_FLOAT = 2**53
"""Floats hold integers up to this without rounding."""
SAFE_INT = 2**62
"""The sum of two integers below this, and the negative of one, fit into 64 bits."""

_PYTHON: dict[str, Callable[..., Any]] = {
    str(name): function for name, function in (*BINARY.items(), *FUNCTION.items())
}
"""What a scalar evaluation computes."""


@dataclass(frozen=True, eq=False)
class Column:
    """Values of one expression: ``data`` is of bool, int64, float64 or object (Python values) type.

    ``undefined`` is ``None`` if every value is defined, else it holds DEFINED, ABSENT or INVALID for each
    (the value of an undefined entry means nothing). Shapes broadcast.
    """

    data: Array
    undefined: NDArray[np.int8] | None = None

    def take(self, rows: Array | slice) -> Column:
        """The entries at ``rows`` of a one-dimensional column; a constant stays as it is."""
        if self.data.ndim == 0:
            return self
        return Column(self.data[rows], None if self.undefined is None else self.undefined[rows])

    def reshape(self, *shape: int) -> Column:
        """The same column in another shape; a constant stays as it is."""
        if self.data.ndim == 0:
            return self
        undefined = None if self.undefined is None else self.undefined.reshape(shape)
        return Column(self.data.reshape(shape), undefined)


def column(values: Sequence[Value]) -> Column:
    """The column of these Python values, in the narrowest type that holds all of them exactly."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return Column(np.array(values, dtype=bool))
    if kinds == {float}:
        return Column(np.array(values, dtype=np.float64))
    if kinds <= {bool, int} and all(-SAFE_INT < value < SAFE_INT for value in values):  # type: ignore[operator]
        return Column(np.array(values, dtype=np.int64))
    return Column(np.fromiter(values, dtype=object, count=len(values)))


def constant(value: Value) -> Column:
    """A column of one value that broadcasts against any other."""
    return Column(column([value]).data.reshape(()))


def apply(operation: str, arguments: Sequence[Column]) -> Column:
    """The column of ``operation`` (an operator or function of the rule language) over ``arguments``.

    ``+ * and or min max in`` take any number of arguments; ``in`` compares the first with the others.
    """
    if operation in ("and", "or"):
        return _boolean(operation == "and", arguments)
    undefined = _first_undefined(arguments)
    if operation in ("+", "*", "min", "max"):
        result = arguments[0]
        for argument in arguments[1:]:
            result = _ARITHMETIC[operation](result, argument)
        return _with(result, undefined)
    if operation == "in":
        found: Array = np.zeros((), dtype=bool)
        for argument in arguments[1:]:
            found = found | _compare("==", arguments[0], argument)
        return _with(Column(found), undefined)
    if operation in COMPARE:
        return _with(Column(_compare(operation, *arguments)), undefined)
    if operation == "not":
        return _with(Column(~truth(arguments[0])), undefined)
    return _with(_ARITHMETIC[operation](*arguments), undefined)


def truth(argument: Column) -> NDArray[np.bool_]:
    """Python's truth value of every entry (that of an undefined entry means nothing)."""
    if argument.data.dtype == bool:
        return argument.data
    if argument.data.dtype == object:
        return np.array([bool(value) for value in argument.data.flat], dtype=bool).reshape(
            argument.data.shape
        )
    return np.asarray(argument.data != 0)


def defined(argument: Column) -> NDArray[np.bool_]:
    """Where the column has a value."""
    if argument.undefined is None:
        return np.ones(argument.data.shape, dtype=bool)
    return np.asarray(argument.undefined == DEFINED)


# --- the undefined -----------------------------------------------------------------------------


def _first_undefined(arguments: Sequence[Column]) -> NDArray[np.int8] | None:
    first: NDArray[np.int8] | None = None
    for argument in arguments:
        if argument.undefined is not None:
            first = argument.undefined if first is None else np.where(first, first, argument.undefined)
    return first


def _with(result: Column, undefined: NDArray[np.int8] | None) -> Column:
    """``result`` where nothing before it was undefined."""
    if undefined is None:
        return result
    if result.undefined is not None:
        undefined = np.where(undefined, undefined, result.undefined)
    return Column(result.data, undefined) if undefined.any() else Column(result.data)


def _boolean(conjunction: bool, arguments: Sequence[Column]) -> Column:
    """``and`` and ``or``: operands after the one that decides are never looked at."""
    if all(argument.undefined is None for argument in arguments):
        data = truth(arguments[0])
        for argument in arguments[1:]:
            data = data & truth(argument) if conjunction else data | truth(argument)
        return Column(data)
    shape = np.broadcast_shapes(*(argument.data.shape for argument in arguments))
    data = np.full(shape, conjunction)
    undefined = np.zeros(shape, dtype=np.int8)
    going = np.ones(shape, dtype=bool)
    for argument in arguments:
        if argument.undefined is not None:
            undefined = np.where(going, argument.undefined, undefined)
            going = going & (undefined == DEFINED)
        decided = going & (truth(argument) != conjunction)
        data = np.where(decided, not conjunction, data)
        going = going & ~decided
    return Column(data, undefined if undefined.any() else None)


# --- arithmetic --------------------------------------------------------------------------------


def _is_integer(data: Array) -> bool:
    return data.dtype == np.int64 or data.dtype == bool


def holds_integers(data: Array) -> bool:
    """Whether every value is an integer (or a flag), also where they are Python values."""
    return _is_integer(data) or all(isinstance(value, int) for value in data.tolist())


def _extent(data: Array) -> tuple[int, int]:
    """The smallest and the largest integer of a column (0 and 0 where it is empty)."""
    return (int(data.min()), int(data.max())) if data.size else (0, 0)


def _as_float(data: Array) -> Array | None:
    """The column as float64 where that rounds nothing, else ``None``."""
    if data.dtype == np.float64:
        return data
    if not _is_integer(data):
        return None
    low, high = _extent(data)
    return data.astype(np.float64) if low >= -EXACT_FLOAT and high <= EXACT_FLOAT else None


def _as_floats(one: Column, other: Column) -> tuple[Array, Array] | None:
    left, right = _as_float(one.data), _as_float(other.data)
    return None if left is None or right is None else (left, right)


def _ring(name: str, compute: Callable[[Array, Array], Array]) -> Callable[[Column, Column], Column]:
    """Sum, difference or product: int64 while the extremes of the operands prove that it fits."""
    scalar: Callable[[Any, Any], Any] = _PYTHON[name]

    def operate(one: Column, other: Column) -> Column:
        if _is_integer(one.data) and _is_integer(other.data):
            corners = [scalar(a, b) for a in _extent(one.data) for b in _extent(other.data)]
            if min(corners) > -SAFE_INT and max(corners) < SAFE_INT:
                left, right = one.data.astype(np.int64), other.data.astype(np.int64)
                return Column(np.asarray(compute(left, right)))
        elif (floats := _as_floats(one, other)) is not None:
            with np.errstate(all="ignore"):
                return Column(np.asarray(compute(*floats)))
        return _elementwise(scalar, one, other)

    return operate


def _division(name: str, compute: Callable[[Array, Array], Array]) -> Callable[[Column, Column], Column]:
    """``/ // %`` and ``ceildiv``: a zero divisor makes the entry invalid."""

    def operate(one: Column, other: Column) -> Column:
        operands: tuple[Array, Array] | None = None
        if name != "/" and _is_integer(one.data) and _is_integer(other.data):
            operands = one.data.astype(np.int64), other.data.astype(np.int64)
        elif name == "/":
            operands = _as_floats(one, other)
        if operands is None:
            return _elementwise(_PYTHON[name], one, other)
        left, right = operands
        zero = right == 0
        if not zero.any():
            return Column(np.asarray(compute(left, right)))
        data = np.asarray(compute(left, np.where(zero, right.dtype.type(1), right)))
        return Column(data, np.where(np.broadcast_to(zero, data.shape), INVALID, DEFINED).astype(np.int8))

    return operate


def _true_divide(left: Array, right: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(left / right)


def _power(one: Column, other: Column) -> Column:
    if _is_integer(one.data) and _is_integer(other.data):
        largest, (lowest, highest) = max(map(abs, _extent(one.data))), _extent(other.data)
        if lowest >= 0 and highest * max(largest, 1).bit_length() < 62:
            return Column(np.asarray(one.data.astype(np.int64) ** other.data.astype(np.int64)))
    return _elementwise(_PYTHON["**"], one, other)


def _counted(data: Array) -> Array:
    """Flags as 0 and 1."""
    return data.astype(np.int64) if data.dtype == bool else data


def _extreme(name: str, better: Callable[[Array, Array], Array]) -> Callable[[Column, Column], Column]:
    """``min`` and ``max``: as in Python, the first of equals."""

    def operate(one: Column, other: Column) -> Column:
        left, right = _counted(one.data), _counted(other.data)
        if left.dtype == right.dtype and left.dtype != object:
            return Column(np.where(better(right, left), right, left))
        return _elementwise(_PYTHON[name], one, other)

    return operate


def _of_one(compute: Callable[[Any], Any]) -> Callable[[Column], Column]:
    """``abs`` and the sign ``-``, which mean the same of a number and of an array."""

    def operate(one: Column) -> Column:
        if one.data.dtype == object:
            return _elementwise(compute, one)
        return Column(np.asarray(compute(_counted(one.data))))

    return operate


def _compare(name: ComparisonOperator, one: Column, other: Column) -> Array:
    """A comparison as Python makes it: exact between integers and floats, text unequal to numbers."""
    test = COMPARE[name]
    if _is_integer(one.data) and _is_integer(other.data):
        return np.asarray(test(one.data, other.data))
    floats = _as_floats(one, other)
    if floats is not None:
        return np.asarray(test(*floats))
    return truth(_elementwise(test, one, other))


# --- Python's own arithmetic -------------------------------------------------------------------


def _elementwise(function: Callable[..., Any], *arguments: Column) -> Column:
    """``function`` of Python values, called once for each distinct combination of the arguments."""
    coded = [factorise(argument.data) for argument in arguments]
    key: Array = np.zeros((), dtype=np.int64)
    for codes, values in coded:
        key = key * max(len(values), 1) + codes
    distinct, inverse = np.unique(key, return_inverse=True)
    results: list[Any] = []
    undefined = np.zeros(len(distinct), dtype=np.int8)
    for place, combination in enumerate(distinct.tolist()):
        operands = []
        for _, values in reversed(coded):
            combination, which = divmod(combination, max(len(values), 1))
            operands.append(values[which])
        try:
            results.append(function(*reversed(operands)))
        except Undefined:
            undefined[place] = INVALID
            results.append(None)
    filler = next((result for result in results if result is not None), 0)
    data = column([filler if result is None else result for result in results]).data
    inverse = inverse.ravel()
    everywhere = undefined[inverse].reshape(key.shape) if undefined.any() else None
    return Column(data[inverse].reshape(key.shape), everywhere)


def factorise(data: Array) -> tuple[NDArray[np.int64], list[Any]]:
    """Codes and the distinct values they stand for; ``1``, ``1.0`` and ``True`` are told apart."""
    if data.dtype != object:
        distinct, inverse = np.unique(data, return_inverse=True)
        return inverse.reshape(data.shape).astype(np.int64), distinct.tolist()
    known: dict[tuple[type, Any], int] = {}
    codes = [known.setdefault((type(value), value), len(known)) for value in data.flat]
    values = [value for _, value in known]
    return np.array(codes, dtype=np.int64).reshape(data.shape), values


_ARITHMETIC: dict[str, Callable[..., Column]] = {
    "+": _ring("+", operator.add),
    "-": _ring("-", operator.sub),
    "*": _ring("*", operator.mul),
    "/": _division("/", _true_divide),
    "//": _division("//", operator.floordiv),
    "%": _division("%", operator.mod),
    "ceildiv": _division("ceildiv", lambda left, right: -(-left // right)),
    "**": _power,
    "min": _extreme("min", operator.lt),
    "max": _extreme("max", operator.gt),
    "abs": _of_one(abs),
    "neg": _of_one(operator.neg),
    "pos": lambda one: one,
    "log2": lambda one: _elementwise(_PYTHON["log2"], one),
}
