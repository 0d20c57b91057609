"""Interval arithmetic over terms: what values a rule can still have, whatever the open knobs are set to.

A :class:`Span` bounds values from below and above, for one expression or for a whole column of
partly assigned configurations. A rule whose span is certainly true need not be remembered; one that
is certainly false ends the branch. (Moore, *Interval Analysis*, 1966.) Bounds are float64: integers
at or beyond 2**53 widen to infinity, and float operations round to nearest, which is monotone, so the
bounds hold for the rounded values that the rule itself computes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.space.feasible_set.columns import EXACT_FLOAT, Array, defined

if TYPE_CHECKING:
    from autotune.space.feasible_set.columns import Column


@dataclass(frozen=True, eq=False)
class Span:
    """``low <= value <= high``, and ``sure`` where the value is certainly defined. Shapes broadcast.

    Truth is 0 and 1. Text and other values without an order span everything.
    """

    low: Any
    high: Any
    sure: Any = True


@dataclass(frozen=True, eq=False)
class Table:
    """The values of a variable by their index; ``ascending``: numbers in rising order."""

    values: Array
    ascending: bool


_SLACK = 1e-12
"""Bounds are widened by this relative amount where numpy and Python may round a function differently."""


def of_values(data: Array, sure: bool) -> Span:
    """The span of a list of values."""
    numbers = data.ravel().tolist() if data.dtype == object else None
    if data.size == 0 or (numbers is not None and not all(isinstance(n, (int, float)) for n in numbers)):
        return Span(-np.inf, np.inf, sure)
    low, high = (min(numbers), max(numbers)) if numbers is not None else (data.min(), data.max())
    return _exact(_as_float(low), _as_float(high), sure)


def of_column(column: Column) -> Span:
    """The span of each entry of a column of known values."""
    shape = column.data.shape
    sure = defined(column)
    if column.data.dtype == object:
        numbers = column.data.ravel().tolist()
        if not all(isinstance(number, (int, float)) for number in numbers):
            return Span(np.full(shape, -np.inf), np.full(shape, np.inf), sure)
        data = _as_floats(column.data)
    else:
        data = column.data.astype(np.float64)
    if column.data.dtype in (np.float64, np.bool_) or np.abs(data).max(initial=0) < EXACT_FLOAT:
        return Span(data, data, sure)
    return _exact(data, data, sure)


def combine(operation: str, spans: Sequence[Span], data: Any = None) -> Span:
    """The span of an operation from those of its operands.

    ``data`` is the modulus of ``+%`` and ``*%``, and the :class:`Table` of a ``lookup``.
    """
    with np.errstate(all="ignore"):
        if operation == "lookup":
            return _exact(*_lookup(spans[0], data))
        if operation in ("+%", "*%"):
            return _exact(*_residue(_OPERATIONS[operation[0]](spans), data))
        return _exact(*_OPERATIONS[operation](spans))


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _as_floats(data: Any) -> Array:
    """As :func:`_as_float`, for an array, or for one entry of it."""
    data = np.asarray(data)
    return np.fromiter(map(_as_float, data.ravel().tolist()), np.float64, data.size).reshape(data.shape)


def _exact(low: Any, high: Any, sure: Any) -> Span:
    """These bounds, widened to infinity where a float does not hold integers exactly."""
    if (np.abs(low) < EXACT_FLOAT).all() and (np.abs(high) < EXACT_FLOAT).all():
        return Span(low, high, sure)
    low = np.where(low > -EXACT_FLOAT, np.minimum(low, EXACT_FLOAT), -np.inf)
    high = np.where(high < EXACT_FLOAT, np.maximum(high, -EXACT_FLOAT), np.inf)
    return Span(low, high, sure)


# --- questions ---------------------------------------------------------------------------------


def certainly_true(span: Span) -> Array:
    return np.asarray(span.sure & ((span.low > 0) | (span.high < 0)))


def certainly_false(span: Span) -> Array:
    return np.asarray(span.sure & (span.low == 0) & (span.high == 0))


def excludes_zero(span: Span) -> bool:
    return bool(np.all((np.asarray(span.low) > 0) | (np.asarray(span.high) < 0)))


def positive(span: Span) -> bool:
    return bool(np.all(np.asarray(span.low) > 0))


def at_least(span: Span, bound: float) -> bool:
    return bool(np.all(np.asarray(span.low) >= bound))


def at_most(span: Span, bound: float) -> bool:
    return bool(np.all(np.asarray(span.high) <= bound))


def width(span: Span) -> float:
    """How many integers it holds."""
    return float(np.max(np.asarray(span.high) - np.asarray(span.low))) + 1


# --- the operations ----------------------------------------------------------------------------

_Bounds = tuple[Any, Any, Any]


def _sure(spans: Sequence[Span]) -> Any:
    return reduce(operator.and_, (span.sure for span in spans))


def _truths(spans: Sequence[Span]) -> list[Span]:
    """Bounds of the truth values of numbers."""
    return [
        Span(
            np.where((s.low > 0) | (s.high < 0), 1.0, 0.0),
            np.where((s.low == 0) & (s.high == 0), 0.0, 1.0),
            s.sure,
        )
        for s in spans
    ]


def _corners(compute: Callable[[Any, Any], Any], one: Span, other: Span) -> tuple[Any, Any]:
    """The extremes of an operation that is monotone in each operand; unbounded if a corner is NaN."""
    values = [compute(a, b) for a in (one.low, one.high) for b in (other.low, other.high)]
    low, high = values[0], values[0]
    for value in values[1:]:
        low, high = np.minimum(low, value), np.maximum(high, value)
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def _rising(compute: Callable[[Any, Any], Any]) -> Callable[[Sequence[Span]], _Bounds]:
    """A chain of an operation that rises with each of its operands."""

    def bound(spans: Sequence[Span]) -> _Bounds:
        low = reduce(compute, (span.low for span in spans))
        return low, reduce(compute, (span.high for span in spans)), _sure(spans)

    return bound


_minimum, _maximum = _rising(np.minimum), _rising(np.maximum)


def _multiply(spans: Sequence[Span]) -> _Bounds:
    low, high = spans[0].low, spans[0].high
    for span in spans[1:]:
        if np.all(low >= 0) and np.all(np.asarray(span.low) >= 0):
            low, high = low * span.low, high * span.high
            high = np.where(np.isnan(high), np.inf, high)
        else:
            low, high = _corners(operator.mul, Span(low, high), span)
    return low, high, _sure(spans)


def _subtract(spans: Sequence[Span]) -> _Bounds:
    one, other = spans
    return one.low - other.high, one.high - other.low, _sure(spans)


def _negate(spans: Sequence[Span]) -> _Bounds:
    return -spans[0].high, -spans[0].low, spans[0].sure


def _divided(compute: Callable[[Any, Any], Any]) -> Callable[[Sequence[Span]], _Bounds]:
    def bound(spans: Sequence[Span]) -> _Bounds:
        one, other = spans
        clear = (other.low > 0) | (other.high < 0)
        safe = Span(np.where(clear, other.low, 1.0), np.where(clear, other.high, 1.0))
        low, high = _corners(compute, one, safe)
        return np.where(clear, low, -np.inf), np.where(clear, high, np.inf), _sure(spans) & clear

    return bound


def _modulo(spans: Sequence[Span]) -> _Bounds:
    one, other = spans
    ahead, behind = other.low > 0, other.high < 0
    by = np.where(ahead, other.low, 1.0)
    turns = np.floor_divide(one.low, by)
    same = ahead & (other.low == other.high) & (turns == np.floor_divide(one.high, by))
    same &= np.isfinite(turns)
    low = np.where(ahead, 0.0, np.where(behind, other.low, -np.inf))
    high = np.where(ahead, other.high, np.where(behind, 0.0, np.inf))
    high = np.where(ahead & (one.low >= 0), np.minimum(high, one.high), high)
    low = np.where(same, np.remainder(one.low, by), low)
    high = np.where(same, np.remainder(one.high, by), high)
    return low, high, _sure(spans) & (ahead | behind)


def _power(spans: Sequence[Span]) -> _Bounds:
    one, other = spans
    clear = ((one.low > 0) | ((one.low >= 0) & (other.low >= 0))) & (np.abs(other.high) < 64)
    base = Span(np.where(clear, one.low, 1.0), np.where(clear, one.high, 1.0))
    exponent = Span(np.where(clear, other.low, 1.0), np.where(clear, other.high, 1.0))
    low, high = _corners(np.power, base, exponent)
    low, high = low - np.abs(low) * _SLACK, high + np.abs(high) * _SLACK
    return np.where(clear, low, -np.inf), np.where(clear, high, np.inf), _sure(spans) & clear & (high < 1e300)


def _logarithm(spans: Sequence[Span]) -> _Bounds:
    (one,) = spans
    clear = (one.low > 0) & (one.high < np.inf)
    low, high = np.log2(np.where(clear, one.low, 1.0)), np.log2(np.where(clear, one.high, 1.0))
    low, high = low - _SLACK * (1 + np.abs(low)), high + _SLACK * (1 + np.abs(high))
    return np.where(clear, low, -np.inf), np.where(clear, high, np.inf), one.sure & clear


def _absolute(spans: Sequence[Span]) -> _Bounds:
    (one,) = spans
    far = np.maximum(np.abs(one.low), np.abs(one.high))
    near = np.minimum(np.abs(one.low), np.abs(one.high))
    return np.where((one.low <= 0) & (one.high >= 0), 0.0, near), far, one.sure


def _decided(true: Any, false: Any, spans: Sequence[Span]) -> _Bounds:
    return np.where(true, 1.0, 0.0), np.where(false, 0.0, 1.0), _sure(spans)


def _equal(one: Span, other: Span) -> tuple[Any, Any]:
    true = (one.low == one.high) & (other.low == other.high) & (one.low == other.low) & np.isfinite(one.low)
    return true, (one.high < other.low) | (other.high < one.low)


def _equals(spans: Sequence[Span]) -> _Bounds:
    true, false = _equal(*spans)
    return _decided(true, false, spans)


def _differs(spans: Sequence[Span]) -> _Bounds:
    true, false = _equal(*spans)
    return _decided(false, true, spans)


def _below(spans: Sequence[Span]) -> _Bounds:
    one, other = spans
    return _decided(one.high < other.low, one.low >= other.high, spans)


def _up_to(spans: Sequence[Span]) -> _Bounds:
    one, other = spans
    return _decided(one.high <= other.low, one.low > other.high, spans)


def _among(spans: Sequence[Span]) -> _Bounds:
    true: Any = np.zeros((), dtype=bool)
    false: Any = np.ones((), dtype=bool)
    for span in spans[1:]:
        same, other = _equal(spans[0], span)
        true, false = true | same, false & other
    return _decided(true, false, spans)


def _negated(spans: Sequence[Span]) -> _Bounds:
    (truth,) = _truths(spans)
    return 1.0 - truth.high, 1.0 - truth.low, truth.sure


def _holds(spans: Sequence[Span]) -> _Bounds:
    (truth,) = _truths(spans)
    return np.where(truth.sure, truth.low, 0.0), np.where(truth.sure, truth.high, 1.0), True


def _residue(bound: _Bounds, modulus: int) -> _Bounds:
    """Bounds of a sum or product modulo a number above 0."""
    low, high, sure = bound
    known = (low == high) & (np.abs(low) < EXACT_FLOAT)
    value = np.remainder(np.where(known, low, 0.0), modulus)
    return np.where(known, value, 0.0), np.where(known, value, modulus - 1.0), sure


def _distinct(spans: Sequence[Span]) -> _Bounds:
    clash: Any = np.zeros((), dtype=bool)
    for span in spans:
        clash = clash | ((span.low == -1) & (span.high == -1))
    return np.full(np.shape(clash), -1.0), np.where(clash, -1.0, np.inf), _sure(spans)


def _lookup(place: Span, table: Table) -> _Bounds:
    if not table.ascending:
        whole = of_values(table.values, True)
        return whole.low, whole.high, place.sure
    last = len(table.values) - 1
    low, high = (np.clip(end, 0, last).astype(np.int64) for end in (place.low, place.high))
    if table.values.dtype != object:
        return table.values[low], table.values[high], place.sure
    return _as_floats(table.values[low]), _as_floats(table.values[high]), place.sure


_OPERATIONS: dict[str, Callable[[Sequence[Span]], _Bounds]] = {
    "+": _rising(operator.add),
    "*": _multiply,
    "-": _subtract,
    "neg": _negate,
    "pos": lambda spans: (spans[0].low, spans[0].high, spans[0].sure),
    "/": _divided(operator.truediv),
    "//": _divided(np.floor_divide),
    "ceildiv": _divided(lambda a, b: -np.floor_divide(-a, b)),
    "%": _modulo,
    "**": _power,
    "log2": _logarithm,
    "min": _minimum,
    "max": _maximum,
    "abs": _absolute,
    "==": _equals,
    "!=": _differs,
    "<": _below,
    "<=": _up_to,
    ">": lambda spans: _below(spans[::-1]),
    ">=": lambda spans: _up_to(spans[::-1]),
    "in": _among,
    "not": _negated,
    "and": lambda spans: _minimum(_truths(spans)),
    "or": lambda spans: _maximum(_truths(spans)),
    "holds": _holds,
    "active": _holds,
    "present": lambda spans: (np.where(spans[0].sure, 1.0, 0.0), 1.0, True),
    "distinct": _distinct,
}
