"""A rule over products of knobs as a constraint, as a space file has it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from autotune.search.models.arrays import Floats
from autotune.search.models.hypotheses import LESS, ONE, Suspects


def constraint(names: Sequence[str], suspects: Suspects, worked: Floats) -> str:
    """The likeliest hypothesis about a rule: ``(m * k) % (threads * vector) == 0``.

    ``worked``: the logarithms of the knobs in the tries that succeeded, of shape (n, names). As a bound of a
    product the largest that worked is stated, since nothing is known between that and what failed.
    """
    exponents = suspects.exponents[:, 0]
    over = [name for name, exponent in zip(names, exponents, strict=True) if exponent > 0]
    under = [name for name, exponent in zip(names, exponents, strict=True) if exponent < 0]
    if suspects.whole[0]:
        return f"{_factor(over)} % {_factor(under)} == 0"
    if suspects.high[0] in (ONE, LESS):
        return f"{over[0]} {'<=' if suspects.high[0] == ONE else '<'} {under[0]}"
    sign = "==" if np.isfinite(suspects.low[0]) else "<="
    bound = _value(worked[int(np.argmax(worked @ exponents))], exponents)
    left, right = _times(bound.denominator, over), _times(bound.numerator, under)
    # The number stands on the right: x * y >= 32, not 32 <= x * y.
    return f"{left} {sign} {right}" if over else f"{right} {sign.replace('<', '>')} {left}"


def _value(logs: Floats, exponents: Floats) -> Fraction:
    """The product of the whole numbers with these logarithms, each to its exponent."""
    value = Fraction(1)
    for number, exponent in zip(np.round(np.exp2(logs)).tolist(), exponents.tolist(), strict=True):
        value *= Fraction(int(number)) ** int(exponent)
    return value


def _times(number: int, names: Sequence[str]) -> str:
    return " * ".join([*([str(number)] if number != 1 or not names else []), *names])


def _factor(names: Sequence[str]) -> str:
    return f"({' * '.join(names)})" if len(names) > 1 else "".join(names) or "1"
