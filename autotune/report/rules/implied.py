"""Whether a condition on a workload is already decided by conditions that were asked before it. Pure.

A condition is split into *facts* that hold together, each about one quantity: a bound, an equality, that it
is a multiple. Other conditions are not analysed: they are facts that are true or false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from autotune.hook.rule import Condition, Equals
from autotune.space.configuration import Value
from autotune.space.language.syntax import Binary, Boolean, Comparison, Literal, Name, Node, Unary

MULTIPLE, NO_MULTIPLE = "is a multiple of", "is no multiple of"
HOLDS, FAILS = "holds as", "fails as"
"""Signs for a condition that is not analysed; the value is ``True``."""
_TURNED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "==", "!=": "!="}
"""Each sign after its sides are exchanged."""
_OPPOSITE = {"<=": ">", ">": "<=", "<": ">=", ">=": "<", "==": "!=", "!=": "=="}
_OPPOSITE |= {MULTIPLE: NO_MULTIPLE, NO_MULTIPLE: MULTIPLE, HOLDS: FAILS, FAILS: HOLDS}


@dataclass(frozen=True)
class Fact:
    """``quantity sign value``."""

    quantity: Node
    sign: str
    value: Value

    @property
    def opposite(self) -> Fact:
        return replace(self, sign=_OPPOSITE[self.sign])


@dataclass(frozen=True)
class Known:
    """What is known about a workload from the conditions asked before."""

    facts: tuple[Fact, ...] = ()
    """Facts that hold."""
    refuted: tuple[tuple[Fact, ...], ...] = ()
    """Sets of facts of which at least one does not hold."""

    def after(self, condition: Node, holds: bool) -> Known:
        facts = (*self.facts, *facts_of(condition, holds))
        return Known(facts, self.refuted if holds else (*self.refuted, facts_of(condition)))

    def decides(self, condition: Node) -> bool | None:
        """The value of ``condition`` if what is known decides it; else ``None``."""
        if isinstance(condition, Literal):
            return bool(condition.value)
        asked = facts_of(condition)
        if all(map(self._has, asked)):
            return True
        both = Known((*self.facts, *asked))
        impossible = any(map(self._has, (fact.opposite for fact in asked)))
        return False if impossible or any(all(map(both._has, facts)) for facts in self.refuted) else None

    def _has(self, fact: Fact) -> bool:
        return any(_implies(known, fact) for known in self.facts)


def question(condition: Condition) -> Node:
    """The condition of a tree as a syntax tree, as guards are."""
    if isinstance(condition, Equals):
        return Comparison(("==",), (Name(condition.name), Literal(condition.value)))
    product = _product(list(map(Name, condition.product)))
    return Comparison(("<=",), (product, _product([Literal(condition.at_most), *map(Name, condition.over)])))


def _product(factors: Sequence[Node]) -> Node:
    return reduce(lambda one, other: Binary("*", one, other), factors)


def facts_of(condition: Node, holds: bool = True) -> tuple[Fact, ...]:
    """Facts that hold together if ``condition`` is true (``holds``), or if it is false (``holds=False``)."""
    match condition:
        case Boolean(sign, operands) if (sign == "and") == holds:
            return tuple(fact for operand in operands for fact in facts_of(operand, holds))
        case Unary("not", operand):
            return facts_of(operand, not holds)
        case Comparison((sign,), (Literal(value), quantity)) if sign in _TURNED:
            fact = Fact(quantity, _TURNED[sign], value)
        case Comparison(("==",), (Binary("%", quantity, Literal(value)), Literal(0))):
            fact = Fact(quantity, MULTIPLE, value)
        case Comparison((sign,), (quantity, Literal(value))) if sign in _TURNED:
            fact = Fact(quantity, sign, value)
        case _:
            fact = Fact(condition, HOLDS, True)
    return (fact if holds else fact.opposite,)


def _implies(one: Fact, other: Fact) -> bool:
    """Whether ``other`` is true wherever ``one`` is."""
    return one.quantity == other.quantity and (
        _follows(one, other) or _follows(other.opposite, one.opposite)  # the contrapositive
    )


def _follows(one: Fact, other: Fact) -> bool:
    """As :func:`_implies` for two facts of the same quantity, without the contrapositive."""
    a, b = one.value, other.value
    if one.sign == other.sign and a == b:
        return True
    if (one.sign, other.sign) == ("==", "!="):
        return a != b
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return False
    match one.sign, other.sign:
        case ("<=" | "<" | "==", "<=") | ("<", "<"):
            return a <= b
        case ("<=" | "==", "<"):
            return a < b
        case ("==", ">="):
            return a >= b
        case ("==", ">"):
            return a > b
    return one.sign == other.sign == MULTIPLE and b != 0 and a % b == 0
