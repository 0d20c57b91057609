"""When a knob exists: the simplest rule over another one that trials agree with."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace

from autotune.space.configuration import Value
from autotune.space.knobs import Choice, Flag
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.values import is_number, key
from autotune.space.language.rule import Rule
from autotune.space.language.syntax import Comparison, ComparisonOperator, ListOf, Literal, Name, Node, render

Row = Mapping[str, Value]


def condition(name: str, parents: Iterable[Knob], rows: Sequence[Row]) -> Rule | None:
    """The condition under which ``name`` has a value, by one of ``parents``; ``None`` where none fits.

    Some trials have it, some do not. A choice or a flag is the likelier reason for that than a number's
    limit, and a limit than a list of numbers. Of equally likely ones the first is taken: a wrong guess is
    found out by the first trial that it does not explain.
    """
    found = [reason for parent in parents if (reason := _reason(parent, name, rows)) is not None]
    return min(found, key=lambda reason: reason[0])[1] if found else None


def with_conditions(
    knobs: Iterable[Knob],
    rows: Sequence[Row],
    explain: Callable[[str, Sequence[Knob], Sequence[Row]], Rule | None] = condition,
) -> list[Knob]:
    """Those of ``knobs`` that always have a value; then the others, each with its condition.

    ``explain`` says that of a name, by the knobs that stand already and ``rows``. A knob that nothing
    explains is left out.
    """
    waiting = {knob.name: knob for knob in knobs}
    placed = [waiting.pop(name) for name in tuple(waiting) if all(name in row for row in rows)]
    while waiting:
        for name, knob in waiting.items():
            when = explain(name, placed, rows)
            if when is not None:
                placed.append(replace(knob, when=when))
                del waiting[name]
                break
        else:
            break
    return placed


def _reason(parent: Knob, name: str, rows: Sequence[Row]) -> tuple[int, Rule] | None:
    """The condition by ``parent``, behind the rank of its kind: the lower, the likelier."""
    if any(name in row and parent.name not in row for row in rows):
        return None
    inside = _distinct(row[parent.name] for row in rows if name in row)
    outside = _distinct(row[parent.name] for row in rows if parent.name in row and name not in row)
    if not outside:  # wherever the parent exists: then for the same reason
        return None if parent.when is None else (1, parent.when)
    if inside.keys() & outside.keys():
        return None
    if isinstance(parent, (Choice, Flag)):
        return 0, _rule(_among(parent, inside))
    limit = _limit(parent, inside.values(), outside.values())
    if limit is not None:
        return 2, _rule(limit)
    return None if parent.cardinality is None else (3, _rule(_among(parent, inside)))


def _distinct(values: Iterable[Value]) -> dict[object, Value]:
    return {key(value): value for value in values}


def _among(parent: Knob, inside: Container[object]) -> Node:
    items = tuple(Literal(value) for value in parent.cells[0].values if key(value) in inside)
    if len(items) == 1:
        return Comparison(("==",), (Name(parent.name), items[0]))
    return Comparison(("in",), (Name(parent.name), ListOf(items)))


def _limit(parent: Knob, inside: Iterable[Value], outside: Iterable[Value]) -> Node | None:
    """``parent >= x`` or ``parent <= x``, where one of them tells inside from outside."""
    within, without = [x for x in inside if is_number(x)], [x for x in outside if is_number(x)]
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


def _rule(tree: Node) -> Rule:
    return Rule(render(tree), tree)
