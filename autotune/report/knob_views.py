"""The knobs of a stored study, and their values as labels and as numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.report.text import one_line, shown
from autotune.space.configuration import plain

Floats = NDArray[np.float64]

MOST_BINS = 12
"""The most groups of values of a knob; with more values, each group has several."""
LONGEST_LABEL = 60
"""How many characters of a value are shown."""
MOST_DIGITS = 17
"""So many digits distinguish any two floats."""


@dataclass(frozen=True)
class KnobView:
    """A knob as tables and figures need it."""

    name: str
    ordered: bool
    """Whether its values have an order: numbers do, choices do not."""
    logarithmic: bool
    values: tuple[Any, ...]
    """All values, in order, as plain ones; empty for a range, a permutation or an assignment."""
    default: Any
    items: tuple[str, ...] = ()
    """The items of a permutation or an assignment."""


def knob_views(document: Mapping[str, Any], seen: Sequence[str] = ()) -> tuple[KnobView, ...]:
    """The knobs in a study's document, and then those that only its trials have (``seen``), as choices."""
    space = document.get("space")
    knobs = space.get("knobs") if isinstance(space, Mapping) else None
    described = knobs if isinstance(knobs, Mapping) else {}
    found = [_view(name, knob) for name, knob in described.items() if isinstance(knob, Mapping)]
    known = {knob.name for knob in found}
    return (*found, *(KnobView(name, False, False, (), None) for name in seen if name not in known))


def _view(name: str, knob: Mapping[str, Any]) -> KnobView:
    default = knob.get("default")
    if "values" in knob:
        values = tuple(knob["values"])
        return KnobView(name, True, _positive(values), values, default)
    if "range" in knob:
        scale = str(knob.get("scale", "linear"))
        return KnobView(name, True, scale.startswith("log"), (), default)
    if "flag" in knob:
        return KnobView(name, False, False, (False, True), default)
    if "permutation" in knob:
        return KnobView(name, False, False, (), default, tuple(map(str, knob["permutation"])))
    if "assign" in knob:
        return KnobView(name, False, False, (), default, tuple(map(str, knob["assign"])))
    return KnobView(name, False, False, tuple(knob.get("choices", ())), default)


def _positive(values: Sequence[Any]) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) and v > 0 for v in values)


def say_value_of(value: object) -> str:
    """A knob's value as a label: ``true``, ``i, j, k``, ``0.001``."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return one_line(shown(value), LONGEST_LABEL)


def say_configuration(configuration: Mapping[str, Any]) -> str:
    """A configuration on one line: ``tile=4, order=[i, j, k], fused=true``."""
    return ", ".join(f"{name}={_within_brackets(value)}" for name, value in configuration.items())


def _within_brackets(value: object) -> str:
    said = say_value_of(value)
    if isinstance(value, Mapping):
        return f"{{{said}}}"
    return f"[{said}]" if isinstance(value, (tuple, list)) else said


def same_value(one: object, other: object) -> bool:
    """Whether a space takes the two for the same value: 4 and 4.0 are, 1 and true are not."""
    return _key(one) == _key(other)


def positions(knob: KnobView, column: Sequence[Any]) -> Floats:
    """A number for each value, in the knob's order and on its scale; shape (n,), NaN if there is no value.

    Values of a knob without an order are numbered as they are listed in the space, or by their labels.
    """
    if knob.ordered and not knob.values:
        numbers = np.array([_number(v) for v in column], dtype=np.float64)
        if knob.logarithmic:
            with np.errstate(divide="ignore", invalid="ignore"):
                scaled = np.log(numbers)
            return np.where(np.isfinite(scaled), scaled, np.nan)
        return numbers
    keys = _keys(column)
    order = {_key(v): place for place, v in enumerate(knob.values)}
    for key in sorted({k for k in keys if k is not None and k not in order}):
        order[key] = len(order)
    return np.array([math.nan if key is None else float(order[key]) for key in keys], dtype=np.float64)


def feature_columns(knob: KnobView, column: Sequence[Any]) -> Floats:
    """The features of a knob for a forest; shape (n, width), NaN if there is no value.

    An ordered knob has one column, a choice one column for each value (the commonest 12 at most), a
    permutation one for the place of each item, and an assignment one for each item, with a number for its
    option.
    """
    if knob.items:
        return np.array(_places(knob, column), dtype=np.float64).reshape(len(column), len(knob.items))
    place = positions(knob, column)
    if knob.ordered or len(knob.values) == 2:
        return place[:, None]
    levels, counts = np.unique(place[np.isfinite(place)], return_counts=True)
    common = np.sort(levels[np.argsort(-counts, kind="stable")][:MOST_BINS])
    hot = (place[:, None] == common[None, :]).astype(np.float64)
    hot[~np.isfinite(place)] = np.nan
    return hot if hot.shape[1] else np.zeros((len(column), 1))


def _places(knob: KnobView, column: Sequence[Any]) -> list[list[float]]:
    """For a permutation the place of each item, for an assignment the number of each item's option."""
    options = sorted({str(p) for value in column if isinstance(value, Mapping) for p in value.values()})
    number = {option: float(place) for place, option in enumerate(options)}
    rows = []
    for value in column:
        where: dict[str, float] = {}
        if isinstance(value, Mapping):
            where = {str(item): number[str(place)] for item, place in value.items()}
        elif isinstance(value, (list, tuple)):
            where = {str(item): float(place) for place, item in enumerate(value)}
        rows.append([where.get(item, math.nan) for item in knob.items])
    return rows


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _keys(column: Sequence[Any]) -> list[str | None]:
    """:func:`_key` of each value, computed once for each different value; ``None`` for ``None``."""
    known: dict[tuple[type, Any], str] = {}
    keys: list[str | None] = []
    for value in column:
        if isinstance(value, (bool, int, float, str)):
            mark = type(value), value
            if (key := known.get(mark)) is None:
                key = known[mark] = _key(value)
            keys.append(key)
        else:
            keys.append(None if value is None else _key(value))
    return keys


