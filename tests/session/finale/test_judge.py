"""Who won, by how much, and what is said of it: the verdict on readings that are given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autotune.measure.outcome import Estimate
from autotune.session.finale.verdict import Standing, after_fresh_runs, judge
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import StudySpec

ROUNDS = 12


def spec(metrics: str) -> StudySpec:
    return parse_spec(
        "autotune: 1\nname: a\nobjective: a.py:f\nknobs: {x: {range: [1, 9], default: 1}}\n"
        f"metrics: {metrics}\nmeasure: {{precision: 0.02}}\n"
    )


TIME = spec("{time: {goal: minimize, unit: s}}")
RATE = spec("{rate: {goal: maximize, unit: items/s}}")
REWARD = spec("{reward: {goal: maximize}}")


def standing(
    label: str,
    x: int | None,
    values: tuple[float, ...],
    metrics: dict[str, Estimate] | None = None,
    distance: float = 0.5,
) -> Standing:
    configuration = None if x is None else Configuration({"x": x})
    return Standing(label, configuration, x == 1, values, metrics or {}, distance)


def around(value: float) -> tuple[float, ...]:
    """One reading in each round, with little noise."""
    return tuple(value * (1 + 0.0001 * (place % 3)) for place in range(ROUNDS))


def numbers(compared: dict[str, Any] | None) -> list[float]:
    return [] if compared is None else [compared[part] for part in ("estimate", "low", "high")]


readings = st.lists(st.floats(0.5, 2.0), min_size=ROUNDS, max_size=ROUNDS).map(tuple)
ALIKE = (1.0,) * ROUNDS
middles = st.lists(st.sampled_from([0.5, 0.501, 0.7, 1.0]), min_size=5, max_size=5)


@given(middles, st.lists(readings, min_size=5, max_size=5))
@example([0.7, 0.5, 0.5, 0.5, 0.5], [ALIKE, ALIKE, ALIKE, (*ALIKE[2:], 0.5, 0.5), ALIKE])  # all but one alike
def test_a_rate_is_judged_as_the_time_that_it_is_the_inverse_of(
    middles: list[float], noises: list[tuple[float, ...]]
) -> None:
    """The default, three finalists and a baseline; and then runs of fresh processes with other readings."""
    who: list[tuple[str, int | None]] = [("the default", 1), ("a", 2), ("b", 3), ("c", 4), ("vendor", None)]
    times = [
        (m * (1 + 0.001 * n[0]),) * 3 + tuple(m * (1 + 0.01 * v) for v in n)
        for m, n in zip(middles, noises, strict=True)
    ]
    by_time = [standing(*one, own) for one, own in zip(who, times, strict=True)]
    by_rate = [standing(*one, tuple(1 / value for value in own)) for one, own in zip(who, times, strict=True)]
    time, rate = judge(TIME, by_time), judge(RATE, by_rate)
    runs = [
        {label: own[run : run + 3] for (label, _), own in zip(who, times, strict=True)}
        for run in range(0, ROUNDS, 3)
    ]
    inverse = [{label: tuple(1 / v for v in own) for label, own in run.items()} for run in runs]
    verdicts = [(time, rate)]
    if not time["is_default"]:
        verdicts += [
            (after_fresh_runs(TIME, time, runs, by_time), after_fresh_runs(RATE, rate, inverse, by_rate))
        ]
    for one, other in verdicts:
        assert one["label"] == other["label"] and one["tied"] == other["tied"]
        assert numbers(one["speedup"]) == pytest.approx(numbers(other["speedup"]))
        for mine, yours in zip(one["baselines"], other["baselines"], strict=True):
            assert numbers(mine) == pytest.approx(numbers(yours))


@pytest.mark.parametrize(
    ("goal", "near", "far", "winner"),
    [
        ("minimize", (2.0, 3.0), (1.0, 1.5), "far"),
        ("maximize", (2.0, 3.0), (1.0, 1.5), "near"),
        ("minimize", (1.0, 1.5), (2.0, 3.0), "near"),
        ("maximize", (1.0, 1.5), (2.0, 3.0), "far"),
        ("minimize", (1.0, 2.0), (1.5, 3.0), "near"),  # they overlap
        ("maximize", (1.0, 2.0), (1.5, 3.0), "near"),
        ("minimize", (2.0, 3.0), None, "near"),  # not read of the one, nothing is known of it
        ("maximize", None, (2.0, 3.0), "near"),
    ],
)
def test_of_two_equally_fast_ones_the_better_one_in_the_second_goal_wins_or_else_the_nearer(
    goal: str, near: tuple[float, float] | None, far: tuple[float, float] | None, winner: str
) -> None:
    def second(ends: tuple[float, float] | None) -> dict[str, Estimate]:
        return {} if ends is None else {"size": Estimate(sum(ends) / 2, *ends, ROUNDS)}

    both = spec(f"{{time: {{goal: minimize, unit: s}}, size: {{goal: {goal}}}}}")
    verdict = judge(
        both,
        [
            standing("the default", 1, around(2.0), second((1.0, 9.0)), 0.0),
            standing("near", 2, around(1.0), second(near), 0.1),
            standing("far", 3, around(1.0), second(far), 0.9),
        ],
    )
    assert verdict["label"] == winner and set(verdict["tied"]) == {"near", "far"}
    other = "near" if winner == "far" else "far"
    assert f"cannot be told from {other};" in verdict["remark"]
    assert "within 1 % of the best that none of them beats in size it is" in verdict["remark"]


def test_with_one_goal_no_other_is_spoken_of() -> None:
    alike = [standing("near", 2, around(1.0), distance=0.1), standing("far", 3, around(1.0), distance=0.9)]
    verdict = judge(TIME, [standing("the default", 1, around(2.0)), *alike])
    assert verdict["label"] == "near" and "of the best it is the nearest" in verdict["remark"]
    assert numbers(verdict["speedup"])[0] == pytest.approx(2.0)
    assert verdict["ratios"].keys() == {"near", "far"}
    alone = judge(TIME, [standing("the default", 1, around(2.0)), alike[0]])
    assert alone["label"] == "near" and alone["remark"] == "" and alone["tied"] == []


def test_a_default_that_stays_is_exactly_as_fast_as_itself() -> None:
    verdict = judge(TIME, [standing("the default", 1, around(1.0)), standing("a", 2, around(1.1))])
    assert verdict["is_default"] and numbers(verdict["speedup"]) == [1.0, 1.0, 1.0]
    assert verdict["configuration"] == {"x": 1} and verdict["tied"] == []


@pytest.mark.parametrize(
    ("default", "why"),
    [
        ([], "the default is not feasible: there is nothing to compare with"),
        ([standing("the default", 1, ())], "the default failed: there is nothing to compare with"),
    ],
)
def test_without_a_default_the_best_is_named_and_no_speed_up(default: list[Standing], why: str) -> None:
    verdict = judge(TIME, [*default, standing("slow", 2, around(2.0)), standing("fast", 3, around(1.0))])
    assert verdict["label"] == "fast" and verdict["remark"] == why
    assert verdict["speedup"] is None and verdict["gain"] is None


def test_a_baseline_has_a_ratio_if_there_are_two_readings_above_0() -> None:
    def compared(*values: float) -> list[str]:
        standings = [standing("the default", 1, around(2.0)), standing("a", 2, around(1.0))]
        verdict = judge(TIME, [*standings, standing("vendor", None, values)])
        return [comparison["against"] for comparison in verdict["baselines"]]

    assert compared(1.0, 1.1) == ["vendor"]
    assert compared(1.0) == compared() == compared(1.0, 0.0) == []


def test_the_more_finalists_there_were_the_less_is_known_of_the_one_that_was_picked() -> None:
    noisy = tuple(3.0 + 0.1 * (7 * place % ROUNDS) for place in range(ROUNDS))
    standings = [standing("the default", 1, around(2.0)), standing("a", 2, around(1.0))]
    vendor = standing("vendor", None, noisy)
    others = [standing(f"slow {x}", x, around(1.5)) for x in (3, 4, 5, 6)]
    few, many = [*standings, vendor], [*standings, *others, vendor]
    runs = [{"the default": (2.0,), "a": (1.0,)}] * 6
    before = judge(TIME, few), judge(TIME, many)
    after = after_fresh_runs(TIME, before[0], runs, few), after_fresh_runs(TIME, before[1], runs, many)
    for same, again in zip(before, after, strict=True):
        assert again["baselines"] == same["baselines"], "it was read in the finale alone"
    for one, other in (before, after):
        estimate, low, high = numbers(one["baselines"][0])
        wider = numbers(other["baselines"][0])
        assert wider[0] == estimate and wider[1] < low and high < wider[2]


@pytest.mark.parametrize(("again", "holds"), [([2.0, 2.1, 2.2, 2.05], True), ([2.0, -3.0, -4.0, 1.0], False)])
def test_a_reward_that_may_be_below_0_is_compared_by_its_gain(again: list[float], holds: bool) -> None:
    """A baseline that was read in the finale alone cannot stand beside a default that is below 0.

    The search had ended in an error where such a winner was not confirmed.
    """
    standings = [
        standing("the default", 1, around(-1.0)),
        standing("a", 2, around(2.0)),
        standing("vendor", None, around(1.0)),
    ]
    before = judge(REWARD, standings)
    assert before["speedup"] is None and numbers(before["gain"])[0] == pytest.approx(3.0, abs=0.01)
    runs = [{"the default": (-1.0,), "a": (value,)} for value in again]
    verdict = after_fresh_runs(REWARD, before, runs, standings)
    assert verdict["in_one_process"] == before["gain"]
    if holds:
        assert verdict["label"] == "a" and verdict["speedup"] is None
        assert numbers(verdict["gain"])[0] == pytest.approx(3.1, abs=0.1)
        assert [b["against"] for b in verdict["baselines"]] == ["vendor"]
    else:
        assert verdict["configuration"] == {"x": 1} and verdict["gain"] is None
        assert numbers(verdict["speedup"]) == [1.0, 1.0, 1.0] and verdict["baselines"] == []
        assert verdict["remark"].startswith("no better than the default: a was 3")
