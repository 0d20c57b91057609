"""By how much values miss a rule: the way towards a rule that random values hardly ever satisfy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from autotune.space.configuration import Value
from autotune.space.language.compute import COMPARE, Undefined
from autotune.space.language.rule import Rule, compiled
from autotune.space.language.syntax import Boolean, Comparison, ComparisonOperator, Node, Unary

Amount = Callable[[Mapping[str, Value]], float]
Side = Callable[[Mapping[str, Value]], object]

MISSED = 1.0
"""The miss of a condition that is not met by any amount, such as ``layout == 'row'``."""

_OPPOSITE: dict[ComparisonOperator, ComparisonOperator] = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==",
}  # fmt: skip


def shortfall(rule: Rule) -> Amount:
    """A function of the knobs' values: 0 where they satisfy the ``rule``, else above 0, at most infinite.

    It is in the units of what the rule compares: ``x + y <= 1`` is missed by 0.5 where the sum is 1.5. The
    misses of the operands of ``and`` add up; of those of ``or`` the least counts. The miss of a rule that
    cannot be computed is infinite.
    """
    amount = _of(rule.tree)

    def measure(values: Mapping[str, Value]) -> float:
        try:
            missed = amount(values)
        except (KeyError, *Undefined):
            missed = math.inf
        if 0 < missed < math.inf:
            return missed
        if rule.holds(values):
            return 0.0
        # The rule does not hold, yet the miss was rounded to 0, or is NaN (infinity less infinity).
        return math.ulp(0.0) if missed == 0 else math.inf

    return measure


def _of(node: Node, wanted: bool = True) -> Amount:
    """By how much ``node`` fails to be what is ``wanted``."""
    match node:
        case Unary("not", operand):
            return _of(operand, not wanted)
        case Boolean(sign, joined):
            parts = [_of(operand, wanted) for operand in joined]
            return _sum(parts) if (sign == "and") == wanted else _least(parts)
        case Comparison(operators, operands) if all(sign in _OPPOSITE for sign in operators):
            signs = operators if wanted else [_OPPOSITE[sign] for sign in operators]
            pairs = zip(signs, pairwise(map(compiled, operands)), strict=True)
            parts = [_compared(sign, *sides) for sign, sides in pairs]
            return _sum(parts) if wanted else _least(parts)
    truth = compiled(node)
    return lambda values: 0.0 if bool(truth(values)) == wanted else MISSED


def _sum(parts: Sequence[Amount]) -> Amount:
    if len(parts) == 1:  # as of most rules
        [only] = parts
        return lambda values: float(only(values))
    return lambda values: math.fsum(part(values) for part in parts)


def _least(parts: Sequence[Amount]) -> Amount:
    return lambda values: min(part(values) for part in parts)


def _compared(sign: ComparisonOperator, left: Side, right: Side) -> Amount:
    def amount(values: Mapping[str, Value]) -> float:
        one, other = left(values), right(values)
        if COMPARE[sign](one, other):
            return 0.0
        if sign == "!=" or not (isinstance(one, (int, float)) and isinstance(other, (int, float))):
            return MISSED
        return abs(one - other)

    return amount
