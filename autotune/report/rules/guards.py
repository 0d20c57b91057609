"""The condition on a workload under which a space allows a configuration. Pure.

The constraints and the conditions of knobs are syntax trees of the rule language. The configuration's
values, the facts of the device and the facts that all workloads share are substituted, and constants are
folded. The result only uses names of the workload: ``tile_m * 4 <= m`` with a tile of 8 becomes ``32 <=
m``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.errors import InputError, Problem
from autotune.space.configuration import FrozenMap, Value, freeze
from autotune.space.from_document import DEVICE
from autotune.space.language import compute
from autotune.space.language.parser import parse
from autotune.space.language.rule import compiled
from autotune.space.language.syntax import (
    ROOTS,
    Binary,
    Boolean,
    Call,
    Comparison,
    Item,
    ListOf,
    Literal,
    Name,
    Node,
    Unary,
    children,
    name_of,
    walk,
)

TRUE, FALSE = Literal(True), Literal(False)


class _Ends(Exception):  # noqa: N818 - not an error: it ends the evaluation of a rule
    """The value of the whole rule is decided: a knob is missing, or something cannot be computed."""

    def __init__(self, holds: bool) -> None:
        self.holds = holds


@dataclass(frozen=True)
class Surroundings:
    """What the rules of a space may use besides knobs."""

    space: Mapping[str, Any]
    """The space as :meth:`Space.to_document` gives it."""
    fixed: Mapping[str, Value]
    """The facts that all workloads share."""
    names: frozenset[str]
    """The facts in which workloads differ; these stay names."""

    @property
    def knobs(self) -> Mapping[str, Mapping[str, Any]]:
        knobs: Mapping[str, Mapping[str, Any]] = self.space["knobs"]
        return knobs

    def _is_open(self, node: Node) -> bool:
        name = name_of(node)
        root, _, path = name.partition(".")
        fact = path if root == "workload" else name
        return name not in self.knobs and root != "device" and fact.partition(".")[0] in self.names

    def put_in(self, node: Name | Item, values: Mapping[str, Value], vacuous: bool) -> Node:
        """What replaces a name: a knob's value, a fact, or the name itself if workloads differ in it."""
        name = node.name if isinstance(node, Name) else node.knob
        if name in self.knobs:
            if name not in values:
                raise _Ends(vacuous)
            value = values[name]
        elif self._is_open(node):
            fact = name.removeprefix("workload.")
            if isinstance(node, Item) or fact not in self.names:
                raise _cannot(f"a part of {name!r}")
            return Name(fact)
        else:
            value = self._fact(name)
        return Literal(value[node.key] if isinstance(node, Item) else value)  # type: ignore[index]

    def _fact(self, name: str) -> Value:
        root, _, path = name.partition(".")
        if root not in ROOTS:
            root, path = "workload", name
        if root == "workload":
            found = compute.lookup(self.fixed, path)
        else:
            found = freeze(self.space["facts"].get(f"{DEVICE}{path}"))
        assert found is not None  # the space was valid when it was stored, so its rules only use known names
        return found


def guard(surroundings: Surroundings, configuration: Mapping[str, Any]) -> Node:
    """The condition under which the space allows ``configuration``; ``Literal(True)`` if it always does.

    Raises :class:`InputError` for a rule that cannot be written with names of the workload only.
    """
    values = {name: freeze(value) for name, value in configuration.items()}
    parts = [_settled(surroundings, parse(t), values, True) for t in surroundings.space["constraints"]]
    for name, knob in surroundings.knobs.items():
        if knob.get("when"):
            exists = _settled(surroundings, parse(knob["when"]), values, False)
            parts.append(exists if name in values else _not(exists))
        elif name not in values:
            return FALSE
    return _joined("and", parts)


def _settled(around: Surroundings, tree: Node, values: Mapping[str, Value], vacuous: bool) -> Node:
    """A rule with everything substituted. If it uses a knob that does not exist, its value is ``vacuous``."""
    operands = tree.operands if isinstance(tree, Boolean) else (tree,)
    sign = tree.operator if isinstance(tree, Boolean) else "and"
    done: list[Node] = []
    for operand in operands:
        try:
            done.append(_folded(around, operand, values, vacuous))
        except _Ends as end:
            # If evaluation gets to this operand, it decides the rule, and later operands do not matter.
            if any(around._is_open(node) for node in walk(operand)):
                raise _cannot("a rule that may need a knob that does not exist") from None
            done.append(Literal(end.holds))
            break
        if done[-1] == (FALSE if sign == "and" else TRUE):
            break
    return _joined(sign, done)


def _folded(around: Surroundings, node: Node, values: Mapping[str, Value], vacuous: bool) -> Node:
    match node:
        case Name() | Item():
            return around.put_in(node, values, vacuous)
        case Literal():
            return Literal(node.value)  # without its place in the text, so that equal nodes compare equal
        case Boolean(operator=sign):
            return _joined(sign, (_folded(around, one, values, vacuous) for one in node.operands))
        case _:
            below = [_folded(around, child, values, vacuous) for child in children(node)]
            rebuilt = _rebuilt(node, below)
            return _constant(rebuilt) if all(isinstance(child, Literal) for child in below) else rebuilt


def _rebuilt(node: Node, below: Sequence[Node]) -> Node:
    match node:
        case Unary():
            return Unary(node.operator, below[0])
        case Binary():
            return Binary(node.operator, below[0], below[1])
        case Comparison():
            return Comparison(node.operators, tuple(below))
        case Call():
            return Call(node.function, tuple(below))
        case ListOf():
            return ListOf(tuple(below))
    raise AssertionError(node)


def _constant(node: Node) -> Node:
    if isinstance(node, Call) and node.function == "count":
        assignment, option = (child.value for child in node.arguments if isinstance(child, Literal))
        assert isinstance(assignment, FrozenMap)
        return Literal(compute.count(assignment, option))
    try:
        return Literal(freeze(compiled(node)({})))
    except compute.Undefined:
        raise _Ends(False) from None


def _joined(sign: Any, parts: Iterable[Node]) -> Node:
    """``parts`` joined by ``and`` or ``or``, without redundant ones; none after one that decides."""
    neutral, final = (TRUE, FALSE) if sign == "and" else (FALSE, TRUE)
    kept: list[Node] = []
    for part in parts:
        if isinstance(part, Literal):
            part = Literal(bool(part.value))
        if part == final:
            return final
        if part != neutral and part not in kept:
            kept.append(part)
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else Boolean(sign, tuple(kept))


def _not(node: Node) -> Node:
    return Literal(not node.value) if isinstance(node, Literal) else Unary("not", node)


def _cannot(what: str) -> InputError:
    return InputError(
        Problem(
            f"{what} cannot be written in terms of the workload alone",
            hint="write the rule as JSON, which asks the space itself: autotune rule -o rule.json",
        )
    )
