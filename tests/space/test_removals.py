"""What each constraint removes, against counting by hand."""

from __future__ import annotations

from autotune.space import FloatRange, OrderedValues, Space
from autotune.space.removals import combinations, removed_by_each


def test_each_constraint_by_itself_and_on_top_of_the_others() -> None:
    values = tuple(range(1, 7))
    space = Space(
        [OrderedValues("a", values), OrderedValues("b", values)], constraints=["a * b <= 12", "a <= 4"]
    )
    pairs = [(a, b) for a in values for b in values]
    first = {p for p in pairs if p[0] * p[1] > 12}
    second = {p for p in pairs if p[0] > 4}
    assert combinations(space) == 36
    assert [(r.removes, r.only) for r in removed_by_each(space)] == [
        (len(first), len(first - second)),
        (len(second), len(second - first)),
    ]


def test_a_constraint_on_a_continuous_knob_is_not_counted() -> None:
    space = Space(
        [OrderedValues("a", (1, 2)), FloatRange("x", 0.0, 1.0)], constraints=["a * x <= 1", "a <= 1"]
    )
    assert [(r.removes, r.only) for r in removed_by_each(space)] == [(None, None), (1, 1)]
