"""Rules as constraints of a space file."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.models.hypotheses import Suspects
from autotune.search.models.rule_text import constraint
from autotune.space.language.rule import Rule

NAMES = ("a", "b", "c")


def one(exponents: Sequence[int], *, whole: bool = False, equal: bool = False) -> Suspects:
    low = 0.0 if equal else -math.inf
    return Suspects(
        np.array(exponents, dtype=float)[:, None],
        np.array([low]),
        np.array([math.inf]),
        np.array([whole]),
        np.array([1.0]),
    )


@pytest.mark.parametrize(
    ("suspects", "text"),
    [
        (one([1, -1, 0], whole=True), "a % b == 0"),
        (one([1, -1, -1], whole=True), "a % (b * c) == 0"),
        (one([1, 1, -1], whole=True), "(a * b) % c == 0"),
        (one([1, 1, 0]), "a * b <= 96"),
        (one([-1, -1, 0]), "a * b >= 96"),
        (one([1, -1, 0]), "2 * a <= 3 * b"),
        (one([-1, 1, 0]), "3 * b <= 2 * a"),
        (one([1, -1, -1], equal=True), "10 * a == 3 * b * c"),
        (one([1, 0, 1], equal=True), "a * c == 60"),
    ],
)
def test_a_rule_reads_as_somebody_would_write_it(suspects: Suspects, text: str) -> None:
    assert constraint(NAMES, suspects, np.log2([[12.0, 8.0, 5.0]])) == text


@given(
    st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3).filter(lambda e: sum(map(abs, e)) >= 2),
    st.lists(st.tuples(*[st.integers(1, 1024)] * 3), min_size=1, max_size=6),
)
def test_what_worked_keeps_the_bound_that_is_stated(
    exponents: list[int], worked: list[tuple[int, int, int]]
) -> None:
    rule = Rule.parse(constraint(NAMES, one(exponents), np.log2(np.array(worked, dtype=float))))
    assert all(rule.holds(dict(zip(NAMES, values, strict=True))) for values in worked)
