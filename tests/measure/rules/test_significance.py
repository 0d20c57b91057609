"""The finale's arithmetic: intervals that hold, false wins that do not happen, gains that are found."""

from __future__ import annotations

import math
import tracemalloc
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.rules.significance import (
    MOST_AVERAGED,
    Contestant,
    Gain,
    Ratio,
    _signed_rank,
    over_runs,
    paired_shift,
    speedup,
    winner,
)

NOISES = {
    "normal": lambda rng, n: 1 + 0.01 * rng.normal(size=n),
    "lognormal": lambda rng, n: rng.lognormal(0, 0.05, n),
    "outliers": lambda rng, n: (1 + 0.01 * rng.normal(size=n)) * np.where(rng.random(n) < 0.1, 3.0, 1.0),
    "two modes": lambda rng, n: np.where(rng.random(n) < 0.3, 1.2, 1.0) * (1 + 0.005 * rng.normal(size=n)),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rounds", [4, 8, 12, 30])
def test_the_interval_of_a_ratio_holds(noise: str, rounds: int) -> None:
    """Equal noise, a true ratio of 1.1, a drift that both feel: 95 % of the intervals hold it."""
    rng = np.random.default_rng((rounds, len(noise)))
    drift = np.linspace(1, 1.5, rounds)
    held = 0
    for _ in range(1000):
        default, candidate = 1.1 * drift * NOISES[noise](rng, rounds), drift * NOISES[noise](rng, rounds)
        ratio = speedup(default, candidate)
        held += ratio.low <= 1.1 <= ratio.high
    assert held >= 930


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("finalists", [1, 5])
def test_equal_configurations_seldom_win(noise: str, finalists: int) -> None:
    rng = np.random.default_rng((finalists, len(noise)))
    wins = sum(
        winner(
            Contestant("default", tuple(NOISES[noise](rng, 12))),
            [Contestant(str(i), tuple(NOISES[noise](rng, 12)), 0.5) for i in range(finalists)],
        ).winner
        != "default"
        for _ in range(600)
    )
    assert wins <= 600 * 0.05


def test_the_interval_of_the_picked_winner_is_honest() -> None:
    """Five finalists, all truly 5 % better: the luckiest one's interval still holds 1.05."""
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(600):
        default = Contestant("default", tuple(1.05 * rng.lognormal(0, 0.02, 12)))
        finalists = [Contestant(str(i), tuple(rng.lognormal(0, 0.02, 12))) for i in range(5)]
        ratio = max((speedup(default.values, f.values, among=5) for f in finalists), key=lambda r: r.estimate)
        held += ratio.low <= 1.05 <= ratio.high
    assert held >= 570


@pytest.mark.parametrize("runs", [4, 8])
def test_the_interval_of_runs_holds_where_each_has_luck_of_its_own(runs: int) -> None:
    """Five per cent of luck in a run, and one of noise: its rounds taken together hold too seldom."""
    rng = np.random.default_rng(runs)
    held = held_together = 0
    for _ in range(1000):
        default, candidate = (
            (value * (1 + 0.05 * rng.normal(size=(runs, 1))) * NOISES["normal"](rng, (runs, 2))).tolist()
            for value in (1.1, 1.0)
        )
        ratio = over_runs(default, candidate)
        assert isinstance(ratio, Ratio) and ratio.rounds == 2 * runs
        held += ratio.low <= 1.1 <= ratio.high
        together = speedup(*(list(chain.from_iterable(read)) for read in (default, candidate)))
        held_together += together.low <= 1.1 <= together.high
    assert held >= 930 > held_together + 30


def test_runs_of_readings_that_are_not_positive_are_compared_by_difference() -> None:
    gain = over_runs([[0.0, 0.2], [0.1, 0.1]], [[-1.0, -0.8], [-0.9, -0.9]])
    assert isinstance(gain, Gain) and gain.estimate == pytest.approx(1.0)


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_a_gain_of_five_percent_in_one_percent_of_noise_is_found(goal: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        better = 1 / 1.05 if goal == "minimize" else 1.05
        default = Contestant("default", tuple(rng.normal(1, 0.01, 12)))
        same = Contestant("same", tuple(rng.normal(1, 0.01, 12)), 0.1)
        gain = Contestant("gain", tuple(better * rng.normal(1, 0.01, 12)), 0.9)
        verdict = winner(default, [same, gain], goal=goal)  # type: ignore[arg-type]
        assert verdict.winner == "gain" and verdict.ratio is not None
        assert verdict.ratio.low > 1 and verdict.ratio.estimate == pytest.approx(1.05, abs=0.02)
        assert verdict.ratios["same"].estimate == pytest.approx(1, abs=0.02)


def test_no_better_than_the_default_is_an_answer() -> None:
    default = Contestant("default", tuple(1.0 + 0.01 * i for i in range(12)))
    worse = Contestant("worse", tuple(1.1 + 0.01 * i for i in range(12)), 0.2)
    verdict = winner(default, [worse])
    assert (verdict.winner, verdict.ratio) == ("default", None)
    assert verdict.ratios["worse"].high < 1
    assert winner(default, []).winner == "default"
    assert winner(default, [Contestant("itself", default.values)]).winner == default.label


def test_ties_go_to_the_nearest_to_the_default() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(1, 0.01, (4, 12))
    default = Contestant("default", tuple(2 * noise[0]))
    far = Contestant("far", tuple(0.999 * noise[1]), 0.9)
    near = Contestant("near", tuple(1.001 * noise[2]), 0.1)
    slower = Contestant("slower", tuple(1.3 * noise[3]), 0.0)
    verdict = winner(default, [far, slower, near])
    assert verdict.winner == "near" and set(verdict.tied) == {"near", "far"}
    assert verdict.ratio == verdict.ratios["near"]
    alone = winner(default, [far, slower])
    assert alone.winner == "far" and alone.tied == ()


def test_of_those_that_tie_none_wins_that_another_beats_in_the_other_goals() -> None:
    default = Contestant("default", (2.0,) * 12, others=((5.0, 6.0), (1.0, 1.0)))
    near = Contestant("near", (1.0,) * 12, 0.1, ((4.0, 5.0), (1.0, 1.0)))
    better = Contestant("better", (1.0,) * 12, 0.9, ((2.0, 3.0), (1.0, 1.0)))
    unsure = Contestant("unsure", (1.0,) * 12, 0.9, ((3.5, 4.5), (1.0, 1.0)))
    weighed = Contestant("weighed", (1.0,) * 12, 0.9, ((2.0, 3.0), (1.5, 1.6)))
    slower = Contestant("slower", (1.5,) * 12, 0.9, ((2.0, 3.0), (1.0, 1.0)))
    assert winner(default, [near, better]).winner == "better"
    assert winner(None, [near, better]).winner == "better"
    for no_better in (unsure, weighed, slower):
        assert winner(default, [near, no_better]).winner == "near"


def test_a_tie_for_want_of_rounds_gives_no_more_away_than_is_allowed() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(1, 0.05, (3, 12))
    for sign in (1, -1):  # ratios, and differences where none can be formed
        default = Contestant("default", tuple(sign * 2.0**sign * noise[0]))
        far = Contestant("far", tuple(sign * noise[1]), 0.9)
        near = Contestant("near", tuple(sign * (1 + 0.02 * sign) * noise[1][::-1]), 0.1)
        assert winner(default, [far, near]).winner == "near"
        careful = winner(default, [far, near], within=0.005)
        assert careful.winner == "far" and set(careful.tied) == {"near", "far"}
        assert winner(None, [far, near], within=0.005).winner == "far"
        assert winner(default, [far, near], within=0.1).winner == "near"


def test_without_a_default_the_best_is_named_and_nothing_proven() -> None:
    quick = Contestant("quick", tuple(1 + 0.001 * i for i in range(12)), 0.5)
    slow = Contestant("slow", tuple(2 + 0.001 * i for i in range(12)), 0.1)
    verdict = winner(None, [slow, quick])
    assert verdict.winner == "quick" and verdict.ratio is None
    assert winner(Contestant("default", ()), [slow, quick]).winner == "quick"
    assert winner(None, [slow, quick], goal="maximize").winner == "slow"
    with pytest.raises(ValueError, match="nobody"):
        winner(None, [Contestant("unread", (1.0,))])


def test_without_a_limit_the_nearest_tie_wins_also_where_the_best_is_about_nothing() -> None:
    noise = [-1.0, 0.0, 1.0, 0.0, -1.0, 1.0, 0.0, 0.5, -0.5]
    far = Contestant("far", tuple(noise), distance=2.0)
    near = Contestant("near", (*noise[:-1], -0.4), distance=1.0)
    assert winner(None, [far, near]).winner == "near"


def test_readings_that_are_not_positive_are_compared_by_difference() -> None:
    default = Contestant("default", tuple(0.0 - 0.01 * i for i in range(12)))
    lower = Contestant("lower", tuple(-1.0 - 0.01 * i for i in range(12)))
    verdict = winner(default, [lower])
    assert verdict.winner == "lower" and verdict.ratio is None
    gain = verdict.gains["lower"]
    assert (gain.estimate, gain.low, gain.high, gain.rounds) == (*[pytest.approx(1.0)] * 3, 12)
    assert (
        winner(lower, [default]).winner == lower.label and winner(lower, [default]).gains["default"].high < 0
    )
    with pytest.raises(ValueError, match="above 0"):
        speedup(default.values, lower.values)


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_a_ratio_that_no_float_holds_is_a_difference(goal: Any) -> None:
    small, large = Contestant("small", (5e-324,) * 12), Contestant("large", (1.0,) * 12)
    default, better = (large, small) if goal == "minimize" else (small, large)
    verdict = winner(default, [better], goal=goal)
    assert verdict.winner == better.label and verdict.ratio is None
    assert verdict.gains[better.label].estimate == verdict.gains[better.label].high == 1.0
    over = over_runs([default.values] * 3, [better.values] * 3, goal=goal)
    assert isinstance(over, Gain) and over.estimate == 1.0


def test_a_large_ratio_is_no_more_than_a_larger_difference() -> None:
    """A loss that goes below 0 wins over one that is a thousandth of the default's."""
    default, small, negative = (
        Contestant(label, (value,) * 12)
        for label, value in [("default", 1.0), ("small", 0.001), ("negative", -0.5)]
    )
    for others in ([small, negative], [negative, small]):
        verdict = winner(default, others, within=0.005)
        assert verdict.winner == "negative" and verdict.tied == ()
        assert verdict.gains["negative"].estimate == pytest.approx(1.5) and "small" in verdict.ratios


def test_rounds_that_one_of_them_missed_are_left_out() -> None:
    default = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    candidate = [0.5, math.nan, 0.6, 0.65, 0.7, 0.75]
    assert speedup(default, candidate).rounds == 5
    assert speedup(default, candidate).estimate == pytest.approx(2)


def test_two_that_were_never_read_side_by_side_cannot_be_told_apart() -> None:
    first = Contestant("first", (1.0, 1.0, math.nan, math.nan), 0.9)
    second = Contestant("second", (math.nan, math.nan, 1.1, 1.1), 0.1)
    verdict = winner(None, [first, second])
    assert verdict.winner == "second" and set(verdict.tied) == {"first", "second"}
    assert winner(Contestant("default", (2.0, 2.0, 2.0, 2.0)), [first, second]).winner == "second"


def test_readings_without_noise() -> None:
    assert speedup([2.0] * 12, [1.0] * 12) == Ratio(2.0, 2.0, 2.0, 12)
    assert winner(Contestant("d", (2.0,) * 12), [Contestant("c", (1.0,) * 12)]).winner == "c"


def test_the_signed_rank_interval_agrees_with_its_tables() -> None:
    """Hollander, Wolfe and Chicken, table A.4: at n = 10 the 95 % interval ends at the 9th average."""
    values = [float(2**i) for i in range(10)]
    averages = sorted((values[i] + values[j]) / 2 for i in range(10) for j in range(i, 10))
    assert paired_shift(values, 0.95)[1:] == (averages[8], averages[-9])


POSITIVE = st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=25)


@given(POSITIVE, st.floats(0.01, 100))
def test_a_ratio_keeps_its_order_and_scales(values: list[float], factor: float) -> None:
    slower = [value * factor for value in values]
    ratio = speedup(slower, values[::-1])
    assert ratio.low <= ratio.estimate <= ratio.high
    back = speedup(slower, values[::-1], goal="maximize")
    assert back.estimate == pytest.approx(1 / ratio.estimate)
    assert math.log(back.low) == pytest.approx(-math.log(ratio.high), rel=1e-9, abs=1e-9)
    assert speedup(slower, values).estimate == pytest.approx(factor)


@given(POSITIVE, st.integers(2, 8))
def test_picking_from_more_widens_the_interval(values: list[float], among: int) -> None:
    one, many = speedup(values, values[::-1]), speedup(values, values[::-1], among=among)
    assert many.low <= one.low and one.high <= many.high


@pytest.mark.parametrize("bad", [([1.0], [1.0]), ([], []), ([1.0, math.nan], [1.0, 2.0])])
def test_fewer_than_two_rounds_are_refused(bad: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="two rounds"):
        speedup(*bad)


def test_an_interval_over_many_pairs_takes_little_memory_and_is_the_same() -> None:
    """The averages of all pairs of 20,000 differences alone would take 1.6 GB."""
    rng = np.random.default_rng(4)
    differences = rng.normal(0.1, 1.0, size=MOST_AVERAGED + 1)
    found = paired_shift(list(differences), 0.95)
    first, second = np.triu_indices(len(differences))
    averages = np.sort((differences[first] + differences[second]) / 2)
    rank = _signed_rank(len(differences), 0.95)
    expected = float(np.median(averages)), float(averages[rank - 1]), float(averages[-rank])
    assert found == pytest.approx(expected, rel=1e-14)
    assert paired_shift([0.5] * (MOST_AVERAGED + 1), 0.95) == (0.5, 0.5, 0.5)

    tracemalloc.start()
    middle, low, high = paired_shift(list(rng.normal(0.1, 1.0, size=20_000)), 0.95)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert low < middle < high and most < 50e6
