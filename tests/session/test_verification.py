"""An answer measured again: when two results agree, and what is said of what cannot be measured."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.measure.objective import Infeasible
from autotune.measure.outcome import Outcome
from autotune.session.executor import make_executor
from autotune.session.finale import MIN_ROUNDS
from autotune.session.verification import Claim, Verification, apart, judge_again, measure_again, spec_for
from autotune.space.configuration import Configuration
from autotune.space.reader import parse_spec
from autotune.space.spec import StudySpec

VALUES = st.floats(1e-6, 1e6)
WIDTHS = st.floats(1.0, 2.0)
INTERVALS = st.builds(lambda value, low, high: (value, value / low, value * high), VALUES, WIDTHS, WIDTHS)


@settings(deadline=None)
@given(INTERVALS, INTERVALS, st.floats(0, 0.1))
def test_it_does_not_matter_which_was_first(one: Any, other: Any, precision: float) -> None:
    assert apart(one, other, precision) == apart(other, one, precision)
    assert not apart(one, one, precision)


@settings(deadline=None)
@given(INTERVALS, INTERVALS, st.floats(0, 0.1), st.floats(1e-3, 1e3))
def test_units_do_not_matter(one: Any, other: Any, precision: float, scale: float) -> None:
    distance = math.log(max(one[0], other[0]) / min(one[0], other[0]))
    if abs(distance - precision) < 1e-9:
        return
    scaled = [tuple(x * scale for x in interval) for interval in (one, other)]
    sure = apart(one, other, precision + 1e-9) == apart(one, other, max(precision - 1e-9, 0))
    if sure:
        assert apart(scaled[0], scaled[1], precision) == apart(one, other, precision)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ((1.4, 1.39, 1.41), (1.4, 1.39, 1.41), False),
        ((1.4, 1.4, 1.4), (1.41, 1.41, 1.41), False),  # within the precision of 1 %
        ((1.4, 1.4, 1.4), (1.43, 1.43, 1.43), True),
        ((1.4, 1.3, 1.5), (1.5, 1.4, 1.6), False),
        ((1.4, 1.3, 1.5), (2.0, 1.9, 2.1), True),
        ((1.4, 1.3, math.inf), (20.0, 19.0, 21.0), False),  # no end, no difference
        ((1.4, 0.0, 1.5), (0.5, 0.0, 0.6), False),  # it may be 0
        ((-2.0, -2.1, -1.9), (-1.0, -1.1, -0.9), True),
        ((-0.1, -0.6, 0.4), (0.1, -0.4, 0.6), False),
    ],
)
def test_intervals_and_precision_explain_a_difference(one: Any, other: Any, differ: bool) -> None:
    assert apart(one, other, 0.01) == differ


@pytest.mark.parametrize(
    ("then", "now", "verdict", "why"),
    [
        ({"speedup": (2, 1.9, 2.1)}, {"speedup": (2.05, 2, 2.1)}, "agrees", "the speed-up is as it was"),
        ({"speedup": (2, 1.9, 2.1)}, {"speedup": (3.0, 2.9, 3.1)}, "differs", "better than it was"),
        ({"speedup": (2, 1.9, 2.1)}, {"speedup": (1.5, 1.4, 1.6)}, "differs", "worse than it was"),
        (
            {"speedup": (2, 1.9, 2.1)},
            {"speedup": (1.0, 0.9, 1.1)},
            "differs",
            "no better than the default any",
        ),
        ({"metric": (2, 1.9, 2.1)}, {"metric": (3, 2.9, 3.1)}, "differs", "the measured value is worse"),
        (
            {"metric": (2, 1.9, 2.1), "speedup": (2, 2, 2)},
            {"metric": (2, 1.9, 2.1)},
            "agrees",
            "measured value",
        ),
        ({}, {"metric": (2, 1.9, 2.1)}, "agrees", "nothing was said"),
    ],
)
def test_what_is_said(then: Any, now: Any, verdict: str, why: str) -> None:
    found = judge_again(then, now, 0.01, "minimize")
    assert found[0] == verdict and why in found[1]


def test_more_is_better_where_the_goal_is_to_maximise() -> None:
    assert "better" in judge_again({"metric": (2, 1.9, 2.1)}, {"metric": (3, 2.9, 3.1)}, 0.01, "maximize")[1]


# -- measured for real, in this process

SPACE = """
autotune: 1
name: small
objective: objective.py:measure
workload: {n: 64}
metrics: {time: {goal: minimize, unit: s}}
knobs: {tile: {values: [1, 2, 4, 8]}}
constraints: ["tile <= n"]
"""


def spec(text: str = SPACE) -> StudySpec:
    return parse_spec(text)


def measure(tile: int) -> float:
    if tile == 8:
        raise Infeasible("eight is refused")
    return 1.0 / tile


def again(claim: Claim, what: StudySpec | None = None, kept: list[Any] | None = None) -> Verification:
    what = spec() if what is None else what
    executor = make_executor(what, measure)
    try:
        keep = None if kept is None else lambda contenders, outcomes: kept.append((contenders, outcomes))
        return measure_again(what, claim, executor, keep)
    finally:
        executor.close()


def test_the_configuration_and_the_default_are_read_side_by_side() -> None:
    kept: list[Any] = []
    found = again(Claim(Configuration({"tile": 4}), (0.25, 0.25, 0.25), (4.0, 4.0, 4.0)), kept=kept)
    assert (found.verdict, found.rounds) == ("agrees", MIN_ROUNDS)
    assert found.now["speedup"][0] == pytest.approx(4.0)
    assert found.now["default"][0] == 1.0
    assert {label: len(values) for label, values in found.readings.items()} == {
        "the default": MIN_ROUNDS,
        "the recipe": MIN_ROUNDS,
    }
    [(contenders, outcomes)] = kept
    assert all(isinstance(outcomes[c.label], Outcome) for c in contenders)
    document = found.to_document()
    assert document["now"]["speedup"]["value"] == pytest.approx(4.0)


def test_a_recipe_that_is_the_default_is_read_alone() -> None:
    found = again(Claim(Configuration({"tile": 1}), (1.0, 1.0, 1.0), None))
    assert (found.verdict, list(found.now)) == ("agrees", ["metric"])
    assert again(Claim(Configuration({"tile": 1}), (0.5, 0.5, 0.5), None)).verdict == "differs"


@pytest.mark.parametrize(
    ("tile", "why"),
    [(8, "infeasible here: eight is refused"), (16, "does not allow the configuration")],
)
def test_what_cannot_be_measured_is_said(tile: int, why: str) -> None:
    found = again(Claim(Configuration({"tile": tile}), (0.1, 0.1, 0.1), None))
    assert found.verdict == "cannot be measured here" and why in found.why


def test_a_default_that_the_constraints_refuse_is_nothing_to_compare_with() -> None:
    text = SPACE.replace("tile <= n", "tile >= 2")
    found = again(Claim(Configuration({"tile": 4}), (0.25, 0.25, 0.25), None), spec(text))
    assert found.verdict == "agrees" and "speedup" not in found.now


def test_the_space_file_gives_the_study_of_a_workload() -> None:
    found = spec_for(SPACE, Path("space.yaml"), {"n": 2})
    assert (found.workload["n"], len(found.space.feasible)) == (2, 2)
    with pytest.raises(InputError, match="the workload has no 'm'"):
        spec_for(SPACE, Path("space.yaml"), {"m": 2})
    several = SPACE.replace("workload: {n: 64}", "workloads: [{n: 1}, {n: 4}]")
    assert spec_for(several, Path("space.yaml"), {"n": 4}).workload["n"] == 4
