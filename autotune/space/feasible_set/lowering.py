"""From the syntax tree of a bound rule to terms over variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from autotune.space.feasible_set.terms import Term, Terms
from autotune.space.knobs.knob import Knob
from autotune.space.language.rule import Rule
from autotune.space.language.syntax import (
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

_UNARY = {"-": "neg", "+": "pos", "not": "not"}

CellTerm = Callable[[str, int], Term]
"""The term of a knob's cell, by the knob's name and the position of the cell in it."""


@dataclass(frozen=True)
class Lowering:
    """Makes terms of rules over some knobs."""

    knobs: Mapping[str, Knob]
    cell: CellTerm
    terms: Terms

    def rule(self, rule: Rule) -> list[Term]:
        """Terms that are true or false, and all true where the rule holds."""
        term = self._node(rule.tree)
        outcome = "holds" if rule.vacuous else "active"
        if term.operation != "and":
            return [self.terms.make(outcome, (term,))]
        if term.total:
            return list(term.arguments)
        # Operands before the first one that can be undefined have to hold in any case: rules of their own.
        safe = next(place for place, operand in enumerate(term.arguments) if not operand.total)
        rest = term.arguments[safe:]
        last = rest[0] if len(rest) == 1 else self.terms.make("and", rest)
        return [*term.arguments[:safe], self.terms.make(outcome, (last,))]

    def _node(self, node: Node) -> Term:
        match node:
            case Literal():
                return self.terms.literal(node.value)
            case Name():
                return self.cell(node.name, 0)
            case Item():
                return self.cell(node.knob, _position(self.knobs[node.knob], node.key))
            case Unary():
                return self.terms.make(_UNARY[node.operator], (self._node(node.operand),))
            case Binary():
                return self.terms.make(node.operator, (self._node(node.left), self._node(node.right)))
            case Comparison():
                pairs = zip(node.operators, node.operands, node.operands[1:], strict=False)
                tests = [self._compare(sign, one, other) for sign, one, other in pairs]
                return tests[0] if len(tests) == 1 else self.terms.make("and", tests)
            case Boolean():
                return self.terms.make(node.operator, [self._node(operand) for operand in node.operands])
            case Call(function="count", arguments=(Name(name=assignment), option)):
                return self._count(assignment, option)
            case Call():
                return self.terms.make(node.function, [self._node(argument) for argument in node.arguments])
            case ListOf():
                raise TypeError("a list only stands on the right of 'in', or under min, max and len")

    def _compare(self, sign: ComparisonOperator, one: Node, other: Node) -> Term:
        left = self._node(one)
        if sign not in ("in", "not in"):
            return self.terms.make(sign, (left, self._node(other)))
        if isinstance(other, Literal) and isinstance(other.value, tuple):
            members = [self.terms.literal(value) for value in other.value]
        elif isinstance(other, ListOf):
            members = [self._node(item) for item in other.items]
        else:
            raise TypeError("'in' needs a list on its right")
        found = self.terms.make("in", (left, *members))
        return found if sign == "in" else self.terms.make("not", (found,))

    def _count(self, assignment: str, option: Node) -> Term:
        wanted = self._node(option)
        items = range(len(self.knobs[assignment].cells))
        equal = [self.terms.make("==", (self.cell(assignment, item), wanted)) for item in items]
        return self.terms.make("+", equal)


def cells_of(tree: Node, knobs: Mapping[str, Knob]) -> set[tuple[str, int]]:
    """The cells that a rule reads: names of knobs with positions."""
    match tree:
        case Name():
            return {(tree.name, place) for place in range(len(knobs[tree.name].cells))}
        case Item():
            return {(tree.knob, _position(knobs[tree.knob], tree.key))}
    return {cell for part in children(tree) for cell in cells_of(part, knobs)}


def _position(knob: Knob, key: int | str) -> int:
    """The cell that ``knob[key]`` means: a position of a permutation, or the name of an item."""
    return key if isinstance(key, int) else [cell.name for cell in knob.cells].index(f"{knob.name}[{key!r}]")
