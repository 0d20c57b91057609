"""What each constraint removes, against counting by hand."""

from __future__ import annotations

import math

import pytest

from autotune.space import FloatRange, OrderedValues, Space
from autotune.space.feasible_set.factors import Estimate
from autotune.space.feasible_set.removals import combinations, removed_by_each
from autotune.space.knobs import IntegerRange


def exactly(count: int) -> Estimate:
    return Estimate(count, count, count, 1.0)


def test_each_constraint_by_itself_and_on_top_of_the_others() -> None:
    values = tuple(range(1, 7))
    space = Space(
        [OrderedValues("a", values), OrderedValues("b", values)], constraints=["a * b <= 12", "a <= 4"]
    )
    pairs = [(a, b) for a in values for b in values]
    first = {p for p in pairs if p[0] * p[1] > 12}
    second = {p for p in pairs if p[0] > 4}
    assert combinations(space) == exactly(36)
    assert [(r.removes, r.only) for r in removed_by_each(space) or ()] == [
        (exactly(len(first)), exactly(len(first - second))),
        (exactly(len(second)), exactly(len(second - first))),
    ]


def test_a_constraint_that_refuses_nothing_removes_nothing() -> None:
    space = Space(
        [OrderedValues("a", (1, 2, 3)), OrderedValues("b", (1, 2, 3))],
        constraints=["a * b != 7", "a + b <= 4", "a + 0 <= 4 - b"],
    )
    assert [(r.removes, r.only) for r in removed_by_each(space) or ()] == [
        (exactly(0), exactly(0)),
        (exactly(3), exactly(0)),  # the same is said twice
        (exactly(3), exactly(0)),
    ]


def test_a_constraint_on_a_continuous_knob_is_not_counted() -> None:
    space = Space(
        [OrderedValues("a", (1, 2)), FloatRange("x", 0.0, 1.0)], constraints=["a * x <= 1", "a <= 1"]
    )
    assert [(r.removes, r.only) for r in removed_by_each(space) or ()] == [
        (None, None),
        (exactly(1), exactly(1)),
    ]


def test_of_a_constraint_on_continuous_knobs_it_is_said_what_share_it_refuses() -> None:
    space = Space(
        [FloatRange("x", 0.0, 1.0), FloatRange("y", 0.0, 1.0)], constraints=["x + y <= 1", "x * y <= 0.25"]
    )
    half, corner = (removal.share for removal in removed_by_each(space) or ())
    assert half == pytest.approx(0.5, abs=0.03)
    assert corner == pytest.approx(0.75 - math.log(4) / 4, abs=0.03)


def test_what_is_too_much_to_count_is_estimated() -> None:
    space = Space(
        [IntegerRange("a", 1, 10**6), IntegerRange("b", 1, 10**6)],
        constraints=["a * b <= 10 ** 11", "a >= 2"],
    )
    product, listed = removed_by_each(space) or ()
    assert product.removes is not None and product.removes.low < product.removes.high
    feasible = 10**11 * (1 + math.log(10))  # the integral of min(10^6, 10^11 / a) over a
    assert product.removes.low <= 10**12 - feasible <= product.removes.high
    assert product.removes.value == pytest.approx(10**12 - feasible, rel=0.05)
    assert listed.removes == exactly(10**6), "this one alone can be counted"
    assert listed.only is not None and (listed.only.low, listed.only.high) == (0, 10**6)
    for removal in (product, listed):
        removes, only = removal.removes, removal.only
        assert removes is not None and only is not None and only.high <= removes.high
        assert removes.low <= removes.value <= removes.high and only.low <= only.value <= only.high
    assert listed.only.confidence < 1.0 and product.removes.confidence < 1.0
