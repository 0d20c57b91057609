"""Recipes of two places: which are compared, and what is said of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autotune.hook.recipes.case import Case
from autotune.hook.recipes.recipe import Metric, Recipe, Speedup
from autotune.report.differences.recipes import diff_recipes

ONE = Recipe("gemm", "gpu", Case({}), {"tile": 1}, Metric("time", 1.0, unit="s"))


def test_recipes_of_several_are_compared_by_what_they_are_for(tmp_path: Path) -> None:
    """What is the same on both sides is not told."""
    same, changed, gone = (replace(ONE, name=name) for name in ("same", "changed", "gone"))
    other = [replace(changed, configuration={"tile": 2}), same, replace(ONE, name="new")]
    found = diff_recipes([same, changed, gone], other, ("A", "B"))
    assert [(one.one, one.other, list(one.remarks)) for one in found] == [
        ("changed on gpu", "changed on gpu", []),
        ("gone on gpu", "", ["only A has it"]),
        ("", "new on gpu", ["only B has it"]),
    ]
    assert found[0].parts["configuration"] == {"tile": (1, 2)}
    slower = replace(same, metric=Metric("time", 2.0, unit="s"))
    [only] = diff_recipes([same, gone], [slower, gone], ("A", "B"))
    assert only.alike and only.contrasts[0].answer == "worse"


@pytest.mark.parametrize(
    ("metric", "how"),
    [
        (Metric("time", 2.0, unit="J"), "one is in s, the other in J"),
        (Metric("loss", 2.0), "the other is of loss"),
        (Metric("time", 2.0, unit="s", goal="maximize"), "one is to minimize it, the other to maximize it"),
    ],
)
def test_recipes_of_other_metrics_kinds_or_goals_are_not_compared(metric: Metric, how: str) -> None:
    """The value of the other had been shown in the unit of the one."""
    [found] = diff_recipes([ONE], [replace(ONE, metric=metric)], ("A", "B"))
    [contrast] = found.contrasts
    assert (contrast.answer, contrast.how) == ("not comparable", how)
    assert contrast.one is contrast.other is None


def test_recipes_of_other_workloads_or_devices_are_shown_and_not_compared() -> None:
    for other in (replace(ONE, device="another"), replace(ONE, case=Case({"m": 4}))):
        [contrast] = diff_recipes([ONE], [other], ("A", "B"))[0].contrasts
        assert contrast.how == "they are of different workloads or devices"
        assert contrast.one == contrast.other == (1.0, 1.0, 1.0)


def test_the_speed_ups_of_recipes_are_compared_with_or_without_their_metrics() -> None:
    one, other = replace(ONE, speedup=Speedup(2.0, 1.9, 2.1)), replace(ONE, speedup=Speedup(4.0, 3.9, 4.1))
    first, _ = diff_recipes([one], [other], ("A", "B"))[0].contrasts
    assert (first.metric, first.answer) == ("speed-up over the default", "better")
    [first] = diff_recipes([one], [replace(other, metric=None)], ("A", "B"))[0].contrasts
    assert first.metric == "speed-up over the default"
    [first] = diff_recipes([replace(one, metric=None)], [other], ("A", "B"))[0].contrasts
    assert first.metric == "speed-up over the default"
    [first] = diff_recipes([one], [ONE], ("A", "B"))[0].contrasts
    assert first.metric == "time"


@pytest.mark.parametrize(("value", "answer"), [(1000.0, "no difference shown"), (500.0, "better")])
def test_recipes_are_compared_in_one_unit(value: float, answer: str) -> None:
    other = replace(ONE, metric=Metric("time", value, unit="ms"))
    [contrast] = diff_recipes([ONE], [other], ("A", "B"))[0].contrasts
    assert (contrast.answer, contrast.unit) == (answer, "s")
    assert contrast.other == (value / 1000,) * 3