def _key(value: Any) -> str:
    """A key that is the same for values that a space takes for the same: 4 and 4.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(plain(value), sort_keys=True, default=str)


@dataclass(frozen=True)
class Bins:
    """The values of a knob in groups, in their order."""

    labels: tuple[str, ...]
    places: NDArray[np.int64]
    """The group of each trial; -1 if it does not have the knob."""


def bins_of(knob: KnobView, column: Sequence[Any], most: int = MOST_BINS) -> Bins:
    """A group for each value. If there are more than ``most``: ranges of ordered values, or the commonest
    choices and one group of the others."""
    place = positions(knob, column)
    there = np.isfinite(place)
    levels, first = np.unique(np.where(there, place, np.inf), return_index=True)
    levels, first = levels[np.isfinite(levels)], first[np.isfinite(levels)]
    if not len(levels):
        return Bins((), np.full(len(column), -1, dtype=np.int64))
    values = [column[at] for at in first.tolist()]
    group = np.searchsorted(levels, np.where(there, place, levels[0]))
    if len(levels) <= most:
        labels = _told_apart([(value,) for value in values], 4)
    elif knob.ordered:
        edges = np.linspace(0, len(levels), most + 1).round().astype(int)
        labels = _told_apart([(values[low], values[end - 1]) for low, end in pairwise(edges.tolist())], 2)
        group = (np.searchsorted(edges, np.arange(len(levels)), side="right") - 1)[group]
    else:
        group, labels = _fewer(group, there, [say_value_of(value) for value in values], most)
    return Bins(tuple(labels), np.where(there, group, -1).astype(np.int64))


def _told_apart(ranges: Sequence[Sequence[Any]], digits: int) -> list[str]:
    """A label for each range or single value, with ``digits`` digits, or as many more as make all differ."""
    labels: list[str] = []
    for more in range(digits, MOST_DIGITS + 1):
        said = ([_say_end(value, more) for value in ends] for ends in ranges)
        labels = [" to ".join(dict.fromkeys(ends)) for ends in said]
        if len(set(labels)) == len(labels):
            break
    return labels


def _say_end(value: object, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else say_value_of(value)


def _fewer(
    group: NDArray[np.int64], there: NDArray[np.bool_], labels: list[str], most: int
) -> tuple[NDArray[np.int64], list[str]]:
    """``most - 1`` groups of the commonest values, one each, and a group of the others."""
    count = len(labels)
    counts = np.bincount(group[there], minlength=count)
    kept = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
    of_level = np.full(count, most - 1)
    of_level[kept] = np.arange(most - 1)
    return of_level[group], [*(labels[level] for level in kept), f"{count - most + 1} others"]
