"""Bounds of metrics: learned from what was measured on both sides of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from autotune.search.candidates.pool import Pools
from autotune.search.contract import Observation, Problem
from autotune.search.models.bounds import Bounds, log_between, past_bound
from autotune.search.models.features import Features
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration
from autotune.space.knobs import FloatRange, IntegerRange
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

TIME = MetricSpec("time", "minimize", "s")
SPACE = Space([IntegerRange("x", 0, 40), IntegerRange("y", 0, 40)])


def error(x: int) -> float:
    return 1e-8 * 1.3**x


def observed(problem: Problem, configuration: Configuration, *, measured: bool = True) -> Observation:
    """Faster with a larger x, which has a larger error too."""
    x, y = int(str(configuration["x"])), int(str(configuration["y"]))
    metrics = {"time": 100.0 - x + y, "error": error(x)}
    told = Observation(configuration, Status.OK, metrics)
    limit = problem.metrics[1].at_most
    if limit is not None and metrics["error"] > limit:
        return replace(told, status=Status.WRONG, metrics={}, bounded=metrics if measured else {})
    return told


def problem(bound: MetricSpec) -> Problem:
    return Problem(SPACE, (TIME, bound))


def model(given: Problem, xs: range, later: range = range(0)) -> dict[int, float]:
    """The probability that the bound holds, by x, as learned from some values of x and then others."""
    features = Features(SPACE)
    pool = Pools(features, seed=0, count=2000).draw(features, due=0)
    told = [observed(given, SPACE.configuration({"x": x, "y": 0})) for x in (*xs, *later)]
    bounds = Bounds(given, features, pool, told[: len(xs)])
    bounds.learn(told[len(xs) :])
    columns = np.arange(len(pool))
    likely = np.exp(bounds.log_probability(columns))
    return {
        int(str(pool[c]["x"])): float(p) for c, p in zip(columns, likely, strict=True) if pool[c]["y"] == 0
    }


@pytest.mark.parametrize("xs", [range(0, 41, 5), range(0, 16, 5)])
def test_the_probability_falls_where_the_bound_is(xs: range) -> None:
    likely = model(problem(MetricSpec("error", at_most=error(20))), xs, range(16, 41, 6))
    assert min(p for x, p in likely.items() if x < 16) > 0.75
    assert max(p for x, p in likely.items() if x > 26) < 0.5


def test_a_bound_below_and_one_on_both_sides() -> None:
    lower = model(problem(MetricSpec("error", at_least=error(20))), range(0, 41, 5))
    assert max(p for x, p in lower.items() if x < 16) < 0.1 < 0.9 < min(p for x, p in lower.items() if x > 24)
    both = model(problem(MetricSpec("error", at_least=error(10), at_most=error(30))), range(0, 41, 4))
    assert max(p for x, p in both.items() if not 8 <= x <= 32) < 0.2 < 0.8 < both.get(20, 1.0)


def test_without_values_nothing_is_said() -> None:
    likely = model(problem(MetricSpec("error", at_most=1.0)), range(1))
    assert set(likely.values()) == {1.0}


def test_one_absurd_value_does_not_hide_the_bound() -> None:
    metric = MetricSpec("error", at_most=20.0, at_least=-5.0)
    features = Features(SPACE)
    pool = Pools(features, seed=0, count=500).draw(features, due=0)
    told = [
        Observation(SPACE.configuration({"x": x, "y": 0}), Status.OK, {"error": float(x)})
        for x in range(0, 20, 3)
    ]
    absurd = SPACE.configuration({"x": 40, "y": 0})
    told.append(Observation(absurd, Status.WRONG, bounded={"error": 1e30}))
    bounds = Bounds(problem(metric), features, pool, told)
    likely = np.exp(bounds.log_probability(np.arange(len(pool))))
    low = [
        float(p) for c, p in enumerate(likely) if int(str(pool[c]["x"])) < 12 and int(str(pool[c]["y"])) < 3
    ]
    assert min(low) > 0.6


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_values_whose_squares_overflow_are_learned_from() -> None:
    features = Features(SPACE)
    pool = Pools(features, seed=0, count=500).draw(features, due=0)
    told = [
        Observation(SPACE.configuration({"x": x, "y": y}), Status.WRONG, bounded={"error": 1e200 * (x - 20)})
        for x, y in zip(range(0, 40, 3), range(14), strict=True)
    ]
    bounds = Bounds(problem(MetricSpec("error", at_most=1e-3)), features, pool, told)
    likely = np.exp(bounds.log_probability(np.arange(len(pool))))
    small = [float(p) for c, p in enumerate(likely) if int(str(pool[c]["x"])) < 10]
    large = [float(p) for c, p in enumerate(likely) if int(str(pool[c]["x"])) > 30]
    assert np.mean(large) < 0.2 < 0.75 < np.mean(small)


def thin(x: float) -> float:
    return 0.5 - math.exp(-(((x - 0.1) / 0.04) ** 2))


def test_a_bound_that_holds_in_a_thin_slice_of_a_range_is_no_noise() -> None:
    space = Space([FloatRange("x", 0.0, 1.0)])
    features = Features(space)
    pool = Pools(features, seed=0, count=10).draw(features, due=0)
    places = np.concatenate([np.linspace(0.0, 0.2, 9), np.linspace(0.25, 1.0, 12)])
    told = [
        Observation(space.configuration({"x": float(x)}), Status.WRONG, bounded={"error": thin(float(x))})
        for x in places
    ]
    bounds = Bounds(Problem(space, (TIME, MetricSpec("error", at_most=0.0))), features, pool, told)
    asked = [space.configuration({"x": x}) for x in (0.0, 0.09, 0.11, 0.3, 0.7)]
    likely = np.exp(bounds.log_probability_at(features.of(asked)))
    assert likely[[0, 3, 4]].max() < 0.05 < 0.9 < likely[[1, 2]].min()


def test_a_wrong_trial_is_explained_by_a_measured_bound_only() -> None:
    given = problem(MetricSpec("error", at_most=error(20)))
    c = SPACE.configuration({"x": 30, "y": 0})
    assert past_bound(given, observed(given, c))
    assert not past_bound(given, observed(given, c, measured=False))
    assert not past_bound(given, Observation(c, Status.CRASHED))


def test_a_search_that_hears_what_was_measured_finds_the_edge() -> None:
    given = problem(MetricSpec("error", at_most=error(20)))
    strategy = make_strategy("auto", given, 0)
    for _ in range(25):
        strategy.tell([observed(given, p.configuration) for p in strategy.ask(1)])
    best = min(strategy.told, key=lambda o: o.metrics.get("time", 1e9))
    assert best.metrics["time"] <= 100.0 - 20 + 1
    assert sum(o.status is Status.WRONG for o in strategy.told) <= 12


def line(x: int) -> float:
    return 250.0 + 0.66 * x


@pytest.mark.parametrize("noise", [0.0, 0.002])
def test_a_sum_is_foreseen_from_three_values_far_from_the_bound(noise: float) -> None:
    """Peak memory: what the model takes, and so much a sample."""
    space = Space([IntegerRange("x", 1, 1000)])
    features = Features(space)
    told = [
        Observation(space.configuration({"x": x}), Status.OK, {"error": line(x) * (1.0 + noise * off)})
        for x, off in ((3, -1.0), (40, 0.5), (100, 0.2))
    ]
    pool = Pools(features, seed=0, count=1000).draw(features, due=0)
    given = Problem(space, (TIME, MetricSpec("error", at_most=line(300))))
    bounds = Bounds(given, features, pool, told)
    inputs = features.of([space.configuration({"x": x}) for x in (1, 270, 330, 900)])
    within = np.exp(bounds.log_probability_at(inputs))
    assert bounds.modelled and min(within[:2]) > 0.8 and max(within[2:]) < 0.2


def test_without_values_there_is_no_model() -> None:
    features = Features(SPACE)
    pool = Pools(features, seed=0, count=50).draw(features, due=0)
    assert not Bounds(problem(MetricSpec("error", at_most=1.0)), features, pool, []).modelled


@given(st.floats(-8.0, 8.0), st.floats(-8.0, 8.0))
def test_a_probability_between_two_numbers(one: float, other: float) -> None:
    low, high = sorted((one, other))
    plain = float(ndtr(high) - ndtr(low))
    found = float(np.exp(log_between(np.array([low]), np.array([high])))[0])
    assert found == pytest.approx(plain, abs=1e-12)


def test_far_out_there_is_still_an_order() -> None:
    """The logarithm of what a float cannot hold; the same on either side."""
    edges = np.array([-60.0, -50.0, -40.0])
    nothing = np.full(3, -np.inf)
    below = log_between(nothing, edges)
    assert (np.diff(below) > 100.0).all() and np.isfinite(below).all()
    assert log_between(-edges, -nothing) == pytest.approx(below)
    assert log_between(edges, edges + 1.0) == pytest.approx(log_between(-edges - 1.0, -edges))
