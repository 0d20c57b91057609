"""When a parameter exists: the simplest rule over another one that finished trials agree with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from autotune.space.configuration import Value
from autotune.space.knob import Knob
from autotune.space.knob_values import key
from autotune.space.knobs import Choice, Flag
from autotune.space.rule import Rule
from autotune.space.syntax import Comparison, ComparisonOperator, ListOf, Literal, Name, Node, render

Row = Mapping[str, Value]


def condition(name: str, parents: Iterable[Knob], rows: Sequence[Row]) -> Rule | None:
    """The condition under which ``name`` has a value, by one of ``parents``; ``None`` where none fits.

    Some trials have it, some do not. A choice or a flag is the likelier reason for that than a number's
    limit, and a limit than a list of numbers. Of equally likely ones the first is taken: a wrong guess is
    found out by the first trial that it does not explain.
    """
    found: list[tuple[int, Rule]] = []
    for parent in parents:
        found += [(rank, rule) for rank, rule in _by(parent, name, rows)]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _by(parent: Knob, name: str, rows: Sequence[Row]) -> list[tuple[int, Rule]]:
    if any(name in row and parent.name not in row for row in rows):
        return []
    inside = _distinct(row[parent.name] for row in rows if name in row)
    outside = _distinct(row[parent.name] for row in rows if parent.name in row and name not in row)
    if not outside:  # wherever the parent exists: then for the same reason
        return [(1, parent.when)] if parent.when is not None else []
    if inside.keys() & outside.keys():
        return []
    if isinstance(parent, (Choice, Flag)):
        return [(0, _rule(_among(parent, inside.values())))]
    limit = _limit(parent, inside.values(), outside.values())
    if limit is not None:
        return [(2, _rule(limit))]
    return [] if parent.cardinality is None else [(3, _rule(_among(parent, inside.values())))]


def _distinct(values: Iterable[Value]) -> dict[object, Value]:
    return {key(value): value for value in values}


def _among(parent: Knob, values: Iterable[Value]) -> Node:
    items = tuple(Literal(value) for value in values)
    if len(items) == 1:
        return Comparison(("==",), (Name(parent.name), items[0]))
    return Comparison(("in",), (Name(parent.name), ListOf(items)))


def _limit(parent: Knob, inside: Iterable[Value], outside: Iterable[Value]) -> Node | None:
    """``parent >= x`` or ``parent <= x``, where one of them tells inside from outside."""
    within, without = _numbers(inside), _numbers(outside)
    if not within or not without:
        return None
    operator: ComparisonOperator
    if min(within) > max(without):
        operator, limit = ">=", min(within)
    elif max(within) < min(without):
        operator, limit = "<=", max(within)
    else:
        return None
    return Comparison((operator,), (Name(parent.name), Literal(limit)))


def _numbers(values: Iterable[Value]) -> list[int | float]:
    return [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]


def _rule(tree: Node) -> Rule:
    return Rule(render(tree), tree)
