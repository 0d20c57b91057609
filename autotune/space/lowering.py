"""From the syntax tree of a bound rule to terms over variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autotune.space.knob import Knob
from autotune.space.rule import Rule
from autotune.space.syntax import (
    Binary,
    Boolean,
    Call,
    Comparison,
    ComparisonOperator,
    Item,
    ListOf,
    Literal,
    Name,
    Node,
    Unary,
    children,
)
from autotune.space.terms import Term, Terms

_UNARY = {"-": "neg", "+": "pos", "not": "not"}

CellTerm = Callable[[str, int], Term]
"""The term of a knob's cell, by the knob's name and the position of the cell in it."""


def lower_rule(rule: Rule, knobs: Mapping[str, Knob], cell: CellTerm, terms: Terms) -> list[Term]:
    """Terms that are true or false, all true where the rule holds."""
    term = _lower(rule.tree, knobs, cell, terms)
    outcome = "holds" if rule.vacuous else "active"
    if term.operation != "and":
        return [terms.make(outcome, (term,))]
    if term.total:
        return list(term.arguments)
    # What comes before the first operand that can be undefined is needed in any case.
    safe = next(place for place, operand in enumerate(term.arguments) if not operand.total)
    rest = term.arguments[safe:]
    last = rest[0] if len(rest) == 1 else terms.make("and", rest)
    return [*term.arguments[:safe], terms.make(outcome, (last,))]


def cells_of(tree: Node, knobs: Mapping[str, Knob]) -> set[tuple[str, int]]:
    """The cells that a rule reads: names of knobs with positions."""
    match tree:
        case Name():
            return {(tree.name, place) for place in range(len(knobs[tree.name].cells))}
        case Item():
            return {(tree.knob, _position(knobs[tree.knob], tree.key))}
    return {cell for part in children(tree) for cell in cells_of(part, knobs)}


def _lower(node: Node, knobs: Mapping[str, Knob], cell: CellTerm, terms: Terms) -> Term:
    def lower(one: Node) -> Term:
        return _lower(one, knobs, cell, terms)

    match node:
        case Literal():
            return terms.literal(node.value)
        case Name():
            return cell(node.name, 0)
        case Item():
            return cell(node.knob, _position(knobs[node.knob], node.key))
        case Unary():
            return terms.make(_UNARY[node.operator], (lower(node.operand),))
        case Binary():
            return terms.make(node.operator, (lower(node.left), lower(node.right)))
        case Comparison():
            pairs = zip(node.operators, node.operands, node.operands[1:], strict=False)
            tests = [_compare(sign, lower(one), other, lower, terms) for sign, one, other in pairs]
            return tests[0] if len(tests) == 1 else terms.make("and", tests)
        case Boolean():
            return terms.make(node.operator, [lower(operand) for operand in node.operands])
        case Call(function="count"):
            return _count(node, knobs, cell, lower, terms)
        case Call():
            return terms.make(node.function, [lower(argument) for argument in node.arguments])
        case ListOf():
            raise TypeError("a list only stands on the right of 'in', or under min, max and len")


def _compare(
    sign: ComparisonOperator, one: Term, other: Node, lower: Callable[[Node], Term], terms: Terms
) -> Term:
    if sign not in ("in", "not in"):
        return terms.make(sign, (one, lower(other)))
    if isinstance(other, Literal) and isinstance(other.value, tuple):
        members = [terms.literal(value) for value in other.value]
    elif isinstance(other, ListOf):
        members = [lower(item) for item in other.items]
    else:
        raise TypeError("'in' needs a list on its right")
    found = terms.make("in", (one, *members))
    return found if sign == "in" else terms.make("not", (found,))


def _count(
    node: Call, knobs: Mapping[str, Knob], cell: CellTerm, lower: Callable[[Node], Term], terms: Terms
) -> Term:
    place, option = node.arguments
    assert isinstance(place, Name)
    wanted = lower(option)
    items = range(len(knobs[place.name].cells))
    return terms.make("+", [terms.make("==", (cell(place.name, item), wanted)) for item in items])


def _position(knob: Knob, key: int | str) -> int:
    """The cell that ``knob[key]`` means: a position of a permutation, or the name of an item."""
    return key if isinstance(key, int) else [cell.name for cell in knob.cells].index(f"{knob.name}[{key!r}]")
