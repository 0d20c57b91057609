"""A knob that exists in no configuration is found."""

from __future__ import annotations

from typing import Any

import pytest

from autotune.space.feasible_set import absent
from autotune.space.feasible_set.absent import absent_knobs
from autotune.space.feasible_set.feasible import FeasibleSet
from autotune.space.knobs import Flag, FloatRange, IntegerRange, OrderedValues
from autotune.space.space import Space


def space_where(when: str, *constraints: str) -> Space:
    knobs = [
        OrderedValues("v", (1, 2, 4), default=1),
        IntegerRange("a", 1, 9, default=1),
        FloatRange("x", 0.0, 1.0, default=0.5),
        IntegerRange("w", 1, 3, default=1, when=when),
    ]
    return Space(knobs, constraints=list(constraints))


@pytest.mark.parametrize(
    ("when", "constraints", "absent"),
    [
        ("v == 3", (), True),
        ("v == 2", (), False),
        ("v == 2", ("v != 2 or a > 9",), True),
        ("a > 100", (), True),
        ("x > 2", (), False),  # that cannot be counted
        ("v == 3 or x > 0.5", (), False),
    ],
)
def test_a_condition_that_nothing_meets(when: str, constraints: tuple[str, ...], absent: bool) -> None:
    found = [knob.name for knob in absent_knobs(space_where(when, *constraints))]
    assert found == (["w"] if absent else [])


def test_where_nothing_is_feasible_no_knob_is_to_blame() -> None:
    assert absent_knobs(space_where("v == 2", "a > 9")) == ()


def test_the_set_is_built_anew_only_for_knobs_that_no_draw_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty conditions, each on the one before: the set was built forty times."""
    chain = [Flag("k0", default=False)]
    chain += [Flag(f"k{n}", default=False, when=f"k{n - 1}") for n in range(1, 40)]
    space = Space([*chain, Flag("never", default=False, when="k38 and not k38")])
    built = []

    def build(*args: Any, **kwargs: Any) -> FeasibleSet:
        built.append(args)
        return FeasibleSet(*args, **kwargs)

    monkeypatch.setattr(absent, "FeasibleSet", build)
    assert [knob.name for knob in absent_knobs(space)] == ["never"]
    assert len(built) == 1
